package pod

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// A pilot's directory has both programs, and its token in a file that others can't read; a second run finds the first one's.
func TestEquip(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(filepath.Dir(self), "sluice")
	if err = os.WriteFile(beside, []byte("a program"), 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.Remove(beside)
	dir, token := t.TempDir(), filepath.Join(t.TempDir(), "token")
	if Equip(dir, token) == nil {
		t.Error("there is no token, and it was no error")
	}
	for _, text := range []string{"first", "second"} {
		if err = os.WriteFile(token, []byte(text), 0o440); err != nil {
			t.Fatal(err)
		}
		if err = Equip(dir, token); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(token)
		at := filepath.Join(dir, TokenFile)
		got, err := os.ReadFile(at)
		info, failed := os.Stat(at)
		if err != nil || failed != nil || string(got) != text || info.Mode() != 0o600 {
			t.Fatalf("the token is %q, %v, %v: want %q for its user alone", got, err, failed, text)
		}
	}
	for name, from := range map[string]string{Joiner: beside, Program: self} {
		want, err := os.ReadFile(from)
		got, failed := os.ReadFile(filepath.Join(dir, name))
		info, missing := os.Stat(filepath.Join(dir, name))
		if err != nil || failed != nil || missing != nil || !bytes.Equal(got, want) || info.Mode()&0o111 == 0 {
			t.Errorf("%s: %d bytes of %d, %v, %v", name, len(got), len(want), err, failed)
		}
	}
}
