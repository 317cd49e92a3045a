package learn

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// measured is a job without a time, whose program takes start before its first unit and unit for each, alone on one slice that is offered
// in windows of at most longest.
type measured struct {
	spec           *job.Spec
	start, unit    time.Duration
	longest        time.Duration
	learned        protocol.Learned
	view           atomizer.View
	now            quantity.Instant
	pieces, wasted int
}

// next sells it one piece and has it run to its end. False: no window holds a piece.
func (m *measured) next() bool {
	m.view.Spec, m.view.Learned, m.view.Hopeful = m.spec, &m.learned, false
	w := atomizer.Window{Capacity: trp.Vector{1}, Speed: 1000, Start: m.now, End: m.now.Add(m.longest)}
	p, r := atomizer.Fit(&m.view, w)
	if r.Why == atomizer.TooShort { // as the estimator has it
		m.view.Hopeful = true
		p, r = atomizer.Fit(&m.view, w)
	}
	if r.Why != atomizer.Interested {
		return false
	}
	c := &protocol.Claim{Asked: m.now, Sale: protocol.Sale{Placement: protocol.Placement{Range: p.Range, Start: m.now,
		End: m.now.Add(p.Length), Plan: protocol.Plan{Run: p.Run, Wall: p.Wall}}, Speed: 1000}}
	n := min(p.Range.Len(), int64(max(0, p.Wall-m.start)/m.unit))
	res := &job.Result{Outcome: job.Done, Progress: p.Range.From + n, Start: m.now, End: m.now.Add(m.start + time.Duration(n)*m.unit)}
	if n < p.Range.Len() {
		res.Outcome, res.End = job.DeadlineKilled, c.End
	}
	done := job.Range{From: p.Range.From, To: max(p.Range.From, res.Progress/m.spec.Grid*m.spec.Grid)}
	if n == p.Range.Len() {
		done = p.Range
	}
	m.now = res.End.Add(time.Second)
	m.learned, _ = Result(m.now, m.spec, &m.learned, c, res, done, nowhere{})
	m.pieces++
	if m.view.Committed = m.view.Committed.Add(done); done.Empty() {
		m.wasted++
	}
	return true
}

// TestWhatIsMeasuredComesToItsEnd: whatever a unit truly takes, a job that says nothing of it is done if its shortest piece fits into the
// longest window, and never near to failing before that was tried; and one whose piece does not fit ends by failures of its own, which
// are counted from when no window is longer. Either takes few pieces.
func TestWhatIsMeasuredComesToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]job.Kind{job.Items, job.Steps}).Draw(t, "kind")
		total := rapid.OneOf(rapid.Int64Range(1, 3000), rapid.Int64Range(1, 10_000_000)).Draw(t, "total")
		table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: total, Mean: 1}}}, total, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		m := measured{spec: &job.Spec{Kind: kind, Total: total, Grid: rapid.Int64Range(1, min(total, 20)).Draw(t, "grid"), Parallelism: 1,
			Safe: table, MaxFailures: 3}, now: busyStart}
		m.unit = time.Duration(1) << rapid.IntRange(10, 45).Draw(t, "unit") // 1 us to 10 h
		m.start = time.Duration(rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, 600_000)).Draw(t, "start")) * time.Millisecond
		m.longest = time.Duration(rapid.Int64Range(10, 8*3600).Draw(t, "longest")) * time.Second
		least := m.start + time.Duration(min(m.spec.Grid, total))*m.unit
		for m.view.Committed.Len() < total && m.learned.Failures < m.spec.MaxFailures {
			before := m.learned
			if !m.next() {
				t.Fatalf("after %d pieces no window holds a piece: %+v", m.pieces, m.learned)
			}
			tried := atomizer.Trial(m.spec, &before, 1000)
			if before.Measures(m.spec) && m.learned.Failures > 0 && tried <= m.longest {
				t.Fatalf("it failed when it had had %v of %v", tried, m.longest)
			}
			if before.Measures(m.spec) && m.learned.Rate > 0 && m.learned.Rate+time.Millisecond < m.unit {
				t.Fatalf("a unit of %v was measured as %v", m.unit, m.learned.Rate)
			}
		}
		switch done := m.view.Committed.Len() == total; {
		case least <= m.longest && !done:
			t.Fatalf("its least piece takes %v of %v, and it failed after %d pieces: %+v", least, m.longest, m.pieces, m.learned)
		case least > m.longest && done && total > m.spec.Grid:
			t.Fatalf("its least piece takes %v of %v, and it is done", least, m.longest)
		}
		if least > m.longest/8 {
			return // the shortest run counts as a start, and leaves little of the window
		}
		// Trials of 1, 4, 16 minutes and so on up to the longest window, then a handful that converge; of the rest each fills its window.
		useful := int64(max(1, (m.longest-m.start)/m.unit)) / m.spec.Grid * m.spec.Grid
		if most := 16 + 3*int(total/max(1, useful, m.spec.Grid)); m.pieces > most {
			t.Fatalf("it took %d pieces, want at most %d: %+v", m.pieces, most, m.learned)
		}
	})
}

