package shim

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
)

func TestJudge(t *testing.T) {
	const killed = -1
	said := func(p int64, checkpoint bool) Ending {
		return Ending{Said: Progress{Progress: p, Checkpoint: checkpoint}, Spoke: true}
	}
	with := func(e Ending, change func(*Ending)) Ending { change(&e); return e }
	exit := func(code int) func(*Ending) { return func(e *Ending) { e.ExitCode = code } }
	asked := func(code int) func(*Ending) {
		return func(e *Ending) { e.ExitCode, e.Cause = code, job.DeadlineKilled }
	}
	forced := func(o job.Outcome) func(*Ending) {
		return func(e *Ending) { e.ExitCode, e.Signal, e.Cause, e.Forced = killed, 9, o, true }
	}
	for _, c := range []struct {
		name       string
		kind       job.Kind
		grid       int64
		end        Ending
		whole      bool
		extended   int64
		total      int64
		saves      bool
		outcome    job.Outcome
		progress   int64
		checkpoint bool
		detail     string
	}{
		{name: "exit 0 is all of it", kind: job.Items, outcome: job.Done, progress: 20},
		{name: "exit 0, whatever the file says", kind: job.Items, end: said(13, false), outcome: job.Done, progress: 20},
		{name: "exit 0 of a rigid job", kind: job.Rigid, outcome: job.Done, progress: 20},
		{name: "exit 0 after an extension it did not reread", kind: job.Items, extended: 30, outcome: job.Done, progress: 20},
		{name: "exit 0 after an extension it used", kind: job.Items, extended: 30, end: said(27, false), outcome: job.Done, progress: 27},
		{name: "exit 0 of steps with a checkpoint", kind: job.Steps, whole: true, outcome: job.Done, progress: 20, checkpoint: true},
		{name: "exit 0 of steps without", kind: job.Steps, outcome: job.ExitFailed, progress: 10, detail: "checkpoint"},
		{name: "exit 0 of steps at the total", kind: job.Steps, total: 20, outcome: job.Done, progress: 20},
		{name: "exit 0 when asked, silent", kind: job.Items, end: with(Ending{}, asked(0)), outcome: job.DeadlineKilled, progress: 10,
			detail: "exit 0 after SIGTERM"},
		{name: "exit 0 when asked, half done", kind: job.Items, end: with(said(15, false), asked(0)), outcome: job.DeadlineKilled,
			progress: 15, detail: "exit 85"},
		{name: "exit 0 when asked, all done", kind: job.Items, end: with(said(20, false), asked(0)), outcome: job.Done, progress: 20},
		{name: "yield", kind: job.Items, end: with(said(15, false), exit(85)), outcome: job.Yielded, progress: 15},
		{name: "yield with nothing", kind: job.Items, end: with(Ending{}, exit(85)), outcome: job.Yielded, progress: 10},
		{name: "yield of steps", kind: job.Steps, end: with(said(15, true), exit(85)), whole: true, outcome: job.Yielded, progress: 15,
			checkpoint: true},
		{name: "yield of steps, flag without a file", kind: job.Steps, end: with(said(15, true), exit(85)), outcome: job.Yielded,
			progress: 10, detail: "SLUICE_CHECKPOINT_DIR"},
		{name: "yield of steps, file without the flag", kind: job.Steps, end: with(said(15, false), exit(85)), whole: true,
			outcome: job.Yielded, progress: 10, detail: "\"checkpoint\": true"},
		{name: "rigid jobs can't yield", kind: job.Rigid, end: with(said(15, false), exit(85)), outcome: job.ExitFailed, progress: 10,
			detail: "exit status 85"},
		{name: "yield of a rigid job that saves", kind: job.Rigid, saves: true, end: with(said(15, true), exit(85)), whole: true,
			outcome: job.Yielded, progress: 15, checkpoint: true},
		{name: "failure of a rigid job that saves", kind: job.Rigid, saves: true, end: with(said(15, true), exit(1)), whole: true,
			outcome: job.ExitFailed, progress: 15, checkpoint: true, detail: "exit status 1"},
		{name: "a rigid job that saves, without its checkpoint", kind: job.Rigid, saves: true,
			end: with(said(15, true), forced(job.DeadlineKilled)), outcome: job.DeadlineKilled, progress: 10,
			detail: "SLUICE_CHECKPOINT_DIR"},
		{name: "failure counts what was complete", kind: job.Items, end: with(said(15, false), exit(1)), outcome: job.ExitFailed,
			progress: 15, detail: "exit status 1"},
		{name: "failure when asked", kind: job.Items, end: with(said(15, false), asked(1)), outcome: job.DeadlineKilled, progress: 15},
		{name: "memory", kind: job.Items, end: with(said(15, false), forced(job.MemoryKilled)), outcome: job.MemoryKilled, progress: 15},
		{name: "memory of a rigid job", kind: job.Rigid, end: with(said(15, false), forced(job.MemoryKilled)), outcome: job.MemoryKilled,
			progress: 10},
		{name: "items are cut back to the grid", kind: job.Items, grid: 4, end: with(said(15, true), exit(1)), whole: true,
			outcome: job.ExitFailed, progress: 12, detail: "exit status 1"},
		{name: "items, before the first cut point", kind: job.Items, grid: 16, end: with(said(15, false), exit(1)), outcome: job.ExitFailed,
			progress: 10, detail: "exit status 1"},
		{name: "steps off the grid don't count", kind: job.Steps, grid: 4, end: with(said(15, true), exit(85)), whole: true,
			outcome: job.Yielded, progress: 10, detail: "multiple of every: 4"},
		{name: "steps on the grid count", kind: job.Steps, grid: 4, end: with(said(16, true), exit(85)), whole: true, outcome: job.Yielded,
			progress: 16, checkpoint: true},
		{name: "steps between checkpoints", kind: job.Steps, end: with(said(15, false), forced(job.DeadlineKilled)), whole: true,
			outcome: job.DeadlineKilled, progress: 10},
		{name: "beyond its end", kind: job.Items, end: with(said(21, false), exit(1)), outcome: job.ExitFailed, progress: 10,
			detail: "outside its part from 10 to 20"},
		{name: "before its start", kind: job.Items, end: with(said(3, false), exit(1)), outcome: job.ExitFailed, progress: 10,
			detail: "outside its part"},
	} {
		l := Lease{Part: executor.Part{Kind: c.kind, Range: job.Range{From: 10, To: 20}, Total: 100, Grid: max(1, c.grid), Saves: c.saves}}
		if c.total != 0 {
			l.Total = c.total
		}
		c.end.FirstTo, c.end.To, c.end.Whole = 20, max(20, c.extended), c.whole
		r := Judge(&l, c.end)
		if r.Outcome != c.outcome || r.Progress != c.progress || r.Checkpoint != c.checkpoint || !strings.Contains(r.Detail, c.detail) ||
			(c.detail == "") != (r.Detail == "") {
			t.Errorf("%s: got %v at %d, checkpoint %v, %q", c.name, r.Outcome, r.Progress, r.Checkpoint, r.Detail)
		}
	}
}

