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
	"sluice.dev/sluice/internal/face/cli/clitest"

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
	packed, warnings, err := pack(dir, false, maxPacked)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"0 600 .hidden h", "0 600 a.txt alpha", "2 777 dangling nothing", "0 700 run.sh #!/bin/sh", "5 755 sub/ ",
		"0 600 sub/b beta", "2 777 sub/up ../a.txt"}
	if got := clitest.Entries(t, packed); !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if said := strings.Join(warnings, "\n"); len(warnings) != 3 || !strings.Contains(said, "sub/out is left out") ||
		!strings.Contains(said, "abs is left out") || !strings.Contains(said, "pipe is left out") {
		t.Errorf("warnings %q", warnings)
	}

	// The same files elsewhere are the same bytes, unless one was changed at another time.
	other := clitest.Tree(t, files)
	if err := errors.Join(os.Chmod(filepath.Join(other, "run.sh"), 0o700), unix.Mkfifo(filepath.Join(other, "pipe"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if again, _, err := pack(other, false, maxPacked); err != nil || !bytes.Equal(again, packed) {
		t.Errorf("packed differently: %v", err)
	}
	if err := os.Chtimes(filepath.Join(other, "a.txt"), time.Time{}, time.Unix(1e9+1, 0)); err != nil {
		t.Fatal(err)
	}
	if again, _, err := pack(other, false, maxPacked); err != nil || bytes.Equal(again, packed) {
		t.Errorf("a file that was changed later is packed the same: %v", err)
	}
	if withGit, _, err := pack(dir, true, maxPacked); err != nil || len(clitest.Entries(t, withGit)) != len(want)+3 {
		t.Errorf("with .git: %v", err)
	}
}

func TestPackLimits(t *testing.T) {
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte(rand.IntN(256))
	}
	dir := clitest.Tree(t, map[string]string{"small": "s", "data/large.bin": string(noise)})
	_, _, err := pack(dir, false, 100_000)
	if err == nil || !strings.Contains(err.Error(), "larger than 97.66Ki packed") ||
		!strings.Contains(err.Error(), "data/large.bin (292.97Ki)") {
		t.Errorf("error %v", err)
	}
	if _, _, err := pack(filepath.Join(dir, "small"), false, maxPacked); err == nil || !strings.Contains(err.Error(), "is no directory") {
		t.Errorf("error %v", err)
	}
	if _, _, err := pack(filepath.Join(dir, "missing"), false, maxPacked); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
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
	for command, want := range map[string]string{"/usr/bin/My_Tool.py": "my-tool-", "./-": "",
		strings.Repeat("x", 99): strings.Repeat("x", 40) + "-"} {
		if name := runName(command); !job.ValidName(name) || !strings.HasPrefix(name, want) {
			t.Errorf("runName(%q) = %q", command, name)
		}
	}
}
