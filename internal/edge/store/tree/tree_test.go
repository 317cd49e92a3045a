package tree

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func bounds() Limits { return Limits{Bytes: 1 << 30, Entries: MaxEntries} }

func scanned(t testing.TB, dir string) *Tree {
	t.Helper()
	x, err := Scan(dir)
	ok(t, err)
	t.Cleanup(func() { _ = x.Close() })
	return x
}

func all(t testing.TB, x *Tree) []byte {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(x, 0, x.Size()))
	ok(t, err)
	return data
}

// grove is a directory with some of everything that a tree may hold.
func grove(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "grove")
	ok(t, os.MkdirAll(filepath.Join(dir, "a", "deep", "er"), 0o755))
	ok(t, os.Mkdir(filepath.Join(dir, "closed"), 0o700))
	for name, mode := range map[string]fs.FileMode{"a/run.sh": 0o755, "a/deep/data": 0o640, "closed/only-read": 0o444, "empty": 0o600,
		strings.Repeat("long", 50): 0o644, "ü": 0o644} {
		path := filepath.Join(dir, name)
		ok(t, os.WriteFile(path, bytes.Repeat([]byte(name), len(name)%7*311), 0o600))
		at := time.Unix(1e9+int64(len(name)), 7e8)
		ok(t, errors.Join(os.Chmod(path, mode), os.Chtimes(path, at, at)))
	}
	ok(t, os.Symlink("deep/data", filepath.Join(dir, "a", "link")))
	ok(t, os.Symlink("../closed", filepath.Join(dir, "a", "up")))
	ok(t, os.Symlink("nowhere", filepath.Join(dir, "dangling")))
	return dir
}

// seen is what a directory holds, in words.
func seen(t testing.TB, dir string) (list []string) {
	t.Helper()
	ok(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String() + " " + name
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			text = "link " + name + " -> " + to
		case e.Type().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %d %x %s", len(data), sha256.Sum256(data), info.ModTime().UTC().Truncate(time.Second))
		}
		list = append(list, text)
		return nil
	}))
	slices.Sort(list)
	return list
}

func TestATreeComesBackAsItWas(t *testing.T) {
	dir := grove(t)
	x := scanned(t, dir)
	data := all(t, x)
	if int64(len(data)) != x.Size() || x.Files != 13 || len(x.Left) > 0 {
		t.Errorf("%d bytes of %d, %d entries, left out %v", len(data), x.Size(), x.Files, x.Left)
	}
	into := filepath.Join(t.TempDir(), "back")
	files, size, err := Restore(bytes.NewReader(data), into, bounds())
	if err != nil || files != x.Files || size != x.Bytes {
		t.Fatalf("%d entries of %d, %d bytes of %d, %v", files, x.Files, size, x.Bytes, err)
	}
	if was, is := seen(t, dir), seen(t, into); !slices.Equal(was, is) {
		t.Errorf("it was\n%s\nand is\n%s", strings.Join(was, "\n"), strings.Join(is, "\n"))
	}
	if again := all(t, scanned(t, into)); !bytes.Equal(again, data) {
		t.Error("the same tree is another archive the second time")
	}
	if _, _, err = Restore(bytes.NewReader(data), into, bounds()); errkind.Of(err) != errkind.Exists {
		t.Errorf("onto what is there: %v", err)
	}
}

// TestWhatTarReads: others can read what a store holds.
func TestWhatTarReads(t *testing.T) {
	in := tar.NewReader(bytes.NewReader(all(t, scanned(t, grove(t)))))
	n := 0
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		ok(t, err)
		if dated := h.ModTime.Unix() > 0; dated != (h.Typeflag == tar.TypeReg) || h.ModTime.Nanosecond() != 0 || h.Uid != 0 ||
			h.Uname != "" {
			t.Errorf("%s has time %v and owner %d: only files have a time, in whole seconds", h.Name, h.ModTime, h.Uid)
		}
		n++
	}
	if n != 13 {
		t.Errorf("%d entries", n)
	}
}

func TestAnyPieceOfAnArchiveIsThatPiece(t *testing.T) {
	x := scanned(t, grove(t))
	data := all(t, x)
	rapid.Check(t, func(t *rapid.T) {
		off := rapid.Int64Range(0, x.Size()).Draw(t, "off")
		p := make([]byte, rapid.IntRange(0, 3000).Draw(t, "length"))
		n, err := x.ReadAt(p, off)
		want := data[off:min(x.Size(), off+int64(len(p)))]
		if !bytes.Equal(p[:n], want) || (err == nil) != (n == len(p)) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("at %d: %d bytes, %v", off, n, err)
		}
	})
}

func TestWhatLeadsOutIsLeftOut(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	ok(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o755))
	ok(t, os.Symlink("/etc/passwd", filepath.Join(dir, "absolute")))
	ok(t, os.Symlink("../../x", filepath.Join(dir, "sub", "out")))
	ok(t, unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	ok(t, os.WriteFile(filepath.Join(dir, "kept"), []byte("k"), 0o644))
	x := scanned(t, dir)
	if x.Files != 2 || len(x.Left) != 3 {
		t.Errorf("%d entries, left out %q", x.Files, x.Left)
	}
	if os.Geteuid() != 0 {
		return // who else could make a file of others in it
	}
	ok(t, os.Chown(dir, 65534, 65534))
	ok(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "secret"), []byte("root's"), 0o600))
	ok(t, os.Link(filepath.Join(filepath.Dir(dir), "secret"), filepath.Join(dir, "mine")))
	if x := scanned(t, dir); bytes.Contains(all(t, x), []byte("root's")) || len(x.Left) != 5 {
		t.Errorf("what its owner has linked in is root's, and root reads it for him: left out only %q", x.Left)
	}
}