// Whatever a program does, what counts of it is a cut point of its range, and a chain of steps never goes on from where
// no checkpoint is.
func TestJudgeHoldsForAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := func(name string, lo, hi int64) int64 { return rapid.Int64Range(lo, hi).Draw(t, name) }
		l := Lease{Part: executor.Part{Kind: job.Kind(n("kind", 1, 3)), Total: n("total", 1, 60), Grid: n("grid", 1, 7)}}
		l.Saves = l.Kind == job.Rigid && rapid.Bool().Draw(t, "saves")
		cut := func(name string, lo int64) int64 { return min(l.Total, l.Grid*n(name, lo/l.Grid, 60)) }
		l.Range.From = min(cut("from", 0), (l.Total-1)/l.Grid*l.Grid)
		l.Range.To = max(cut("to", 0), min(l.Total, l.Range.From+l.Grid))
		if l.Kind == job.Rigid { // it is sold as a whole, or all that is left of it
			l.Range.To = l.Total
		}
		e := Ending{
			ExitCode: rapid.SampledFrom([]int{0, 1, YieldCode, -1}).Draw(t, "code"),
			Said:     Progress{Progress: n("said", -3, 70), Checkpoint: rapid.Bool().Draw(t, "flag")},
			Spoke:    rapid.Bool().Draw(t, "spoke"), Whole: rapid.Bool().Draw(t, "whole"), FirstTo: l.Range.To,
		}
		e.To = max(l.Range.To, cut("extended", 0))
		if e.ExitCode < 0 {
			e.Signal = 9
		}
		e.Cause = rapid.SampledFrom([]job.Outcome{0, job.DeadlineKilled, job.Stopped, job.MemoryKilled, job.Lost}).Draw(t, "cause")
		e.Forced = e.Cause == job.MemoryKilled || e.Cause == job.Lost || (e.Cause != 0 && rapid.Bool().Draw(t, "forced"))

		r := Judge(&l, e)
		if r.Outcome == 0 || r.Progress < l.Range.From || r.Progress > e.To {
			t.Fatalf("%+v outside %v..%d", r, l.Range, e.To)
		}
		if r.Progress != l.Range.From && r.Progress != l.Total && r.Progress%l.Grid != 0 {
			t.Fatalf("%+v is not at a cut point", r)
		}
		if resumes(&l) && r.Progress > l.Range.From && r.Progress < l.Total && !r.Checkpoint {
			t.Fatalf("%+v: progress without a checkpoint to go on from", r)
		}
		if r.Checkpoint && !e.Whole {
			t.Fatalf("%+v: a checkpoint that is not there", r)
		}
		if (r.Outcome == job.Done) && r.Progress < l.Range.To {
			t.Fatalf("%+v: done before the end", r)
		}
	})
}

