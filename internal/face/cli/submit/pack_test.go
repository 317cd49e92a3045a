package submit

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/clitest"
	"sluice.dev/sluice/internal/face/cli/session"

	"golang.org/x/sys/unix"
)

func TestPack(t *testing.T) {
	files := map[string]string{
		"a.txt": "alpha", "run.sh": "#!/bin/sh", "sub/b": "beta", "sub/up": "->../a.txt", "sub/out": "->../../etc/passwd",
		"abs":         "->/etc/passwd",
		".git/config": "secret", "sub/.git": "gitdir: elsewhere", ".hidden": "h", "dangling": "->nothing",
	}
	dir := clitest.Tree(t, files)
	if err := errors.Join(os.Chmod(filepath.Join(dir, "run.sh"), 0o700), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	packed, err := pack(dir, along{}, false, maxPacked)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0 600 .hidden h", "0 600 a.txt alpha", "2 777 dangling nothing", "0 700 run.sh #!/bin/sh", "5 755 sub/ ",
		"0 600 sub/b beta", "2 777 sub/up ../a.txt"}
	if got := clitest.Entries(t, packed.data); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if said := strings.Join(packed.warnings, "\n"); len(packed.warnings) != 3 || !strings.Contains(said, "sub/out is left out") ||
		!strings.Contains(said, "abs is left out") || !strings.Contains(said, "pipe is left out") {
		t.Errorf("warnings %q", packed.warnings)
	}

	// The same files elsewhere are the same bytes, unless one was changed at another time.
	other := clitest.Tree(t, files)
	if err := errors.Join(os.Chmod(filepath.Join(other, "run.sh"), 0o700), unix.Mkfifo(filepath.Join(other, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if again, err := pack(other, along{}, false, maxPacked); err != nil || !bytes.Equal(again.data, packed.data) {
		t.Errorf("packed differently: %v", err)
	}
	if err := os.Chtimes(filepath.Join(other, "a.txt"), time.Time{}, time.Unix(1e9+1, 0)); err != nil {
		t.Fatal(err)
	}
	if again, err := pack(other, along{}, false, maxPacked); err != nil || bytes.Equal(again.data, packed.data) {
		t.Errorf("a file that was changed later is packed the same: %v", err)
	}
	if withGit, err := pack(dir, along{}, true, maxPacked); err != nil || len(clitest.Entries(t, withGit.data)) != len(want)+3 {
		t.Errorf("with .git: %v", err)
	}
}

func TestPackLimits(t *testing.T) {
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	dir := clitest.Tree(t, map[string]string{"small": "s", "data/large.bin": string(noise)})
	_, err := pack(dir, along{}, false, 100_000)
	if err == nil || !strings.Contains(err.Error(), "larger than 97.66Ki packed") ||
		!strings.Contains(err.Error(), "data/large.bin (292.97Ki)") {
		t.Errorf("error %v", err)
	}
	if _, err := pack(filepath.Join(dir, "small"), along{}, false, maxPacked); err == nil || !strings.Contains(err.Error(),
		"is no directory") {
		t.Errorf("error %v", err)
	}
	if _, err := pack(filepath.Join(dir, "missing"), along{}, false, maxPacked); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

// TestWhatGoesAlongIsSaid: once for a directory that several jobs share, which has nothing of what goes along with one of them alone.
func TestWhatGoesAlongIsSaid(t *testing.T) {
	dir := clitest.Tree(t, map[string]string{"a": "1234"})
	var said strings.Builder
	a := &session.Session{App: &command.App{Err: &said}}
	packed := map[string]parcel{}
	for _, c := range []struct {
		s     submission
		files int
		says  string
	}{
		{submission{}, -1, ""},
		{submission{beside: along{extra: []extraFile{{"b", []byte("5")}}}, goes: "the input"}, 1,
			"sluice: the input goes along: 1 file, 1 ("},
		{submission{}, -1, ""},
		{submission{dir: dir, beside: along{extra: []extraFile{{"b", nil}, {"c", nil}}}}, 3, ""},
		{submission{dir: dir, goes: here}, 1, "sluice: the current directory goes along: 1 file, 4 ("},
		{submission{dir: dir, goes: here}, 1, ""},
		{submission{dir: dir, beside: along{without: []string{filepath.Join(dir, "a")}}, goes: here}, 0,
			"sluice: the current directory goes along: no files, 0 ("},
	} {
		said.Reset()
		data, err := c.s.pack(a, false, packed)
		files := -1
		if data != nil {
			files = len(entriesOf(t, data))
		}
		if err != nil || files != c.files || !strings.HasPrefix(said.String(), c.says) || (said.Len() > 0) != (c.says != "") {
			t.Errorf("%+v: %d files, %v, says %q", c.s, files, err, said.String())
		}
	}
	_, err := (&submission{file: "map", dir: filepath.Join(dir, "a"), goes: here}).pack(a, false, packed)
	if err == nil || !strings.Contains(err.Error(), "--no-workdir leaves it behind") {
		t.Error(err)
	}
}

// FuzzStaysInside compares with the file system's own way of resolving names.
func FuzzStaysInside(f *testing.F) {
	f.Add("a/b", "../c")
	f.Add("a", "../../c")
	f.Add("a/b/c", "./../../../x")
	f.Fuzz(func(t *testing.T, name, target string) {
		if !filepath.IsLocal(name) || strings.Contains(name, "\\") || strings.Contains(target, "\\") {
			return
		}
		name = filepath.Clean(name)
		got := staysInside(name, target)
		rel, err := filepath.Rel("/top", filepath.Join("/top", filepath.Dir(name), target))
		// Joining can't climb above the root, so a target that climbs far is judged by its text alone.
		want := err == nil && !filepath.IsAbs(target) && filepath.IsLocal(rel) &&
			filepath.IsLocal(filepath.Join(filepath.Dir(name), target))
		if got != want && filepath.Join(filepath.Dir(name), target) != "" {
			t.Fatalf("staysInside(%q, %q) = %v, want %v", name, target, got, want)
		}
	})
}

// TestNamesOfCommands: what runs without a name is called as its program, as far as a job can be.
func TestNamesOfCommands(t *testing.T) {
	for program, want := range map[string]string{"/usr/bin/My_Tool.py": "my-tool-", "./-": "",
		strings.Repeat("x", 99): strings.Repeat("x", 40) + "-"} {
		if name := runName(program); !job.ValidName(name) || !strings.HasPrefix(name, want) {
			t.Errorf("runName(%q) = %q", program, name)
		}
	}
}
