package main

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	// mostBytes is how large the bundle may be, mostLibrary the newest version of the C library that it may need.
	mostBytes   = 40 << 20
	mostLibrary = "2.36"
)

// checkBundle says how large a bundle is, and which C library its programs need.
func checkBundle(dir string, out io.Writer) error {
	var size int64
	need := ""
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		size += info.Size()
		own, err := libraryOf(path)
		if older(need, own) {
			need = own
		}
		return err
	})
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{"run", "sluice.gz", "sluice-shim.gz", "programs/witness.py", "programs/sluice.py"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			errs = append(errs, fmt.Errorf("the bundle is not whole: %w", err))
		}
	}
	if size > mostBytes {
		errs = append(errs, fmt.Errorf("%s has %.1f MiB, want at most %d", dir, float64(size)/(1<<20), mostBytes>>20))
	}
	if need == "" {
		errs = append(errs, fmt.Errorf("%s: nothing of it needs the C library, so sluice was built without NVML: want a C compiler", dir))
	} else if older(mostLibrary, need) {
		errs = append(errs, fmt.Errorf("%s needs glibc %s, want at most %s: build it on an older system", dir, need, mostLibrary))
	}
	fmt.Fprintf(out, "%s: %.1f MiB, needs glibc %s\n", dir, float64(size)/(1<<20), need)
	return errors.Join(errs...)
}

// libraryOf is the newest version of the C library that a program needs, packed or not; empty: it is no program, or needs none. A
// program that needs other libraries than those of glibc is an error.
func libraryOf(path string) (newest string, err error) {
	text, err := os.ReadFile(path)
	if err == nil && strings.HasSuffix(path, packed) {
		text, err = inflate(text)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return "", nil // a script
	}
	if f.Section(".dynamic") == nil {
		return "", nil
	}
	libraries, err1 := f.ImportedLibraries()
	symbols, err2 := f.ImportedSymbols()
	if err = errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	for _, name := range libraries {
		switch base, _, _ := strings.Cut(name, ".so"); base {
		case "libc", "libdl", "libpthread", "libm", "librt", "libresolv", "ld-linux-x86-64", "ld-linux-aarch64":
		default:
			return "", fmt.Errorf("%s needs %s, which a bare machine may not have", path, name)
		}
	}
	for _, s := range symbols {
		if v, ok := strings.CutPrefix(s.Version, "GLIBC_"); ok && older(newest, v) {
			newest = v
		}
	}
	return newest, nil
}

// older says whether version a is older than b. Nothing is older than anything.
func older(a, b string) bool {
	x, y := strings.Split(a, "."), strings.Split(b, ".")
	for i := range max(len(x), len(y)) {
		var m, n int
		if i < len(x) {
			m, _ = strconv.Atoi(x[i]) // a version is digits and dots; what is not counts as 0
		}
		if i < len(y) {
			n, _ = strconv.Atoi(y[i])
		}
		if m != n {
			return m < n
		}
	}
	return false
}

// packed is the end of the names of programs that are kept compressed, since the bundle must be small.
const packed = ".gz"

// unpack puts the bundle's packed programs into a folder.
func unpack(bundle, into string) error {
	all, err := filepath.Glob(filepath.Join(bundle, "*"+packed))
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no programs: make gpu builds the bundle", bundle)
	}
	if err != nil {
		return err
	}
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err == nil {
			text, err = inflate(text)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(into, strings.TrimSuffix(filepath.Base(path), packed)), text, 0o755)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func inflate(text []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
