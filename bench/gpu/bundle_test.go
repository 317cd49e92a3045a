package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOlder(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"2.9", "2.34", true}, {"2.34", "2.9", false}, {"2.36", "2.36", false}, {"", "2.2.5", true}, {"2.2.5", "2.3", true},
		{"2.2", "2.2.5", true}} {
		if got := older(c.a, c.b); got != c.want {
			t.Errorf("older(%q, %q) = %v", c.a, c.b, got)
		}
	}
}

func put(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
}

func pack(t *testing.T, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// A program of the system's stands for sluice: it needs the C library that is here.
func TestCheckBundle(t *testing.T) {
	shell, err := os.ReadFile("/bin/sh")
	if err != nil {
		t.Skip("there is no /bin/sh to stand for a program")
	}
	need, err := libraryOf("/bin/sh")
	if err != nil || need == "" {
		t.Skipf("/bin/sh needs no glibc here, or more than that: %q, %v", need, err)
	}
	check := func(change func(dir string)) (string, error) {
		dir := t.TempDir()
		put(t, filepath.Join(dir, "run"), []byte("#!/bin/sh\n"))
		put(t, filepath.Join(dir, "sluice.gz"), pack(t, shell))
		put(t, filepath.Join(dir, "sluice-shim.gz"), pack(t, []byte("#!/bin/sh\n")))
		put(t, filepath.Join(dir, "programs/witness.py"), nil)
		put(t, filepath.Join(dir, "programs/sluice.py"), nil)
		change(dir)
		var out bytes.Buffer
		err := checkBundle(dir, &out)
		return out.String(), err
	}
	said, err := check(func(string) {})
	if older(mostLibrary, need) {
		if err == nil || !strings.Contains(err.Error(), "needs glibc "+need) {
			t.Errorf("a program that needs %s: %v", need, err)
		}
	} else if err != nil || !strings.Contains(said, "needs glibc "+need) {
		t.Errorf("%q, %v; want that it needs %s, and no error", said, err, need)
	}
	for what, c := range map[string]struct {
		change func(string)
		want   string
	}{
		"too large": {func(dir string) { put(t, filepath.Join(dir, "large"), make([]byte, mostBytes)) }, "want at most 40"},
		"not whole": {func(dir string) { os.Remove(filepath.Join(dir, "programs/sluice.py")) }, "not whole"},
		"damaged":   {func(dir string) { put(t, filepath.Join(dir, "sluice.gz"), []byte("no gzip")) }, "sluice.gz"},
		"without C": {func(dir string) { put(t, filepath.Join(dir, "sluice.gz"), pack(t, []byte("#!"))) }, "built without NVML"},
	} {
		if _, err := check(c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

// Checkpoints are closed to writing: who is not root opens them first.
func TestClearAway(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trials")
	closed := filepath.Join(dir, "a", "checkpoint")
	put(t, filepath.Join(closed, "deep", "file"), nil)
	for _, path := range []string{filepath.Join(closed, "deep"), closed} {
		if err := os.Chmod(path, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	if err := clearAway(dir); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestUnpack(t *testing.T) {
	bundle, into := t.TempDir(), t.TempDir()
	if err := unpack(bundle, into); err == nil {
		t.Error("a bundle without programs is unpacked")
	}
	put(t, filepath.Join(bundle, "sluice.gz"), pack(t, []byte("a program")))
	if err := unpack(bundle, into); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(into, "sluice"))
	if err != nil || info.Mode().Perm()&0o111 == 0 || string(read(t, filepath.Join(into, "sluice"))) != "a program" {
		t.Errorf("unpacked as %v, %v", info, err)
	}
}
