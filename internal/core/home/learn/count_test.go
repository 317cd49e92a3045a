package learn

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestWhichEndCountsOnWhichSide is the table of docs/job.md: a subjob that completed nothing is a failure of its job, was ended from
// outside, or is neither; one that completed something resets both counts.
func TestWhichEndCountsOnWhichSide(t *testing.T) {
	const began = quantity.Instant(1e12)
	for name, c := range map[string]struct {
		kind            job.Kind
		result          job.Result
		failures, kills int
		suspected       bool
	}{
		"it fails": {
			kind: job.Steps, result: job.Result{Outcome: job.ExitFailed, ExitCode: 1, Start: began}, failures: 1,
		},
		"an item fails": {
			kind: job.Items, result: job.Result{Outcome: job.ExitFailed, ExitCode: 1, Start: began}, suspected: true,
		},
		"it crashes": {
			kind: job.Rigid, result: job.Result{Outcome: job.ExitFailed, Signal: 11, Start: began}, failures: 1,
		},
		"SIGKILL that nobody of ours sent": {
			kind: job.Steps, result: job.Result{Outcome: job.ExitFailed, Signal: 9, Start: began}, failures: 1,
		},
		"the same, of items: none is suspected": {
			kind: job.Items, result: job.Result{Outcome: job.ExitFailed, Signal: 9, Start: began}, failures: 1,
		},
		"too many processes, or too much output": {
			kind: job.Steps, result: job.Result{Outcome: job.LimitKilled, Start: began}, failures: 1,
		},
		"the same, killed by somebody then": {
			kind: job.Steps, result: job.Result{Outcome: job.LimitKilled, Signal: 9, Start: began}, failures: 1,
		},
		"the same, of items": {
			kind: job.Items, result: job.Result{Outcome: job.LimitKilled, Signal: 9, Start: began}, suspected: true,
		},
		"too much memory: it is given more":   {kind: job.Steps, result: job.Result{Outcome: job.MemoryKilled, Start: began}},
		"no such command":                     {kind: job.Items, result: job.Result{Outcome: job.StartFailed}, failures: 1},
		"it says that it is done, and is not": {kind: job.Steps, result: job.Result{Outcome: job.Done, Start: began}, failures: 1},
		"it yields at once":                   {kind: job.Steps, result: job.Result{Outcome: job.Yielded, Start: began}, failures: 1},
		"its deadline": {
			kind: job.Steps, result: job.Result{Outcome: job.DeadlineKilled, Start: began}, failures: 1,
		},
		"its deadline, on a busy machine": {
			kind: job.Steps, result: job.Result{Outcome: job.DeadlineKilled, Start: began, Waited: 8 * time.Second}, kills: 1,
		},
		"its supervisor dies":                {kind: job.Steps, result: job.Result{Outcome: job.Lost, Start: began}, failures: 1},
		"the same before its start is noted": {kind: job.Items, result: job.Result{Outcome: job.Lost}, failures: 1},
		"its machine is restarted":           {kind: job.Items, result: job.Result{Outcome: job.NodeFailed, Start: began}, kills: 1},
		"its node could not start it":        {kind: job.Items, result: job.Result{Outcome: job.NodeFailed}},
		"we stop it":                         {kind: job.Steps, result: job.Result{Outcome: job.Stopped, Start: began}},
	} {
		for _, progress := range []int64{0, 5} {
			if progress > 0 && c.kind == job.Rigid {
				continue
			}
			spec := &job.Spec{
				Kind: c.kind, Total: 100, Grid: 1, Parallelism: 1, PerUnit: time.Second,
				Safe: trp.Table{Bounds: []int64{100}, Least: [][]quantity.Amount{{1 << 20}}},
			}
			known := &protocol.Learned{Failures: 1, Kills: 1}
			end := began.Add(10 * time.Second)
			claim := &protocol.Claim{Asked: began,
				Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 10}, Start: began, End: end}, Speed: 1000}}
			r := c.result
			r.Progress, r.Checkpoint, r.End, r.Detail = progress, true, end, "why"
			done := job.Range{To: progress}
			l, _ := Result(r.End, spec, known, claim, &r, done, nowhere{})
			if progress > 0 {
				if l.Failures != 0 || l.Kills != 0 {
					t.Errorf("%s, with progress: %d failures and %d kills in a row", name, l.Failures, l.Kills)
				}
				continue
			}
			if l.Failures-1 != c.failures || l.Kills-1 != c.kills || (len(l.Suspects) > 0) != c.suspected {
				t.Errorf("%s: %d failures, %d kills, suspects %v; want %d, %d, %v",
					name, l.Failures-1, l.Kills-1, l.Suspects, c.failures, c.kills, c.suspected)
			}
			if c.failures+c.kills > 0 && !strings.Contains(l.LastDetail, "why") && c.result.Outcome != job.DeadlineKilled {
				t.Errorf("%s: its reason is %q", name, l.LastDetail)
			}
		}
	}
}

// TestEndsSideBySideAreOneOfASide: they were asked for before the first of them was counted.
func TestEndsSideBySideAreOneOfASide(t *testing.T) {
	for _, o := range []job.Outcome{job.Lost, job.NodeFailed} {
		spec := &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Parallelism: 4, PerUnit: time.Second}
		var known *Lessons
		now := quantity.Instant(1e12)
		for wave := range 3 {
			asked := now
			for range 4 {
				now = now.Add(time.Second)
				claim := &protocol.Claim{Asked: asked, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 10}}}}
				l, _ := Result(now, spec, known.Known(), claim, &job.Result{Outcome: o, Start: asked}, job.Range{}, nowhere{})
				if known = known.Learned(&l); l.Failures+l.Kills != wave+1 {
					t.Fatalf("%v: %d failures and %d kills in wave %d", o, l.Failures, l.Kills, wave+1)
				}
			}
			now = now.Add(time.Second)
		}
	}
}

// nowhere are slices of which nothing is known.
type nowhere struct{}

func (nowhere) Memory(job.SliceID) quantity.Amount { return 0 }
func (nowhere) Largest(*job.Spec) quantity.Amount  { return 0 }
