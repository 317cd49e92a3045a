package zone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// markets runs a test under both mechanisms that offer windows.
func markets(t *testing.T, test func(t *testing.T, w *world)) {
	for name, make := range map[string]func(t *testing.T) *world{
		"sja":   func(t *testing.T) *world { return newWorld(t) },
		"jasda": func(t *testing.T) *world { return newMarket(t, auction.Config{}) },
	} {
		t.Run(name, func(t *testing.T) { test(t, make(t)) })
	}
}

// brings adds a slice of a node to a world.
func (w *world) brings(id job.SliceID, by job.NodeID, mib int64) *simSlice {
	s := &simSlice{node: by, view: protocol.Slice{ID: id, Speed: 1000, Capacity: trp.Vector{quantity.Amount(mib << 20)}}}
	w.slices = append(w.slices, s)
	return s
}

// dies makes a node fall silent for good: nothing that it says or hears gets through.
func (w *world) dies(by job.NodeID) {
	hear := w.lose
	w.lose = func(m *protocol.Message) bool {
		return hear != nil && hear(m) || m.From == node(string(by)) || m.To == node(string(by))
	}
}

// passes has time go by.
func (w *world) passes(d time.Duration) {
	for end := w.now.Add(d); w.now < end; {
		w.tick()
	}
}

// TestANodeThatComesLate: nobody named it, and it speaks for the first time an hour after the zone began. What has waited for it runs
// there, whatever the kind of its work; so does a gang that needs it beside another.
func TestANodeThatComesLate(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.brings("early/a", "early", 512)
		pair := rigid(t, "pair", time.Minute, 400, 2)
		pair.Topology = job.SameZone
		w.submit(items(t, "items", 60, 900, 2), steps(t, "steps", 60, 10, 900), rigid(t, "rigid", time.Minute, 900, 1), pair)
		w.passes(time.Hour)
		if len(w.closed) > 0 {
			t.Fatalf("before it comes %v are over: the test tests nothing", w.closed)
		}
		if e, _ := w.z.Explain(w.now, "items"); !strings.Contains(e.Summary, "900 MiB") {
			t.Errorf("explained is %q", e.Summary)
		}
		w.brings("late/a", "late", 1024)
		w.until(time.Hour)
		finished(t, w, "items", "steps", "rigid", "pair")
	})
}

// TestANodeThatNeverComesBack: the zone goes on asking it, as long as it knows no better. What runs there is given up when it can run no
// more, and not earlier, and is done again elsewhere; jobs that come later run elsewhere without long waits.
func TestANodeThatNeverComesBack(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.brings("gone/a", "gone", 512)
		w.submit(items(t, "first", 60, 100, 1))
		for len(w.slices[0].runs) == 0 {
			w.tick()
		}
		lease := w.slices[0].runs[0].m
		end := lease.Body.(*protocol.Work).End
		w.dies("gone")
		w.brings("here/a", "here", 512)
		for i := range 5 {
			w.submit(items(t, fmt.Sprint("later", i), 10, 100, 1))
		}
		w.passes(2 * time.Minute)
		for i := range 5 {
			finished(t, w, job.ID(fmt.Sprint("later", i)))
		}
		w.until(time.Hour)
		finished(t, w, "first")
		f := w.released(lease.Token)
		if f == nil || f.At < end.Add(5*time.Second) || f.At > end.Add(10*time.Second) ||
			f.Body.(*protocol.ClaimEnd).Text != "its node reported nothing by the lease's end" {
			t.Errorf("its lease ended at %v, and was given up as %+v", end, f)
		}
	})
}

// TestWhatFitsOnlyAGoneNode waits, and is told why: what it won was not answered.
func TestWhatFitsOnlyAGoneNode(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.brings("gone/a", "gone", 1024)
		w.brings("here/a", "here", 512)
		w.tick()
		w.dies("gone")
		w.submit(items(t, "a", 60, 900, 1), rigid(t, "r", time.Minute, 900, 1))
		w.passes(10 * time.Minute)
		for _, id := range []job.ID{"a", "r"} {
			e, _ := w.z.Explain(w.now, id)
			if !strings.Contains(e.Summary, "its node does not answer") {
				t.Errorf("%s is explained by %q", id, e.Summary)
			}
		}
	})
}

