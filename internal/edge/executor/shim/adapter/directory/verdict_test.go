package directory

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
)

const yielded = 85

// TestWhatCounts: what counts of a subjob by how its program ends, in a job of 100 steps of which it has 10 to 20.
func TestWhatCounts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ending)
		upTo   int64
		done   bool
		status int
		says   string
	}{
		"it stopped when it was told": {func(e *ending) { e.told, e.reached = true, 15 }, 15, false, yielded, ""},
		"with another status":         {func(e *ending) { e.told, e.reached, e.status = true, 15, 1 }, 15, false, yielded, ""},
		"by the signal, and had saved before": {func(e *ending) {
			e.told, e.reached, e.signaled, e.status = true, 15, true, own
		}, 15, false, yielded, ""},
		"its part is done":               {func(e *ending) { e.told, e.reached = true, 20 }, 20, false, 0, ""},
		"it went on beyond its part":     {func(e *ending) { e.told, e.reached = true, 27 }, 20, false, 0, ""},
		"it ended early by itself":       {func(e *ending) { e.reached = 15 }, 15, false, yielded, ""},
		"it crashed behind a checkpoint": {func(e *ending) { e.reached, e.status = 15, 3 }, 15, false, own, ""},
		"it crashed at once":             {func(e *ending) { e.reached, e.status = 10, 3 }, 10, false, own, "no further"},
		"it ended at once":               {func(e *ending) { e.reached = 10 }, 10, false, 1, "is too high"},
		"it saved, and came no further":  {func(e *ending) { e.told, e.reached = true, 10 }, 10, false, 1, "no further"},
		"it saved nothing": {func(e *ending) { e.told, e.reached, e.holds, e.saved = true, 15, false, false }, 10, false, 1,
			"nothing was saved in out/ckpt before the program had to end"},
		"it saved nothing new": {func(e *ending) { e.told, e.reached, e.saved = true, 10, false }, 10, false, 1,
			"nothing new was saved in out/ckpt before"},
		"it was killed, and had saved nothing": {func(e *ending) {
			e.told, e.known, e.holds, e.saved, e.torn, e.signaled, e.status = true, false, false, false, true, true, own
		}, 10, false, own, "nothing was saved in out/ckpt before the program had to end"},
		"it was killed, and had saved nothing new": {func(e *ending) {
			e.told, e.reached, e.saved, e.torn, e.signaled, e.status = true, 10, false, true, true, own
		}, 10, false, own, "nothing new was saved in out/ckpt before the program had to end"},
		"it was killed by others, and had saved nothing": {func(e *ending) {
			e.known, e.holds, e.saved, e.torn, e.signaled, e.status = false, false, false, true, true, own
		}, 10, false, own, "nothing was saved in out/ckpt before the program ended"},
		"it crashed, and had saved nothing": {func(e *ending) {
			e.known, e.holds, e.saved, e.status = false, false, false, 3
		}, 10, false, own, "nothing was saved in out/ckpt before the program ended"},
		"it ended well, and had saved nothing": {func(e *ending) { e.known, e.holds, e.saved = false, false, false }, 10, false, 1,
			"ended by itself, and has saved nothing in out/ckpt"},
		"what came along is further": {func(e *ending) { e.told, e.reached, e.saved = true, 15, false }, 15, false, yielded, ""},
		"nobody knows":               {func(e *ending) { e.told, e.known = true, false }, 10, false, 1, "nothing says"},
		"it was killed while it wrote": {func(e *ending) {
			e.told, e.reached, e.torn, e.signaled, e.status = true, 15, true, true, own
		}, 10, false, own, "while it wrote"},
		"all is done":                          {func(e *ending) { e.to, e.reached = 100, 100 }, 100, true, 0, ""},
		"all is done, when it was told to end": {func(e *ending) { e.to, e.reached, e.told = 100, 103, true }, 100, true, 0, ""},
		"all is done before its part says so":  {func(e *ending) { e.reached = 100 }, 20, false, 0, ""},
		"it says so, and has not ended well":   {func(e *ending) { e.to, e.reached, e.status = 100, 100, 1 }, 99, false, own, ""},
		"no length: it ended by itself":        {func(e *ending) { e.total, e.reached = job.OpenTotal, 17 }, 17, true, 0, ""},
		"no length: at once, where it was": {func(e *ending) { e.total, e.reached, e.saved = job.OpenTotal, 10, false }, 11, true,
			0, ""},
		"no length: behind its part": {func(e *ending) { e.total, e.reached = job.OpenTotal, 31 }, 20, true, 0, ""},
		"no length: it was told": {func(e *ending) { e.total, e.reached, e.told = job.OpenTotal, 17, true }, 17, false,
			yielded, ""},
		"no length: it failed": {func(e *ending) { e.total, e.reached, e.status = job.OpenTotal, 17, 2 }, 17, false, own, ""},
		"no length: it has left nothing": {func(e *ending) { e.total, e.reached, e.holds, e.saved = job.OpenTotal, 17, false, false }, 10,
			false, 1, "has saved nothing in out/ckpt"},
	} {
		e := ending{path: "out/ckpt", from: 10, to: 20, total: 100, known: true, holds: true, saved: true}
		c.change(&e)
		upTo, done, status, why := e.verdict(yielded)
		if upTo != c.upTo || done != c.done || status != c.status || (c.says == "") != (why == "") || !strings.Contains(why, c.says) {
			t.Errorf("%s: %d, %v, %d, %q; want %d, %v, %d, %q", name, upTo, done, status, why, c.upTo, c.done, c.status, c.says)
		}
	}
}

