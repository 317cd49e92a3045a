// Package python_test runs the unit tests of the Python SDK with the tests of the module.
package python_test

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestPythonSDK(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed: the tests of sdk/python need it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// -B: leave no compiled files in the tree.
	out, err := exec.CommandContext(ctx, python, "-B", "-W", "error", "-m", "unittest", "-v", "test_sluice",
		"test_sluice_agent").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "\nOK") || !strings.Contains(string(out), "test_yields_on_sigterm") ||
		!strings.Contains(string(out), "test_a_whole_negotiation") || !strings.Contains(string(out), "test_takes_one_piece_after_another") {
		t.Fatalf("unittest ran, but not the tests:\n%s", out)
	}
}
