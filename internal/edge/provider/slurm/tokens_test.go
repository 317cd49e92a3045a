package slurm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/internal/edge/provider/slurm/slurmtest"
)

// A token is there while its pilot may start, for its user alone, and no longer.
func TestTokensOfPilots(t *testing.T) {
	h := slurmtest.New(t)
	o := options(h)
	o.Dir = t.TempDir()
	s := open(t, o)
	other := o
	other.Pool = "second"
	path := func(pool, name string) string {
		return filepath.Join(o.Dir, "pilots", "sluice.aaaa1111."+pool+"."+name+".token")
	}
	there := func(pool, name string) bool {
		_, err := os.Stat(path(pool, name))
		return err == nil
	}
	submit(t, s, "a", "b")
	submit(t, open(t, other), "a")
	text, err := os.ReadFile(path("pool", "a"))
	info, failed := os.Stat(path("pool", "a"))
	if err != nil || failed != nil || string(text) != "sluice-join-1-secret\n" || info.Mode().Perm() != 0o600 {
		t.Fatalf("%q, %v, %v, %v", text, info, err, failed)
	}
	h.Start("b")
	h.End("b", true)
	l := look(t, s)
	if !there("pool", "a") || there("pool", "b") || !there("second", "a") {
		t.Error("want the token of the one that is over removed, and no other")
	}
	if len(l.Seen) != 2 || !l.Seen[1].Failed || !strings.Contains(l.Seen[1].Why, "FAILED") {
		t.Errorf("%+v", l.Seen)
	}
	h.Refuse(errkind.Errorf(errkind.Denied, "no"))
	if err := s.Submit(t.Context(), pilot("c")); err == nil || there("pool", "c") {
		t.Errorf("%v: want no token of who was refused", err)
	}
	h.Refuse(nil)
	submit(t, s, "lost")
	h.Crash()
	submit(t, s, "a") // which was lost too
	if err := s.Cancel(t.Context(), []string{"lost"}); err != nil || there("pool", "lost") {
		t.Errorf("%v: want no token of who was cancelled, also where the host does not know it", err)
	}
	h.Deafen(true)
	if err := s.Submit(t.Context(), pilot("d")); err == nil || !there("pool", "d") {
		t.Errorf("%v: want the token of who may be there", err)
	}
	h.Crash() // which loses d, and a
	look(t, s)
	if !there("pool", "d") {
		t.Error("want the token kept while the submission may be under way")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(path("pool", "d"), old, old); err != nil {
		t.Fatal(err)
	}
	look(t, s)
	if there("pool", "d") {
		t.Error("want the token of who was lost removed in the end")
	}
	h.Deafen(false)
	submit(t, s, "g")
	h.Double("g")
	h.Update(func(state *slurmtest.State) {
		for _, j := range state.Jobs {
			if strings.HasSuffix(j.Name, ".g") {
				j.State, j.End = "NODE_FAIL", time.Now()
				break
			}
		}
	})
	if look(t, s); !there("pool", "g") {
		t.Error("want the token kept of whose other copy may still start")
	}
	half := filepath.Join(o.Dir, "pilots", ".token-1") // a daemon has died as it wrote it
	for age, want := range map[time.Duration]bool{time.Minute: true, time.Hour: false} {
		at := time.Now().Add(-age)
		err = os.WriteFile(half, []byte("sluice-join-1-secret\n"), 0o600)
		if err = errors.Join(err, os.Chtimes(half, at, at)); err != nil {
			t.Fatal(err)
		}
		look(t, s)
		if _, err := os.Stat(half); (err == nil) != want {
			t.Errorf("%v: a token half written %v ago, want it there: %t", err, age, want)
		}
	}
	if err := os.Mkdir(path("pool", "f"), 0o700); err != nil { // in its way
		t.Fatal(err)
	}
	if err := s.Submit(t.Context(), pilot("f")); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("%v of kind %v: want one by which the pilot is surely not there", err, errkind.Of(err))
	}
	if err := os.Chmod(filepath.Join(o.Dir, "pilots"), 0o750); err != nil {
		t.Fatal(err)
	}
	if _, err := slurm.Open(o); errkind.Of(err) != errkind.Denied {
		t.Errorf("a folder that others may read: %v", err)
	}
	if err := s.Submit(t.Context(), pilot("e")); errkind.Of(err) != errkind.Denied || there("pool", "e") {
		t.Errorf("a folder that others may read by now: %v", err)
	}
}
