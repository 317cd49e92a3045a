package executortest

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// copied names, in the environment, the folder that LeaveTmp has copied this program to.
const copied = "SLUICE_TEST_PROGRAM"

// LeaveTmp starts a test program again from /var/tmp, with its temporary folders there as well, if it lies below /tmp, where
// `go test` puts it: subjobs that run it, or write to the test's folders, have a /tmp of their own. It is called first of all
// in TestMain; done is called after the tests. Where it fails the program goes on where it is.
func LeaveTmp() (done func()) {
	if dir := os.Getenv(copied); dir != "" {
		return func() { _ = os.RemoveAll(dir) }
	}
	self, err := os.Executable()
	if err != nil || !strings.HasPrefix(self, "/tmp/") {
		return func() {}
	}
	dir, err := os.MkdirTemp("/var/tmp", "sluice-test-*")
	if err != nil {
		return func() {}
	}
	path := filepath.Join(dir, filepath.Base(self))
	if err = copyProgram(self, path); err == nil {
		err = syscall.Exec(path, os.Args, append(os.Environ(), copied+"="+dir, "TMPDIR=/var/tmp"))
	}
	println("going on below /tmp:", err.Error())
	_ = os.RemoveAll(dir)
	return func() {}
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