func TestAFileThatChangesIsSaid(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		ok(t, os.WriteFile(filepath.Join(dir, name), bytes.Repeat([]byte("x"), 5000), 0o644))
	}
	x := scanned(t, dir)
	ok(t, os.Truncate(filepath.Join(dir, "b"), 100))
	_, err := store.Sum(t.Context(), x)
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "b was changed") {
		t.Errorf("it says %v", err)
	}
}

type item struct {
	tar.Header
	text string
}

func archive(t testing.TB, zip bool, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.Writer = &b
	z := gzip.NewWriter(&b)
	if zip {
		w = z
	}
	out := tar.NewWriter(w)
	for _, i := range items {
		i.Size, i.Mode = int64(len(i.text)), 0o644
		ok(t, out.WriteHeader(&i.Header))
		_, err := io.WriteString(out, i.text)
		ok(t, err)
	}
	ok(t, out.Close())
	if zip {
		ok(t, z.Close())
	}
	return b.Bytes()
}

func TestWhatEscapesIsRefused(t *testing.T) {
	link := func(kind byte, name, to string) item {
		return item{Header: tar.Header{Typeflag: kind, Name: name, Linkname: to}}
	}
	reg := func(name string) item { return item{tar.Header{Typeflag: tar.TypeReg, Name: name}, "text"} }
	for what, c := range map[string]struct {
		items []item
		check bool // found without unpacking
	}{
		"above":               {[]item{reg("../a")}, true},
		"absolute":            {[]item{reg("/a")}, true},
		"through":             {[]item{reg("a/../../b")}, true},
		"hard link":           {[]item{link(tar.TypeLink, "a", "../b")}, true},
		"device":              {[]item{link(tar.TypeChar, "a", "")}, true},
		"pipe":                {[]item{link(tar.TypeFifo, "a", "")}, true},
		"behind a link":       {[]item{link(tar.TypeSymlink, "a", ".."), reg("a/b")}, false},
		"behind an absolute":  {[]item{link(tar.TypeSymlink, "a", "/tmp"), reg("a/b")}, false},
		"over a link":         {[]item{link(tar.TypeSymlink, "a", "../x"), reg("a")}, false},
		"a directory at link": {[]item{link(tar.TypeSymlink, "a", ".."), link(tar.TypeDir, "a/d/", "")}, false},
	} {
		for _, zip := range []bool{false, true} {
			data := archive(t, zip, c.items...)
			_, _, err := Unpack(bytes.NewReader(data), nil, bounds(), nil)
			if (errkind.Of(err) == errkind.Invalid) != c.check {
				t.Errorf("%s: looking through it says %v", what, err)
			}
			outer := t.TempDir()
			if _, _, err = Restore(bytes.NewReader(data), filepath.Join(outer, "in"), bounds()); err == nil {
				t.Errorf("%s is unpacked", what)
			}
			if list, err := os.ReadDir(outer); err != nil || len(list) > 0 {
				t.Errorf("%s has left %v, %v", what, list, err)
			}
		}
	}
	for what, data := range map[string][]byte{"nothing": nil, "one byte": {1}, "text": []byte(strings.Repeat("no tar at all ", 100)),
		"half": archive(t, true, reg("a"))[:40]} {
		if _, _, err := Unpack(bytes.NewReader(data), nil, bounds(), nil); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", what, err)
		}
	}
	data := archive(t, false, reg("a"), reg("b"), reg("c"))
	for _, most := range []Limits{{Bytes: 11, Entries: 10}, {Bytes: 100, Entries: 2}} {
		if _, _, err := Unpack(bytes.NewReader(data), nil, most, nil); errkind.Of(err) != errkind.Exhausted {
			t.Errorf("within %+v: %v", most, err)
		}
	}
}

// TestADamagedObjectIsNotRestored: the tar in it is whole, and the object is not what was asked for.
func TestADamagedObjectIsNotRestored(t *testing.T) {
	data := archive(t, false, item{tar.Header{Typeflag: tar.TypeReg, Name: "a"}, "text"})
	outer := t.TempDir()
	r := store.Verified(io.NopCloser(bytes.NewReader(data)), store.Digest(strings.Repeat("0", 64)), "here")
	if _, _, err := Restore(r, filepath.Join(outer, "in"), bounds()); errkind.Of(err) != errkind.Corrupt {
		t.Errorf("%v", err)
	}
	if list, err := os.ReadDir(outer); err != nil || len(list) > 0 {
		t.Errorf("it has left %v, %v", list, err)
	}
}

// Whatever a tar holds, nothing is written beside the directory it is unpacked into.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a", "../a", "a/../../b", "/a", "a/b/c", ".", ".."} {
		header := make([]byte, 1536)
		copy(header, name)
		copy(header[257:], "ustar\x0000")
		f.Add(header, true)
		f.Add(header, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, zip bool) {
		var buf bytes.Buffer
		if zip {
			z := gzip.NewWriter(&buf)
			_, _ = z.Write(raw)
			_ = z.Close()
		} else {
			buf.Write(raw)
		}
		outer := t.TempDir()
		inner := filepath.Join(outer, "in")
		ok(t, os.Mkdir(inner, 0o700))
		root, err := os.OpenRoot(inner)
		ok(t, err)
		defer func() { _ = root.Close() }()
		_, _, _ = Unpack(&buf, root, Limits{Bytes: 1 << 16, Entries: 1000}, nil)
		if entries, err := os.ReadDir(outer); err != nil || len(entries) != 1 {
			t.Errorf("beside the directory lies %v, %v", entries, err)
		}
	})
}
