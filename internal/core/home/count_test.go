package home

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
			j := alone(nil, &protocol.Record{Spec: spec, Learned: protocol.Learned{Failures: 1, Kills: 1}})
			end := began.Add(10 * time.Second)
			h, claim := newDesk(Config{}), &protocol.Claim{Range: job.Range{To: 10}, Speed: 1000, Start: began, End: end, Asked: began}
			r := c.result
			r.Progress, r.Checkpoint, r.End, r.Detail = progress, true, end, "why"
			l, _ := h.learn(r.End, j, claim, &r, j.completed(claim, &r))
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
		h, spec := newDesk(Config{}), &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Parallelism: 4, PerUnit: time.Second}
		j, now := alone(nil, &protocol.Record{Spec: spec}), quantity.Instant(1e12)
		for wave := range 3 {
			asked := now
			for range 4 {
				now = now.Add(time.Second)
				claim := &protocol.Claim{Range: job.Range{To: 10}, Asked: asked}
				l, _ := h.learn(now, j, claim, &job.Result{Outcome: o, Start: asked}, job.Range{})
				if j.learn(&l); l.Failures+l.Kills != wave+1 {
					t.Fatalf("%v: %d failures and %d kills in wave %d", o, l.Failures, l.Kills, wave+1)
				}
			}
			now = now.Add(time.Second)
		}
	}
}

// TestWhatIsGivenUpCounts on the side of whoever kept it from ending.
func TestWhatIsGivenUpCounts(t *testing.T) {
	const minutes = 12
	for name, c := range map[string]struct {
		says            protocol.Observation
		until           time.Duration // it says so that long after the lease's end
		barred          bool          // its node offers nothing of the slice meanwhile
		away            time.Duration // the home starts again that long after the lease's end, from which it counts then
		failures, kills int
		said            string
	}{
		"nothing is heard": {kills: 1, said: "reported nothing"},
		"it is stored for too long": {
			says: protocol.Observation{Storing: true}, until: minutes * time.Minute, failures: 1, said: "still being stored 10m0s after",
		},
		"the store is away": {
			says: protocol.Observation{Storing: true}, until: minutes * time.Minute, barred: true,
			kills: 1, said: "still being stored 10m0s after",
		},
		"it is stored, and nothing more is heard": {
			says: protocol.Observation{Storing: true}, until: time.Minute, kills: 1, said: "reported nothing",
		},
		"its processes remain": {
			says: protocol.Observation{Remains: true}, until: minutes * time.Minute, barred: true, failures: 1, said: "outlived",
		},
		"it is stored after the daemon was away": {
			says: protocol.Observation{Storing: true}, until: time.Minute, away: 30 * time.Minute, kills: 1, said: "reported nothing",
		},
		"they remain after it was away": {
			says: protocol.Observation{Remains: true}, until: time.Minute, away: 30 * time.Minute, kills: 1, said: "outlived",
		},
		"they do, and nothing more is heard": {
			says: protocol.Observation{Remains: true}, until: time.Minute, kills: 1, said: "outlived",
		},
	} {
		for most, state := range map[int]job.State{2: job.Waiting, 1: job.Failed} {
			d := newDesk(Config{})
			d.barred, d.cfg.MaxKills = c.barred, most
			var out protocol.Out
			now := quantity.Instant(1e12)
			spec := &job.Spec{
				Name: "a", Queue: "q", Kind: job.Items, Total: 20, Grid: 1, Parallelism: 2, PerUnit: time.Second, MaxFailures: most,
				Deadline: quantity.Never, Safe: trp.Table{Bounds: []int64{20}, Least: [][]quantity.Amount{{1 << 20}}},
			}
			adoption := &protocol.Adoption{Since: 1, Spec: spec, At: now}
			d.Step(now, protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 1, Generation: 1, Body: adoption}, &out)
			end := now.Add(time.Minute)
			for seq := range uint64(2) { // side by side: they count once
				of := job.Range{From: 10 * int64(seq), To: 10 * int64(seq+1)}
				d.Apply(protocol.Fact{
					Kind: protocol.Claimed, Job: "a", Token: job.Token{Epoch: 1, Seq: seq + 1}, Node: "n", Slice: "s",
					Range: of, Start: now, End: end, At: now,
				})
			}
			if c.away > 0 {
				end = end.Add(c.away)
				now, d.since = end, end
			}
			j := d.jobs["a"]
			for len(j.work().claims) > 0 && now < end.Add(time.Hour) {
				now = now.Add(time.Second)
				for i := range j.work().claims {
					if said := c.says; now <= end.Add(c.until) {
						token := j.work().claims[i].Token
						d.Report(now, &protocol.Message{Kind: protocol.Report, Token: token, Job: "a", Body: &said}, &said, &out)
					}
				}
				d.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
			}
			l := j.Learned()
			if l.Failures != c.failures || l.Kills != c.kills || !strings.Contains(l.LastDetail, c.said) {
				t.Errorf("%s: %d failures, %d kills: %q; want %d, %d and %q",
					name, l.Failures, l.Kills, l.LastDetail, c.failures, c.kills, c.said)
			}
			if v := j.fate().verdict; v.State != state || state == job.Failed && !strings.Contains(v.Reason, c.said) {
				t.Errorf("%s: one of %d: %v", name, most, v)
			}
		}
	}
}
