package inventory_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/inventory"
)

// TestMain lets the test binary play another daemon that takes a lock, says so and waits to be ended.
func TestMain(m *testing.M) {
	if dir := os.Getenv("SLUICE_TEST_LOCK_DIR"); dir != "" {
		_, err := inventory.Lock(dir, []string{os.Getenv("SLUICE_TEST_LOCK_GPU")})
		fmt.Println("locked:", err)
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestAnotherProcessHoldsTheLockUntilItDies(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), "SLUICE_TEST_LOCK_DIR="+dir, "SLUICE_TEST_LOCK_GPU=GPU-b")
	stdin, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = other.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(stdout).ReadString('\n'); line != "locked: <nil>\n" {
		t.Fatalf("the other process says %q", line)
	}

	_, err = inventory.Lock(dir, []string{"GPU-a", "GPU-b", "GPU-c"})
	if errkind.Of(err) != errkind.Conflict {
		t.Fatalf("%v of kind %v, want a conflict", err, errkind.Of(err))
	}
	for _, want := range []string{"GPU-b is offered by another daemon", fmt.Sprintf("process %d", other.Process.Pid),
		"leave these GPUs out"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("does not say %q:\n%v", want, err)
		}
	}
	// All or none: the others were let go.
	free, err := inventory.Lock(dir, []string{"GPU-a", "GPU-c"})
	if err != nil {
		t.Fatal(err)
	}
	defer free.Release()

	if err = other.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.Wait()
	l, err := inventory.Lock(dir, []string{"GPU-b"})
	if err != nil {
		t.Fatalf("the holder is dead, but: %v", err)
	}
	if err = l.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestLocksAreHeldOnceAndReleased(t *testing.T) {
	dir := t.TempDir()
	l, err := inventory.Lock(dir, []string{"GPU-a", "GPU-a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = inventory.Lock(dir, []string{"GPU-a"}); errkind.Of(err) != errkind.Conflict {
		t.Errorf("locked twice: %v", err)
	}
	if info, statErr := os.Stat(filepath.Join(dir, "sluice-GPU-a.lock")); statErr != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("another user's daemon can't open the lock: %v, %v", info, statErr)
	}
	for range 2 {
		if err = l.Release(); err != nil {
			t.Error(err)
		}
	}
	again, err := inventory.Lock(dir, []string{"GPU-a"})
	if err != nil {
		t.Fatalf("released, but: %v", err)
	}
	defer again.Release()

	none, err := inventory.Lock(dir, nil)
	if err != nil || none.Release() != nil {
		t.Errorf("no GPUs: %v", err)
	}
}

func TestLockRefusesWhatIsNoName(t *testing.T) {
	dir := t.TempDir()
	for _, gpu := range []string{"", "../x", "a/b"} {
		if _, err := inventory.Lock(dir, []string{"GPU-a", gpu}); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v", gpu, err)
		}
	}
	if _, err := inventory.Lock(filepath.Join(dir, "nowhere"), []string{"GPU-a"}); err == nil ||
		!strings.Contains(err.Error(), "lock GPU GPU-a") {
		t.Errorf("a missing directory: %v", err)
	}
	// A link somebody left there is not followed.
	if err := os.Symlink(filepath.Join(dir, "victim"), filepath.Join(dir, "sluice-GPU-l.lock")); err != nil {
		t.Fatal(err)
	}
	if _, err := inventory.Lock(dir, []string{"GPU-l"}); err == nil {
		t.Error("followed a link")
	}
	if _, err := os.Stat(filepath.Join(dir, "victim")); !os.IsNotExist(err) {
		t.Errorf("wrote through a link: %v", err)
	}
	l, err := inventory.Lock(dir, []string{"GPU-a"})
	if err != nil {
		t.Fatalf("a refused call kept a lock: %v", err)
	}
	defer l.Release()
}
