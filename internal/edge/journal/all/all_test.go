//go:build !etcd

package all

import (
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

// TestWithoutTheTag: a build without journals in etcd says so, and leaves the data directory as it was.
func TestWithoutTheTag(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "journal")
	_, err := Open(t.Context(), dir, Options{Spec: "etcd://127.0.0.1:2379/lab"})
	if errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), "make build TAGS=etcd") {
		t.Fatal(err)
	}
	j, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), dir, Options{Spec: "etcd://127.0.0.1:2379/lab"}); errkind.Of(err) != errkind.Conflict {
		t.Fatal(err)
	}
	if err := note(filepath.Join(dir, "b"), "etcd:/lab/ X"); err != nil {
		t.Fatal(err)
	}
	if _, err = Open(t.Context(), filepath.Join(dir, "b"), Options{}); errkind.Of(err) != errkind.Conflict ||
		!strings.Contains(err.Error(), "etcd:/lab/ X") {
		t.Fatal(err)
	}
}