// TestWhoseEndCounts: an adapter's, of a chain whose length nobody knows, with its checkpoint.
func TestWhoseEndCounts(t *testing.T) {
	adapter := job.Adapter{Directory: job.Directory{Path: "ckpt"}}
	for _, c := range []struct {
		total    int64
		adapter  job.Adapter
		progress int64
		whole    bool
		ended    bool
		to       int64
		outcome  job.Outcome
	}{
		{total: job.OpenTotal, adapter: adapter, progress: 15, whole: true, ended: true, to: 15, outcome: job.Done},
		{total: job.OpenTotal, adapter: adapter, progress: 15, to: 10, outcome: job.ExitFailed},
		{total: job.OpenTotal, adapter: adapter, progress: 10, whole: true, to: 20, outcome: job.Done},
		{total: job.OpenTotal, progress: 15, whole: true, to: 20, outcome: job.Done},
		{total: 100, adapter: adapter, progress: 15, whole: true, to: 20, outcome: job.Done},
	} {
		l := &Lease{Part: executor.Part{Kind: job.Steps, Range: job.Range{From: 10, To: 20}, Total: c.total, Grid: 1},
			Program: executor.Program{Adapter: c.adapter}}
		said := Progress{Progress: c.progress, Checkpoint: true, Ended: true}
		r := Judge(l, Ending{Said: said, Spoke: true, Whole: c.whole, To: 20, FirstTo: 20})
		if r.Ended != c.ended || r.Progress != c.to || r.Outcome != c.outcome {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}

// TestWhoseIdleTimeCounts: an adapter knows which time no unit has cost; what another program says of itself teaches nothing.
func TestWhoseIdleTimeCounts(t *testing.T) {
	e := Ending{To: 20, FirstTo: 20, Spoke: true, Said: Progress{Progress: 20, Idle: 3 * time.Second}}
	l := Lease{Part: executor.Part{Kind: job.Items, Range: job.Range{From: 10, To: 20}, Total: 100, Grid: 1}}
	if r := Judge(&l, e); r.Idle != 0 {
		t.Errorf("%v of a program", r.Idle)
	}
	l.Adapter.Lines.Input = "in"
	if r := Judge(&l, e); r.Idle != 3*time.Second || r.Outcome != job.Done {
		t.Errorf("%+v of an adapter", r)
	}
	if e.Said.Idle = -1; Judge(&l, e).Idle != 0 {
		t.Error("less than nothing counts")
	}
}