// TestAPlaceOnAGoneNodeKeepsNobodyWaiting: a rigid job, and a gang, could begin there at once if it were there; they begin on another node
// though short work comes without end.
func TestAPlaceOnAGoneNodeKeepsNobodyWaiting(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.brings("gone/a", "gone", 512)
		w.brings("here/a", "here", 512)
		w.brings("there/a", "there", 512)
		w.tick()
		w.submit(items(t, "busy", 120, 100, 2))
		w.tick()
		w.dies("gone")
		pair := rigid(t, "pair", time.Minute, 400, 2)
		pair.Topology = job.SameZone
		w.submit(rigid(t, "r", time.Minute, 400, 1), pair)
		for i := 0; w.now < 300e9; i++ {
			if i%4 == 0 {
				w.submit(items(t, fmt.Sprint("short", i), 15, 100, 1))
			}
			w.tick()
		}
		finished(t, w, "r", "pair")
	})
}

// TestOutputOnAGoneNode: all of a job is committed, and its node is gone before it has said that the output is in its place. The job is
// over half an hour later, and says where its output should be.
func TestOutputOnAGoneNode(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.brings("gone/a", "gone", 512)
		w.submit(items(t, "a", 20, 100, 1))
		w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published }
		for w.count(protocol.Committed) == 0 {
			w.tick()
		}
		w.dies("gone")
		from := w.now
		w.until(2 * time.Hour)
		v := w.closed["a"]
		if late := w.now.Sub(from); late < 29*time.Minute || late > 31*time.Minute || v.State != job.Failed ||
			!strings.Contains(v.Reason, "node gone did not say within 30m0s that the output of 20 units [0,20) is in its place") {
			t.Errorf("it is over after %v: %+v", late, v)
		}
	})
}

// TestARemovedNode: what it offers is for sale no more, nor listed; what it was sold is given up when it can run no more, and not earlier.
// A machine that comes by its name is a new one, which begins to count its boots and views anew.
func TestARemovedNode(t *testing.T) {
	markets(t, func(t *testing.T, w *world) {
		w.epoch = 7
		old := w.brings("m/a", "m", 1024)
		w.brings("here/a", "here", 512)
		w.submit(items(t, "runs", 60, 900, 1))
		for len(old.runs) == 0 {
			w.tick()
		}
		lease := old.runs[0].m
		end := lease.Body.(*protocol.Work).End
		if at, none := w.z.Survey().Sold("m"), w.z.Survey().Sold("here"); at != end || none != 0 {
			t.Errorf("what was sold of it ends at %v, and of another %v; its lease at %v", at, none, end)
		}
		w.dies("m")
		asked := 0
		hear := w.lose
		w.lose = func(m *protocol.Message) bool {
			if m.To == node("m") && m.Kind == protocol.Ask {
				asked++
			}
			return hear(m)
		}
		gone := protocol.Message{Kind: protocol.Removed, From: protocol.Address{Role: protocol.Person}, Body: &protocol.Removal{Node: "m"}}
		w.step(gone)
		w.submit(items(t, "waits", 30, 900, 1), items(t, "small", 30, 100, 1))
		for range 2 { // a word that is doubled changes nothing
			w.passes(10 * time.Second)
			w.step(gone)
		}
		for _, x := range w.z.Windows(w.now) {
			if x.Slice == "m/a" {
				t.Errorf("its window is open: %+v", x)
			}
		}
		e, _ := w.z.Explain(w.now, "waits")
		if slices.ContainsFunc(e.Slices, func(f status.SliceFit) bool { return f.Slice == "m/a" }) || len(e.Slices) != 1 {
			t.Errorf("it is explained by %+v, want what is there", e.Slices)
		}
		if shown := w.z.Survey().Offered(w.now); len(shown) != 1 || w.z.Survey().Sold("m") != end {
			t.Errorf("%d slices are listed, and what was sold of it ends at %v, want 1, and %v", len(shown), w.z.Survey().Sold("m"), end)
		}
		w.passes(end.Add(30 * time.Second).Sub(w.now))
		if f := w.released(lease.Token); f == nil || f.At < end.Add(5*time.Second) || f.At > end.Add(10*time.Second) {
			t.Errorf("its lease ended at %v, and was given up as %+v", end, f)
		}
		if finished(t, w, "small"); asked > 0 {
			t.Errorf("it was asked %d times for what it does not offer any more", asked)
		}
		w.lose = nil // another machine, by the same name
		w.epoch, old.vers, old.sent, old.runs, old.busy = 1, 0, "", nil, nil
		w.mail.newest = map[job.SliceID]uint64{}
		w.until(time.Hour)
		finished(t, w, "runs", "waits")
	})
}
