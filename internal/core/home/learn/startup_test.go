package learn

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAStartIsNoRunTime: what a program took to be ready is known where it says so, nothing where it was there already, and what its owner
// declared else; the rest is the time of its units.
func TestAStartIsNoRunTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		perUnit time.Duration
		startup time.Duration // declared
		ran     time.Duration
		seen    job.Result
		rate    time.Duration // of 10 units
		start   time.Duration // learned
	}{
		{"as declared", time.Second, 5 * time.Second, 25 * time.Second, job.Result{}, 2 * time.Second, 0},
		{"as it said", time.Second, 5 * time.Second, 25 * time.Second, job.Result{Startup: 10 * time.Second}, 1500 * time.Millisecond, 0},
		{"it was there", time.Second, 5 * time.Second, 25 * time.Second, job.Result{Stayed: true}, 2500 * time.Millisecond, 0},
		{"nothing declared", 0, 0, 25 * time.Second, job.Result{}, 2500 * time.Millisecond, 25 * time.Second},
		{"nothing declared, as it said", 0, 0, 25 * time.Second, job.Result{Startup: 10 * time.Second}, 1500 * time.Millisecond,
			10 * time.Second},
		{"nothing declared, it was there", 0, 0, 25 * time.Second, job.Result{Stayed: true}, 2500 * time.Millisecond, 0},
	} {
		spec := &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Parallelism: 1, PerUnit: c.perUnit, Startup: c.startup}
		claim := &protocol.Claim{Asked: busyStart, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 10},
			Start: busyStart, End: busyStart.Add(time.Hour)}, Speed: 1000}}
		r := c.seen
		r.Outcome, r.Progress, r.Start, r.End = job.Done, 10, busyStart, busyStart.Add(c.ran)
		l, _ := Result(r.End, spec, &protocol.Learned{}, claim, &r, job.Range{To: 10}, nowhere{})
		if l.Rate != c.rate || l.Start != c.start {
			t.Errorf("%s: %v a unit and a start of %v; want %v and %v", c.name, l.Rate, l.Start, c.rate, c.start)
		}
	}
	var l protocol.Learned
	learnPrepare(&l, &job.Result{Start: busyStart, Prepare: time.Second, Stayed: true})
	if l.Prepare != 0 {
		t.Errorf("a program that was there teaches a start of %v", l.Prepare)
	}
}
