//go:build kubernetes && machine

package machine

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/test/kube/plane"
)

// Image makes an image of static programs, the first of which it runs, as `make image` does, and gives it to containerd.
func (m *Machine) Image(t testing.TB, name string, programs ...string) {
	t.Helper()
	clone, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "image.tar")
	cmd := exec.Command("go", append([]string{"run", ".", "-o", file, "-name", name}, programs...)...)
	cmd.Dir = filepath.Join(clone, "tools", "image")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("an image of %v: %v: %s", programs, err, out)
	}
	if err := m.ctr("images", "import", file); err != nil {
		t.Fatal(err)
	}
}

// program builds the tests' own program under a name.
func program(t testing.TB, name string) string {
	return Build(t, name, "", "./test/kube/machine/program")
}

// Build builds a static program of the clone's under a name.
func Build(t testing.TB, name, tags, pkg string) string {
	t.Helper()
	clone, err := plane.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	cmd := exec.Command("go", "build", "-trimpath", "-tags", tags, "-ldflags", "-s -w", "-o", path, pkg)
	cmd.Dir = clone
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("building %s: %w: %s", pkg, err, out))
	}
	return path
}
