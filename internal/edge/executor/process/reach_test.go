package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

func TestReachable(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	inner := filepath.Join(top, "inner")
	if err := os.Mkdir(inner, 0o700); err != nil {
		t.Fatal(err)
	}
	mode := func(path string, m os.FileMode) {
		t.Helper()
		if err := os.Chmod(path, m); err != nil {
			t.Fatal(err)
		}
	}
	stranger := &shim.User{UID: 54321, GID: 54321}
	mode(filepath.Dir(top), 0o711)
	mode(top, 0o700)
	err := Reachable(filepath.Join(inner, "not", "there"), stranger)
	if errkind.Of(err) != errkind.Denied || strings.Index(err.Error(), "chmod o+x "+top+",") > strings.Index(err.Error(), "chmod o+x "+
		inner+",") {
		t.Errorf("two closed directories: %v; want both, from the root down", err)
	}
	mode(top, 0o711)
	if err = Reachable(inner, stranger); err == nil || strings.Contains(err.Error(), top+" ") {
		t.Errorf("one closed directory: %v; want the inner one alone", err)
	}
	mode(inner, 0o711)
	if err = Reachable(inner, stranger); err != nil {
		t.Errorf("an open way: %v", err)
	}
	mode(inner, 0o001)
	own := &shim.User{UID: uint32(max(os.Geteuid(), 0)), GID: 54321}
	if err = Reachable(inner, own); (err == nil) != (own.UID == 0) {
		t.Errorf("closed to its owner: %v", err)
	}
	mode(inner, 0o700)
	if err = Reachable(inner, nil); err != nil {
		t.Errorf("the daemon's own user: %v", err)
	}
}
