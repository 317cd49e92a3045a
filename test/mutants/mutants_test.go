// Package mutants proves tests: with each bug of package planted that the kill soak does not see, or not soon, the test that is named
// with it must fail. They are bugs that every test once missed.
package mutants

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/test/planted"
)

// TestMutants runs when SLUICE_MUTANTS is set (make mutants).
func TestMutants(t *testing.T) {
	if os.Getenv("SLUICE_MUTANTS") == "" {
		t.Skip("SLUICE_MUTANTS is not set: see make mutants")
	}
	overlay, err := planted.Overlay("../..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	built := map[string]string{}
	for _, bug := range planted.Bugs() {
		if bug.Test == "" {
			continue
		}
		if built[bug.Folder] == "" {
			built[bug.Folder] = build(t, overlay, bug.Folder)
		}
		t.Run(bug.Name, func(t *testing.T) {
			if out, err := run(built[bug.Folder], bug, ""); err != nil || !strings.Contains(out, "--- PASS: "+bug.Test) {
				t.Fatalf("without a bug %s of %s does not pass: %v\n%s", bug.Test, bug.Folder, err, out)
			}
			out, err := run(built[bug.Folder], bug, bug.Name)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !strings.Contains(out, "--- FAIL: "+bug.Test) {
				t.Errorf("%s of %s does not fail with %s in: %v\n%s", bug.Test, bug.Folder, bug.Name, err, out)
			}
		})
	}
}

// build makes the test program of a package in which bugs can be planted.
func build(t *testing.T, overlay, folder string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mutant.test")
	out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", path, "sluice.dev/sluice/"+folder).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, out)
	}
	return path
}

// run runs the test that sees a bug in its package's folder, where its files are, with a bug in.
func run(program string, bug planted.Bug, in string) (string, error) {
	cmd := exec.Command(program, "-test.v", "-test.timeout=3m", "-test.run", "^"+bug.Test+"$")
	cmd.Dir = filepath.Join("..", "..", bug.Folder)
	cmd.Env = append(os.Environ(), planted.Variable+"="+in)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
