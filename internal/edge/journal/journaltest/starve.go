package journaltest

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// Starve takes every file descriptor of this process but left of them, and returns what gives them back. A test that uses
// it must not be parallel: those that are wait until it is over.
func Starve(t *testing.T, left int) (feed func()) {
	t.Helper()
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	low := before
	low.Cur = min(low.Cur, 256)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	var taken []*os.File
	feed = func() {
		for _, f := range taken {
			_ = f.Close()
		}
		taken = nil
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &before); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(feed)
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, unix.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
	for range left {
		_ = taken[len(taken)-1].Close()
		taken = taken[:len(taken)-1]
	}
	return feed
}
