package foreign

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// nobody is a user who owns nothing on a machine.
const nobody = 65534

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open is a folder that every user can get to.
func open(t *testing.T, mode os.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	for at := dir; strings.HasPrefix(at, os.TempDir()+"/"); at = filepath.Dir(at) {
		check(t, os.Chmod(at, mode))
	}
	return dir
}

// copyOfMe is this program where every user can run it.
func copyOfMe(t *testing.T, dir string) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	check(t, err)
	defer from.Close()
	path := filepath.Join(dir, "me")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o755)
	check(t, err)
	_, err = io.Copy(to, from)
	check(t, err)
	check(t, to.Close())
	return path
}

// TestNothingOutsideATreeIsTouched: root handles a tree while its owner exchanges directories for links to root's own.
func TestNothingOutsideATreeIsTouched(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped: only root has something that its tenants have not")
	}
	base := open(t, 0o711)
	tree, outside := filepath.Join(base, "tree"), filepath.Join(base, "outside")
	program, secret := filepath.Join(outside, "program"), filepath.Join(outside, "closed", "secret")
	for _, d := range []string{tree, outside, filepath.Join(outside, "closed")} {
		check(t, os.Mkdir(d, 0o755))
	}
	check(t, os.WriteFile(program, []byte("a program of root's"), 0o755))
	check(t, os.Chmod(program, 0o755|os.ModeSetuid))
	check(t, os.WriteFile(secret, []byte("root's"), 0o600))
	check(t, os.Chmod(filepath.Dir(secret), 0o500))
	check(t, os.Chown(tree, nobody, nobody))

	tenant := exec.Command(copyOfMe(t, base), "tenant", tree, outside)
	tenant.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	check(t, tenant.Start())
	defer func() { _ = tenant.Process.Kill(); _ = tenant.Wait() }()

	untouched := func(after string) {
		t.Helper()
		for path, mode := range map[string]os.FileMode{
			program: 0o755 | os.ModeSetuid, secret: 0o600, filepath.Dir(secret): 0o500 | os.ModeDir, outside: 0o755 | os.ModeDir,
		} {
			info, err := os.Lstat(path)
			check(t, err)
			if st := info.Sys().(*syscall.Stat_t); info.Mode() != mode || st.Uid != 0 {
				t.Fatalf("%s: %s has mode %v and owner %d, was %v and root's", after, path, info.Mode(), st.Uid, mode)
			}
		}
	}
	seen := map[string]bool{}
	for n, until := 0, time.Now().Add(time.Minute); n < 3000 || !seen["d/closed/secret"] && time.Now().Before(until); n++ {
		check(t, Walk(tree, func(e *Entry) error {
			seen[e.Path] = true
			if f, err := e.Open(); err == nil && e.Plain {
				text, err := io.ReadAll(f)
				if err != nil || string(text) != "mine" && len(text) > 0 {
					t.Errorf("%s reads %q, %v: that is not in the tree", e.Path, text, err)
				}
				_ = f.Close()
			}
			return nil
		}))
		if n := Size(tree, 1<<20); n > 4*2*3 {
			t.Fatalf("the tree has %d bytes: that counts what is not in it", n)
		}
		_ = Seal(filepath.Join(tree, "d")) // not there, a link, or a directory
		untouched("sealing")
		_ = Remove(filepath.Join(tree, "d")) // its owner may be faster for ever: then it says so
		_ = Remove(filepath.Join(tree, "e"))
		untouched("removing")
	}
	if !seen["d/closed/secret"] {
		t.Errorf("saw only %v: the tenant hardly ran", seen)
	}
}

