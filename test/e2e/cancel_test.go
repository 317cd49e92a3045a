package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestACancelOfAProgramThatDoesNotEnd: it does not care for SIGTERM and has an hour of grace. Its owner is told what happens, it is
// killed long before that, and its slice is sold again. The same where the daemon dies meanwhile.
func TestACancelOfAProgramThatDoesNotEnd(t *testing.T) {
	t.Parallel()
	d := up(t, three, "--horizon", "3h")
	stubborn := `trap '' TERM USR1; echo here > "$SLUICE_OUTPUT_DIR/here"; while :; do sleep 1; done`
	d.submit(spec("stubborn", "items: {total: 3000, perItem: 1s}", stubborn, "grace: 1h"))
	d.running("stubborn", 1)
	says(t, d.must("slices"), "stubborn")
	says(t, d.must("cancel", "stubborn"), "stubborn cancelled; its last subjob ends within 60 s")
	j := d.job("stubborn")
	says(t, j.Reason, "1 subjobs are being stopped; it is over in")
	d.fails(1, []string{"it is being cancelled, and over within a minute"}, "delete", "stubborn")
	d.kill()
	d.start()
	if j = d.over("stubborn"); j.State != "CANCELLED" || j.Running != 0 {
		t.Errorf("it is %s with %d subjobs: %s", j.State, j.Running, j.Reason)
	}
	d.until("its slice is free", func() bool { return !strings.Contains(d.must("slices"), "stubborn") })
}

// TestACancelInALongStore: the store is away when a subjob has ended. The cancel is not held up by it, and what comes into the store
// when it is back does not stay there.
func TestACancelInALongStore(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, three)
	place := filepath.Join(d.dir, "elsewhere")
	d.flags = append(d.flags, "--config", d.write("daemon.yml", "store: local:"+place+"\n"))
	d.start()
	d.submit(spec("kept", "items: {total: 2, perItem: 10ms}", each("sleep 0.01")))
	d.done("kept")
	names := func() (n int) {
		for _, o := range d.stored("local:" + place) {
			n += len(o.Names)
		}
		return n
	}
	before, gate := names(), filepath.Join(d.dir, "gate")
	if before == 0 {
		t.Fatal("the store has no names of a job that is done")
	}
	d.submit(spec("long", "items: {total: 1, perItem: 1s}", each(`while [ ! -e `+gate+` ]; do sleep 0.05; done`), "maxFailures: 20"))
	d.running("long", 1)
	for _, err := range []error{os.Rename(place, place+".away"), os.WriteFile(place, nil, 0o600), os.WriteFile(gate, nil, 0o600)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.until("what it left is to be stored", func() bool { return strings.Contains(d.log.String(), "its result is told once it is there") })
	says(t, d.must("cancel", "long"), "long cancelled; its last subjob ends within 60 s")
	d.until("what is waited for is told", func() bool {
		return strings.Contains(d.job("long").Reason, "what 1 subjobs have left is being stored; it is over in")
	})
	if j := d.over("long"); j.State != "CANCELLED" || j.Progress != 0 {
		t.Errorf("it is %s with %d units: %s", j.State, j.Progress, j.Reason)
	}
	for _, err := range []error{os.Remove(place), os.Rename(place+".away", place)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d.until("what it left is gone", func() bool {
		left, err := filepath.Glob(filepath.Join(d.data, "runs", "[^.]*"))
		return err == nil && len(left) == 0 && names() == before
	})
	d.submit(spec("next", "items: {total: 2, perItem: 10ms}", each("sleep 0.01")))
	d.done("next")
}
