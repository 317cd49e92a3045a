package authority

import (
	"regexp"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// A token that was withdrawn lets nobody join, also after a restart; those of others, and who has joined, stay.
func TestWithdraw(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	gone, other, anyone := invite(t, a, "p-1", t0), invite(t, a, "p-2", t0), invite(t, a, "", t0)
	first, second, third := newMachine(t, "p-1"), newMachine(t, "p-2"), newMachine(t, "x")
	for range 2 {
		if err := a.Withdraw("p-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Withdraw(""); err != nil {
		t.Fatal(err)
	}
	a = open(t, dir)
	_, err := a.Join(gone.Secret(), "p-1", first.request, t0)
	refuses(t, err, errkind.Denied, "not known here")
	second.join(t, a, other)
	third.join(t, a, anyone)
	if err := a.Withdraw("p-2"); err != nil {
		t.Fatal(err)
	}
	if second.join(t, a, other); !a.Has("p-2") { // its answer was lost, and it asks again
		t.Error("a machine that has joined is gone with its token")
	}
	again := invite(t, a, "p-1", t0)
	if first.join(t, a, again); !a.Has("p-1") {
		t.Error("a later token of the same name does not count")
	}
}

func TestID(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	id := a.ID()
	if !regexp.MustCompile(`^[0-9a-f]{8}$`).MatchString(id) {
		t.Errorf("id %q", id)
	}
	if _, err := a.NewToken("m", time.Hour, t0); err != nil {
		t.Fatal(err)
	}
	if b := open(t, dir); b.ID() != id {
		t.Errorf("%s after a restart, %s before", b.ID(), id)
	}
	if b := open(t, t.TempDir()); b.ID() == id {
		t.Error("two clusters have one id")
	}
}

func TestLatest(t *testing.T) {
	a := open(t, t.TempDir())
	if m, ok := a.Latest("m"); ok {
		t.Errorf("%+v has joined", m)
	}
	m := newMachine(t, "m")
	m.join(t, a, invite(t, a, "", t0))
	if is, ok := a.Latest("m"); !ok || is.Number != FirstNumber || !is.Removed.IsZero() {
		t.Errorf("%+v, %v", is, ok)
	}
	gone := t0.Add(time.Minute)
	if err := a.Remove("m", gone); err != nil {
		t.Fatal(err)
	}
	if is, ok := a.Latest("m"); !ok || !is.Removed.Equal(gone) {
		t.Errorf("after it was removed: %+v, %v", is, ok)
	}
	newMachine(t, "m").join(t, a, invite(t, a, "", t0))
	if is, ok := a.Latest("m"); !ok || is.Number != FirstNumber+1 || !is.Removed.IsZero() {
		t.Errorf("the one after it: %+v, %v", is, ok)
	}
}
