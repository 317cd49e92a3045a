package foreign

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain lets the test binary stand in for a program that changes its tree as fast as it can, and for one with few
// descriptors.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "tenant":
			tenant(os.Args[2], os.Args[3])
		case "frugal":
			frugal(os.Args[2])
		case "remove":
			end(Remove(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// tenant makes d a directory, a link to outside, and a directory again, for ever.
func tenant(tree, outside string) {
	// Its errors are those of somebody who is disturbed while at it.
	d, e := filepath.Join(tree, "d"), filepath.Join(tree, "e")
	for {
		_ = os.MkdirAll(filepath.Join(d, "closed", "deeper"), 0o755)
		for _, path := range []string{d, filepath.Join(d, "closed")} {
			_ = os.Chmod(path, 0o755)
		}
		for _, name := range []string{"program", "closed/secret"} {
			_ = os.WriteFile(filepath.Join(d, name), []byte("mine"), 0o644)
		}
		_ = os.Symlink(outside, e)
		for range 1000 {
			if unix.Renameat2(unix.AT_FDCWD, d, unix.AT_FDCWD, e, unix.RENAME_EXCHANGE) != nil {
				break
			}
		}
		_ = os.Remove(e)
		_ = os.RemoveAll(e)
		_ = os.Remove(d)
	}
}

// frugal does to a tree what can be done to one, with sixteen descriptors.
func frugal(root string) {
	err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 16, Max: 16})
	if err == nil && Size(root, 1<<40) != 1<<40+1 {
		err = fmt.Errorf("the size of a tree that is too deep was told")
	}
	if err == nil {
		err = Remove(root)
	}
	end(err)
}

func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}