// TestADeepTreeCostsNoDescriptors: a program can nest directories deeper than any process has descriptors.
func TestADeepTreeCostsNoDescriptors(t *testing.T) {
	root := filepath.Join(t.TempDir(), "deep")
	check(t, os.Mkdir(root, 0o700))
	at, err := unix.Open(root, unix.O_PATH, 0)
	check(t, err)
	for range 3000 {
		check(t, unix.Mkdirat(at, "down", 0o700))
		next, err := unix.Openat(at, "down", unix.O_PATH, 0)
		check(t, err)
		check(t, unix.Close(at))
		at = next
	}
	check(t, unix.Close(at))
	if _, _, err := Sync(root); errkind.Of(err) != errkind.Invalid {
		t.Errorf("making a tree durable that is nested too deeply: %v", err)
	}
	out, err := exec.Command("/proc/self/exe", "frugal", root).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Lstat(root); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestWhatIsInATree(t *testing.T) {
	top := t.TempDir()
	other := filepath.Join(top, "other")
	check(t, os.WriteFile(other, []byte("elsewhere"), 0o644))
	root := filepath.Join(top, "root")
	check(t, os.MkdirAll(filepath.Join(root, "a", "b"), 0o755))
	check(t, os.WriteFile(filepath.Join(root, "a", "b", "f"), []byte("12345"), 0o644))
	check(t, os.Symlink(other, filepath.Join(root, "link")))
	check(t, os.Symlink(top, filepath.Join(root, "up")))
	check(t, os.Link(other, filepath.Join(root, "hard")))
	check(t, unix.Mkfifo(filepath.Join(root, "pipe"), 0o644))
	var all []string
	check(t, Walk(root, func(e *Entry) error {
		if f, err := e.Open(); (err == nil) != e.Plain {
			t.Errorf("opening %q: %v", e.Path, err)
		} else if err == nil {
			_ = f.Close()
		}
		all = append(all, e.Path)
		return nil
	}))
	slices.Sort(all)
	if want := []string{"", "a", "a/b", "a/b/f", "hard", "link", "pipe", "up"}; !slices.Equal(all, want) {
		t.Errorf("saw %q, want %q", all, want)
	}
	if n := Size(root, 1<<20); n != 5+9 {
		t.Errorf("%d bytes", n)
	}
	if n := Size(other, 1<<20); n != 9 {
		t.Errorf("a file has %d bytes", n)
	}
	if n := Size(filepath.Join(top, "none"), 1<<20); n != 0 {
		t.Errorf("nothing has %d bytes", n)
	}
	if n, _, err := Sync(root); n != 2 || err != nil {
		t.Errorf("%d files, %v", n, err)
	}
	if n := Size(root, 10); n <= 10 || n > 14 {
		t.Errorf("%d bytes, want more than the limit and no more than there are", n)
	}
	if _, _, err := Sync(filepath.Join(top, "none")); !os.IsNotExist(err) {
		t.Errorf("a tree that is not there was made durable: %v", err)
	}
	for _, odd := range []string{"pipe", "link", "up"} { // what a program may leave where its directory was
		if n, _, err := Sync(filepath.Join(root, odd)); n != 0 || err != nil {
			t.Errorf("%s as a tree: %d files, %v", odd, n, err)
		}
	}
	check(t, Seal(root))
	for path, mode := range map[string]os.FileMode{"root": 0o555, "root/a/b": 0o555, "root/a/b/f": 0o444, "other": 0o644,
		"root/hard": 0o644} {
		if info, err := os.Stat(filepath.Join(top, path)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s sealed: %v, %v, want %v", path, info.Mode(), err, mode)
		}
	}
	for _, path := range []string{"root", "none", "other"} {
		if err := Remove(filepath.Join(top, path)); err != nil {
			t.Error(err)
		}
	}
	if left, err := os.ReadDir(top); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestAClosedTreeGoes: a program may take every right from its own directories.
func TestAClosedTreeGoes(t *testing.T) {
	base := open(t, 0o777)
	root := filepath.Join(base, "root")
	deep := filepath.Join(root, "a", "b", "c")
	check(t, os.MkdirAll(deep, 0o777))
	check(t, os.WriteFile(filepath.Join(deep, "f"), nil, 0o600))
	asRoot := os.Geteuid() == 0
	for at := deep; at != base; at = filepath.Dir(at) {
		if asRoot {
			check(t, os.Chown(at, nobody, nobody))
		}
		check(t, os.Chmod(at, 0))
	}
	if asRoot { // who may pass anywhere: so the owner does it
		owner := exec.Command(copyOfMe(t, base), "remove", root)
		owner.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		if out, err := owner.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	} else {
		check(t, Remove(root))
	}
	if _, err := os.Lstat(root); !os.IsNotExist(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	plain, link, pipe := filepath.Join(dir, "plain"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	check(t, os.WriteFile(plain, []byte("text"), 0o600))
	check(t, os.Symlink(plain, link))
	check(t, unix.Mkfifo(pipe, 0o600))
	if text, err := ReadFile(plain, 4); string(text) != "text" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	for _, path := range []string{link, pipe, dir} {
		if _, err := ReadFile(path, 4); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := ReadFile(plain, 3); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a longer file: %v", err)
	}
	if _, err := ReadFile(filepath.Join(dir, "none"), 4); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}