// TestNothingCountsThatIsNotThere: whatever happens, what counts is within the part, has a checkpoint that is whole, and is all only if the
// program has ended with 0; and who has done nothing is never told from a subjob that yields.
func TestNothingCountsThatIsNotThere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := ending{total: rapid.Int64Range(1, 30).Draw(t, "total"), told: rapid.Bool().Draw(t, "told"),
			reached: rapid.Int64Range(0, 40).Draw(t, "reached"), known: rapid.Bool().Draw(t, "known"), holds: rapid.Bool().Draw(t, "holds"),
			saved: rapid.Bool().Draw(t, "saved")}
		e.from = rapid.Int64Range(0, e.total-1).Draw(t, "from")
		e.to = rapid.Int64Range(e.from+1, e.total).Draw(t, "to")
		if e.signaled = rapid.Bool().Draw(t, "signaled"); e.signaled {
			e.status, e.torn = own, rapid.Bool().Draw(t, "torn")
		} else {
			e.status = rapid.SampledFrom([]int{0, 1, 85, 86}).Draw(t, "status")
		}
		upTo, done, status, why := e.verdict(yielded)
		switch {
		case upTo < e.from || upTo > e.to || done != (upTo == e.total):
			t.Fatalf("%+v: up to %d, done %v", e, upTo, done)
		case done && (e.status != 0 || e.reached < e.total):
			t.Fatalf("%+v: it is done", e)
		case upTo > e.from && !done && (!e.holds || !e.known || e.torn && e.saved || e.reached < upTo):
			t.Fatalf("%+v: %d counts", e, upTo)
		case upTo == e.from && (status == 0 || status == yielded || why == ""):
			t.Fatalf("%+v: nothing counts, and it ends with %d: %q", e, status, why)
		case status == 0 && upTo != e.to:
			t.Fatalf("%+v: it ends with 0 at %d", e, upTo)
		case !e.saved && strings.Contains(why, "wrote"):
			t.Fatalf("%+v: it wrote nothing, and is told %q", e, why)
		}
	})
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct {
		text, by string
		number   int64
		found    bool
	}{
		{"epoch 3 step 1200 loss 0.25", `step (\d+)`, 1200, true},
		{"epoch 3 step 1,234,567 loss 0.25", `step \S+`, 1_234_567, true},
		{" 42%|####      | 4200/10000 [01:02<01:30]", `(\d+)/\d+`, 4200, true},
		{"step=12.9", `step=\S+`, 12, true},
		{"nothing", `step (\d+)`, 0, false},
		{"step none", `step (\w+)`, 0, false},
		{"step 99999999999999999999", `step (\d+)`, 0, false},
	} {
		if n, found := numberIn(c.text, regexp.MustCompile(c.by)); n != c.number || found != c.found {
			t.Errorf("%q by %q: %d, %v; want %d, %v", c.text, c.by, n, found, c.number, c.found)
		}
	}
	for name, want := range map[string]int64{"checkpoint-500": 500, "step_001200.pt": 1200, "epoch=3-step=1200.ckpt": 1200, "w10.h5": 10,
		"last.pt": -1, "last": -1} {
		if n, found := numberOf(name); found != (want >= 0) || found && n != want {
			t.Errorf("%s: %d, %v; want %d", name, n, found, want)
		}
	}
}

// TestWhatWasSaidBeforeACheckpoint counts, and nothing that was said much later.
func TestWhatWasSaidBeforeACheckpoint(t *testing.T) {
	begin := time.Unix(1_800_000_000, 0)
	at := func(seconds float64) time.Time { return begin.Add(time.Duration(seconds * float64(time.Second))) }
	var m marks
	if _, ok := m.by(at(9)); ok {
		t.Error("nothing was said")
	}
	for i := range int64(4) {
		m = m.say(at(float64(10*i)), i)
		m = m.say(at(float64(10*i)+1), i) // the same again
	}
	for _, c := range []struct {
		at     float64
		number int64
		ok     bool
	}{{-5, 0, false}, {-0.5, 0, true}, {0, 0, true}, {8, 0, true}, {9.5, 1, true}, {25, 2, true}, {1000, 3, true}} {
		if n, ok := m.by(at(c.at)); n != c.number || ok != c.ok {
			t.Errorf("at %v: %d, %v; want %d, %v", c.at, n, ok, c.number, c.ok)
		}
	}
	m = nil
	for i := range int64(50) { // a step each tenth of a second, and a save behind the 30th: no later step is in it
		m = m.say(at(float64(i)/10), i)
	}
	if n, _ := m.by(at(3.04)); n != 30 {
		t.Errorf("step %d counts, want 30", n)
	}
	if n, _ := m.by(at(3.07)); n != 31 {
		t.Errorf("step %d counts, want 31: at most the next one", n)
	}
	m = nil
	for i := range int64(5 * mostMarks) {
		m = m.say(at(float64(i)), i)
	}
	if n, _ := m.by(at(1e9)); n != 5*mostMarks-1 || len(m) > mostMarks {
		t.Errorf("of many the last is %d of %d", n, len(m))
	}
}
