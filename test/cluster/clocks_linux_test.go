package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// skewVariable says by how many seconds the wall clock of a daemon is wrong.
const skewVariable = "CLUSTER_SKEW"

// skew of a machine's wall clock against the head's: as far as clocks may be apart (zone.Config.Skew), either way, or not at all.
func skew(machine int) time.Duration {
	return []time.Duration{0, -5 * time.Second, 5 * time.Second}[machine%3]
}

// started is how much longer ago a machine says that it was switched on than the one that it runs on.
func started(machine int) time.Duration { return time.Duration(machine) * 20 * time.Minute }

// now are the lines of the standard library that the wall clock is read in, and what is compiled in their place.
const now = "\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n"
const skewedNow = "\tsec, nsec, mono := runtimeNow()\n\tsec += clusterSkew\n\tif mono == 0 {\n"

// skewSource is what the standard library has besides then.
const skewSource = `package time

import "syscall"

var clusterSkew = func() (n int64) {
	text, _ := syscall.Getenv("` + skewVariable + `")
	sign := int64(1)
	for _, c := range text {
		if c == '-' {
			sign = -1
			continue
		}
		n = 10*n + int64(c-'0')
	}
	return sign * n
}()
`

// skewed writes an overlay for the compiler below a folder, with which a program's wall clock is wrong as skewVariable says: the kernel
// has one wall clock for all, and no namespace changes that.
func skewed(dir string) (overlay string, err error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env: %w", err)
	}
	lib := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	text, err := os.ReadFile(filepath.Join(lib, "time.go"))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), now); n != 1 {
		return "", fmt.Errorf("%s reads the clock in %d places that this test knows, want 1: put what is there now into "+
			"clocks_linux_test.go", lib, n)
	}
	replaced := map[string]string{}
	for name, text := range map[string]string{
		"time.go": strings.Replace(string(text), now, skewedNow, 1), "cluster_skew.go": skewSource,
	} {
		replaced[filepath.Join(lib, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, list, 0o600)
}

// TestSkewed: what is compiled in place of the standard library's clock can be made from this one.
func TestSkewed(t *testing.T) {
	if _, err := skewed(t.TempDir()); err != nil {
		t.Error(err)
	}
}

// place is a thread in namespaces of its own for the network and for the clocks that count from a machine's start: what it starts is there,
// too, and ends with it.
type place struct{ work chan func() }

func newPlace(started time.Duration) (*place, error) {
	p, made := &place{make(chan func())}, make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine
		err := errors.Join(unix.Unshare(unix.CLONE_NEWNET), unix.Unshare(unix.CLONE_NEWTIME))
		if err == nil {
			err = os.WriteFile(fmt.Sprintf("/proc/%d/timens_offsets", unix.Gettid()), fmt.Appendf(nil, "monotonic %d 0\nboottime %d 0\n",
				started/time.Second, started/time.Second), 0)
		}
		made <- err
		for err == nil {
			do, ok := <-p.work
			if !ok {
				return
			}
			do()
		}
	}()
	return p, <-made
}

// do calls a function on the thread.
func (p *place) do(f func() error) error {
	done := make(chan error)
	p.work <- func() { done <- f() }
	return <-done
}
