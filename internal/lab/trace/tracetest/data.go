package tracetest

import (
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/lab/trace"
)

// Data is the path of a file or folder of the published traces: below the folder that SLUICE_DATA names, else below
// shared/data in a folder above the test's. The test is skipped where it is not there: the traces are not part of the
// project.
func Data(t testing.TB, path string) string {
	t.Helper()
	path = filepath.FromSlash(path)
	if root := os.Getenv("SLUICE_DATA"); root != "" {
		found := filepath.Join(root, path)
		if _, err := os.Stat(found); err != nil {
			t.Skipf("SLUICE_DATA has no such trace: %v", err)
		}
		return found
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		found := filepath.Join(dir, "shared", "data", path)
		if _, err := os.Stat(found); err == nil {
			return found
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Skipf("no folder above has shared/data/%s, and SLUICE_DATA is not set", filepath.ToSlash(path))
		}
		dir = parent
	}
}

// Each reads a published trace whole, skipping the test where it is not there, and says how many records it has.
func Each(t testing.TB, f trace.Format, path string, visit func(*trace.Record)) int {
	t.Helper()
	n := 0
	err := trace.Each(f, Data(t, path), func(r *trace.Record) error {
		n++
		visit(r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}
