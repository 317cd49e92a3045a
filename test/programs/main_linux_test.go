package programs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// bin is the folder with the binaries under test: SLUICE_PROGRAMS_BIN, or they are built.
var bin string

func TestMain(m *testing.M) {
	if os.Getenv("SLUICE_PROGRAMS") == "" {
		os.Exit(m.Run()) // all of it is skipped
	}
	// Subjobs have a /tmp of their own. Debian's programs want Debian's Python.
	dir, err := os.MkdirTemp("/var/tmp", "sluice-programs-")
	if bin = os.Getenv("SLUICE_PROGRAMS_BIN"); bin == "" && err == nil {
		bin = dir
		err = build()
	}
	if err != nil {
		fmt.Println("building the binaries:", err)
		os.Exit(1)
	}
	for key, value := range map[string]string{"TMPDIR": dir, "PATH": bin + ":/usr/bin:/bin:" + os.Getenv("PATH")} {
		if err := os.Setenv(key, value); err != nil {
			panic(err)
		}
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

func build() error {
	c := exec.Command("go", "build", "-o", bin+string(filepath.Separator), "sluice.dev/sluice/cmd/sluice",
		"sluice.dev/sluice/cmd/sluice-shim")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	return c.Run()
}

// needs skips a test unless real programs are asked for, since they take minutes and all of a machine, and where a command is missing: it
// says which package of Debian 12 has it.
func needs(t *testing.T, pack string, probe ...string) {
	t.Helper()
	if os.Getenv("SLUICE_PROGRAMS") == "" {
		t.Skip("not run: make programs runs it")
	}
	out, err := exec.Command(probe[0], probe[1:]...).CombinedOutput()
	if err == nil {
		return
	}
	if os.Getenv("SLUICE_PROGRAMS") == "require" {
		t.Fatalf("%s: %v: apt-get install %s\n%s", strings.Join(probe, " "), err, pack, out)
	}
	t.Skipf("not run: %s is not installed (%v): apt-get install %s", probe[0], err, pack)
}

// strikesOf are random moments that a seed draws, which is printed: SLUICE_PROGRAMS_SEED draws them again.
func strikesOf(t *testing.T) *rand.Rand {
	t.Helper()
	seed := time.Now().UnixNano() % 1_000_000
	if text := os.Getenv("SLUICE_PROGRAMS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseInt(text, 10, 64); err != nil {
			t.Fatalf("SLUICE_PROGRAMS_SEED: %v", err)
		}
	}
	t.Logf("SLUICE_PROGRAMS_SEED=%d", seed)
	return rand.New(rand.NewPCG(uint64(seed), 0))
}
