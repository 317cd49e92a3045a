package pilots

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/supply"
)

// TestNobodyIsLost in random worlds: hosts that lose, double, revive, refuse and hang, a daemon that dies anywhere. A pilot is in the
// ledger from before its host could have it, and leaves it only while the host has none of it; there are never more than may be; and once
// nothing is wanted the host, the ledger and the list of tokens are empty.
func TestNobodyIsLost(t *testing.T) {
	base, worlds := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		worlds++
		dir := filepath.Join(base, strconv.Itoa(worlds))
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, dir)
		w.tick()
		known := map[string]bool{}
		var before []string
		check := func(what string) {
			recorded, there := w.recorded(), w.atHost()
			if len(recorded) > w.pool.Most {
				t.Fatalf("%s: %d pilots are counted, of at most %d", what, len(recorded), w.pool.Most)
			}
			for _, name := range recorded {
				known[name] = true
			}
			for _, name := range there {
				if !known[name] {
					t.Fatalf("%s: the host has %s, which was never written down", what, name)
				}
				if slices.Contains(before, name) && !slices.Contains(recorded, name) {
					t.Fatalf("%s: %s is at the host, and not counted any more", what, name)
				}
			}
			before = recorded
		}
		one := func(label string) string {
			names := append(w.atHost(), "none")
			return rapid.SampledFrom(names).Draw(t, label)
		}
		orders := func() supply.Order {
			var o supply.Order
			for range rapid.IntRange(0, 6).Draw(t, "asks") {
				o.Ask = append(o.Ask, w.pool.Lengths[0])
			}
			for _, p := range w.sight().Pilots {
				if rapid.IntRange(0, 3).Draw(t, "cancel") == 0 {
					o.Cancel = append(o.Cancel, supply.Cancel{Name: p.Name, Why: "nothing is left for it"})
				}
			}
			return o
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 9).Draw(t, "dies") == 0 {
				w.until = rapid.IntRange(0, 6).Draw(t, "after")
			}
			what := rapid.SampledFrom([]string{"tick", "tick", "tick", "order", "order", "order", "pass", "start", "join", "leave", "end",
				"preempt", "crash", "save", "double", "forget", "silence", "deafen", "late", "refuse", "unlink", "requeue"}).Draw(t, "what")
			switch what {
			case "tick":
				w.alive(func() { w.tick() })
			case "order":
				o := orders()
				w.alive(func() { w.order(o) })
			case "pass":
				w.pass(seconds(rapid.IntRange(1, 120).Draw(t, "seconds")))
			case "start":
				w.host.Start(one("which"))
			case "join":
				if name := one("which"); w.running(name) {
					w.cluster.join(name)
				}
			case "leave":
				w.cluster.leave(one("which"))
			case "requeue":
				w.host.Requeue(one("which"))
			case "end":
				w.gone(one("which"))
			case "preempt":
				w.host.Preempt(one("which"))
			case "crash":
				w.host.Crash()
			case "save":
				w.host.Save()
			case "double":
				w.host.Double(one("which"))
			case "forget":
				w.host.Forget()
			case "silence":
				w.host.Silence(rapid.Bool().Draw(t, "on"))
			case "deafen":
				w.host.Deafen(rapid.Bool().Draw(t, "on"))
			case "late":
				w.late = rapid.Bool().Draw(t, "on")
			case "refuse":
				var no error
				if rapid.Bool().Draw(t, "on") {
					no = errkind.Errorf(errkind.Exhausted, "too many of yours are here")
				}
				w.host.Refuse(no)
			case "unlink":
				w.unlink(one("which"))
			}
			w.settle()
			check(what)
		}
		w.host.Silence(false)
		w.host.Deafen(false)
		w.late = false
		w.until = -1
		for range 30 {
			w.pass(10 * time.Second)
			w.tick()
			var o supply.Order
			for _, p := range w.sight().Pilots {
				o.Cancel = append(o.Cancel, supply.Cancel{Name: p.Name, Why: "nothing is left"})
			}
			w.order(o)
			w.settle()
			check("the end")
		}
		if there, recorded := w.atHost(), w.recorded(); len(there)+len(recorded)+len(w.cluster.open) > 0 {
			t.Fatalf("left: at the host %v, in the ledger %v, tokens %v", there, recorded, w.cluster.open)
		}
	})
}

// running reports whether the host runs a copy of a pilot.
func (w *world) running(name string) bool {
	look, err := w.host.Provider("mark0001").Look(context.Background())
	if err != nil {
		return false
	}
	for _, s := range look.Seen {
		if s.Name == name && !s.Began.IsZero() && slices.Contains(w.atHost(), name) {
			return true
		}
	}
	return false
}

// gone ends a pilot by itself, with its machine.
func (w *world) gone(name string) {
	w.host.End(name, false)
	w.unlink(name)
}

// settle unlinks machines whose pilots are not there any more.
func (w *world) settle() {
	there := w.atHost()
	for name := range w.cluster.all {
		if !slices.Contains(there, string(name)) {
			w.unlink(string(name))
		}
	}
}

func (w *world) unlink(name string) {
	if m, ok := w.cluster.all[job.NodeID(name)]; ok {
		m.Up = false
		w.cluster.all[job.NodeID(name)] = m
	}
}
