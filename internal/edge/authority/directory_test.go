package authority

import (
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
)

// A crash leaves a temporary file, whole or torn: the next change is made all the same.
func TestWhatACrashLeaves(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{rootFile, membersFile} {
		if err := os.WriteFile(filepath.Join(dir, name+".tmp"), []byte("torn"), 0o444); err != nil {
			t.Fatal(err)
		}
	}
	a := open(t, dir)
	newMachine(t, "a").join(t, a, invite(t, a, "", t0))
	if got := open(t, dir).Machines(); len(got) != 1 {
		t.Errorf("machines: %+v", got)
	}
	for _, name := range []string{rootFile, membersFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

// What can't be put in its place has not happened either.
func TestAFileThatCantBeReplaced(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	i := invite(t, a, "", t0)
	path := filepath.Join(dir, membersFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(path, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Join(i.Secret(), "a", newMachine(t, "a").request, t0); err == nil || len(a.Machines()) != 0 {
		t.Errorf("joined: %v, %+v", err, a.Machines())
	}
}

// The list of who has joined is part of what there is from the beginning: a directory without it has lost it, and would give numbers twice.
func TestAListThatIsLost(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	if err := os.Remove(filepath.Join(dir, membersFile)); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, t0)
	refuses(t, err, errkind.Corrupt, "is missing")
	// The first start may end between the two files: the list of nobody is there first, and the next start goes on.
	dir = t.TempDir()
	open(t, dir)
	if err := os.Remove(filepath.Join(dir, rootFile)); err != nil {
		t.Fatal(err)
	}
	a := open(t, dir)
	newMachine(t, "a").join(t, a, invite(t, a, "", t0))
}

// A directory or a list that others may write would let them join.
func TestAPlaceThatOthersMayWrite(t *testing.T) {
	for _, name := range []string{".", membersFile} {
		dir := t.TempDir()
		open(t, dir)
		if err := os.Chmod(filepath.Join(dir, name), 0o720); err != nil {
			t.Fatal(err)
		}
		_, err := Open(dir, t0)
		refuses(t, err, errkind.Denied, "written by others")
	}
}
