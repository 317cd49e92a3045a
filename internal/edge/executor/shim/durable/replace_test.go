package durable

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A file is replaced whole with its mode, whatever an earlier crash has left beside it.
func TestReplace(t *testing.T) {
	for _, c := range []struct {
		name string
		left func(path string) error
	}{
		{"a new file", func(string) error { return nil }},
		{"an old one that all may read", func(p string) error { return os.WriteFile(p, []byte("a longer text than the new one"), 0o644) }},
		{"a torn one that nobody may write", func(p string) error { return os.WriteFile(p+Temporary, []byte("torn and longer"), 0o444) }},
		{"a folder that is empty", func(p string) error { return os.Mkdir(p+Temporary, 0o700) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := c.left(path); err != nil {
				t.Fatal(err)
			}
			if err := Replace(path, []byte("new"), 0o600); err != nil {
				t.Fatal(err)
			}
			expect(t, path, "new", 0o600)
			if got := names(t, dir); !slices.Equal(got, []string{"f"}) {
				t.Errorf("the directory has %v", got)
			}
		})
	}
}

// What can't be written or put in its place leaves the old file, and nothing beside it.
func TestReplaceThatFails(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(path string) error
	}{
		{"no place for the temporary file", func(p string) error { return os.MkdirAll(filepath.Join(p+Temporary, "x"), 0o700) }},
		{"something else is in its place", func(p string) error { return os.MkdirAll(filepath.Join(p, "x"), 0o700) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "f")
			if err := c.harm(path); err != nil {
				t.Fatal(err)
			}
			before := names(t, dir)
			if err := Replace(path, []byte("new"), 0o600); err == nil {
				t.Error("it was replaced")
			}
			if got := names(t, dir); !slices.Equal(got, before) {
				t.Errorf("the directory has %v, want %v", got, before)
			}
		})
	}
}

// The content is durable before it has its name, and the name before Replace returns.
func TestReplaceSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	var order []string
	OnSync = func(f *os.File) {
		_, err := os.Stat(path)
		order = append(order, filepath.Base(f.Name()), map[bool]string{true: "in place", false: "not in place"}[err == nil])
	}
	defer func() { OnSync = nil }()
	if err := Replace(path, []byte("new"), 0o600); err != nil {
		t.Fatal(err)
	}
	if want := []string{"f" + Temporary, "not in place", filepath.Base(filepath.Dir(path)), "in place"}; !slices.Equal(order, want) {
		t.Errorf("synced: %v, want %v", order, want)
	}
}

func expect(t *testing.T, path, want string, mode os.FileMode) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil || string(text) != want {
		t.Errorf("%s has %q, %v", path, text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}