// TestAPieceThatMeasures: what each end of a piece of one unit teaches of a job that declares no time.
func TestAPieceThatMeasures(t *testing.T) {
	spec := &job.Spec{Kind: job.Steps, Total: 100, Grid: 1, Parallelism: 1, MaxFailures: 3, Launch: job.Launch{Grace: time.Second}}
	for _, c := range []struct {
		name     string
		outcome  job.Outcome
		ran      time.Duration
		planned  time.Duration
		done     bool
		trials   int64
		failures int
		rate     time.Duration
	}{
		{"done", job.Done, 20 * time.Second, time.Minute, true, 0, 0, 20 * time.Second},
		{"at once", job.Done, 0, time.Minute, true, 0, 0, time.Millisecond},
		{"its time was over", job.DeadlineKilled, 61 * time.Second, time.Minute, false, 1, 0, 0},
		{"it yielded when it was asked", job.Yielded, 60 * time.Second, time.Minute, false, 1, 0, 0},
		{"it gave up before that", job.Yielded, 30 * time.Second, time.Minute, false, 0, 1, 0},
		{"in the longest window there is", job.DeadlineKilled, 31 * time.Second, 30 * time.Second, false, 0, 1, 0},
		{"it failed", job.ExitFailed, 20 * time.Second, time.Minute, false, 0, 1, 0},
		{"it was cut short", job.Stopped, 20 * time.Second, time.Minute, false, 0, 0, 0},
		{"it was cut short and had done its unit", job.Stopped, 20 * time.Second, time.Minute, true, 0, 0, 0},
		{"its machine failed", job.NodeFailed, 20 * time.Second, time.Minute, false, 0, 0, 0},
	} {
		claim := &protocol.Claim{Asked: busyStart, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 1},
			Start: busyStart, End: busyStart.Add(c.planned + time.Second), Plan: protocol.Plan{Run: c.planned, Wall: c.planned}},
			Speed: 1000}}
		r := &job.Result{Outcome: c.outcome, Start: busyStart, End: busyStart.Add(c.ran)}
		done := job.Range{}
		if c.done {
			r.Progress, done.To = 1, 1
		}
		l, _ := Result(r.End, spec, &protocol.Learned{}, claim, r, done, nowhere{})
		if l.Trials != c.trials || l.Failures != c.failures || l.Rate != c.rate || l.Measures(spec) != (c.rate == 0) {
			t.Errorf("%s: %d trials, %d failures, %v a unit; want %d, %d, %v", c.name, l.Trials, l.Failures, l.Rate, c.trials, c.failures,
				c.rate)
		}
	}
}

// TestALargerPieceTellsMore: every rate has the start of its process in it, so that of a much larger piece replaces those before; where a
// time is declared all of them count.
func TestALargerPieceTellsMore(t *testing.T) {
	run := func(perUnit time.Duration, sizes ...int64) (l protocol.Learned) {
		spec := &job.Spec{Kind: job.Items, Total: 100_000, Grid: 1, Parallelism: 1, PerUnit: perUnit}
		for _, n := range sizes {
			took := 20*time.Second + time.Duration(n)*10*time.Millisecond
			c := &protocol.Claim{Asked: busyStart, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: n},
				Start: busyStart, End: busyStart.Add(time.Hour)}, Speed: 1000}}
			r := &job.Result{Outcome: job.Done, Progress: n, Start: busyStart, End: busyStart.Add(took)}
			l, _ = Result(r.End, spec, &l, c, r, job.Range{To: n}, nowhere{})
		}
		return l
	}
	for _, c := range []struct {
		perUnit time.Duration
		sizes   []int64
		kept    int
		sampled int64
		rate    time.Duration
	}{
		{0, []int64{1}, 1, 1, 20*time.Second + 10*time.Millisecond},
		{0, []int64{1, 100}, 1, 100, 210 * time.Millisecond},
		{0, []int64{1, 100, 124}, 2, 100, 210 * time.Millisecond},
		{0, []int64{1, 100, 400}, 1, 400, 60 * time.Millisecond},
		{0, []int64{400, 100, 400}, 3, 400, 210 * time.Millisecond},
		{time.Second, []int64{1, 100}, 2, 0, 20*time.Second + 10*time.Millisecond},
	} {
		if l := run(c.perUnit, c.sizes...); len(l.Rates) != c.kept || l.Sampled != c.sampled || l.Rate != c.rate {
			t.Errorf("%v of %v: %d rates, by %d units, %v; want %d, %d, %v", c.sizes, c.perUnit, len(l.Rates), l.Sampled, l.Rate, c.kept,
				c.sampled, c.rate)
		}
	}
}
