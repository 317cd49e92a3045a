// Package e2e uses the real binaries as a hostile or clumsy user would: real processes, signals, files and sockets.
package e2e

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// bin is the folder with the binaries under test.
var bin string

func TestMain(m *testing.M) {
	if os.Getenv(memberEnv) != "" {
		os.Exit(playMember())
	}
	flag.Parse()
	// They wait for processes far more than they work.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	// Subjobs have a /tmp of their own, and in these tests they leave signs in the test's folder.
	if err := os.Setenv("TMPDIR", "/var/tmp"); err != nil {
		panic(err)
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if runtime.GOOS != "linux" {
		fmt.Println("skipped: subjobs are processes of Linux")
		return 0
	}
	dir, err := os.MkdirTemp("", "sluice-e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	bin = dir
	// Mapped users start the supervisor's children from here, and go through to their own directories.
	if err = os.Chmod(dir, 0o755); err == nil {
		build := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "sluice.dev/sluice/cmd/sluice",
			"sluice.dev/sluice/cmd/sluice-shim")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		build.Stdout, build.Stderr = os.Stdout, os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Println("building the binaries:", err)
		return 1
	}
	return m.Run()
}
