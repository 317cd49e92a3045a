package report_test

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/lab/report"
)

// TestCreateLeavesNothingHalf: a file that can not be written whole is not there.
func TestCreateLeavesNothingHalf(t *testing.T) {
	dir := t.TempDir()
	err := report.Create(filepath.Join(dir, "x"), func(w io.Writer) error {
		_, err := w.Write(bytes.Repeat([]byte("x"), 10))
		if err != nil {
			return err
		}
		return io.ErrShortWrite
	})
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
	if err == nil || len(left)+len(hidden) > 0 {
		t.Errorf("error %v, left %v %v", err, left, hidden)
	}
}
