package ending

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestOpenStoppingFinal: what each state says, and that what came first counts.
func TestOpenStoppingFinal(t *testing.T) {
	const start = quantity.Instant(time.Hour)
	var none *Ending
	if none.Final() || none.Stopping() || none.Cancelled() || none.OverBy() != quantity.Never || none.Bound(start, time.Second) != start ||
		none.Verdict() != (job.Verdict{}) || none.Leaving() != "" || none.Hurried(start, time.Hour) {
		t.Error("a job that nothing has ended says that something has")
	}
	e := &Ending{}
	if !e.Cancel(start, 0) || e.Cancel(start.Add(time.Second), start.Add(time.Second)) {
		t.Fatal("a job is cancelled once")
	}
	e.Plan(start, job.Verdict{State: job.Cancelled})
	e.Plan(start.Add(time.Minute), job.Verdict{State: job.Failed})
	if !e.Stopping() || e.Final() || e.Stopped(start.Add(time.Minute)) != time.Minute || e.OverBy() != start.Add(MostCancelling) {
		t.Errorf("its subjobs are told to stop since %v, and it is over by %v", e.Stopped(start), e.OverBy())
	}
	for grace, hurried := range map[time.Duration]bool{time.Second: false, time.Minute: true} {
		if e.Hurried(start.Add(keptGrace-1), grace) || e.Hurried(start.Add(keptGrace), grace) != hurried {
			t.Errorf("with a grace of %v it is hurried: %v", grace, !hurried)
		}
	}
	if got := e.Bound(quantity.Never, time.Second); got != start.Add(time.Second+mostStopping) {
		t.Errorf("a subjob is over by %v", got.Sub(start))
	}
	if got := e.Bound(start, time.Second); got != start {
		t.Errorf("its lease is over before, and its subjob by %v", got.Sub(start))
	}
	e.Leave("drained")
	if e.Close(job.Verdict{State: job.Finished}, start); !e.Final() || e.Leaving() != "" || e.OverBy() != quantity.Never {
		t.Errorf("it is over: %+v", e)
	}
}

// TestCancellationCountsFromTheGate: its time is the gate's, but never later than now.
func TestCancellationCountsFromTheGate(t *testing.T) {
	const now = quantity.Instant(time.Hour)
	for since, want := range map[quantity.Instant]quantity.Instant{0: now, now - 5: now - 5, now + 5: now} {
		e := &Ending{}
		e.Cancel(now, since)
		if e.OverBy() != want.Add(MostCancelling) {
			t.Errorf("cancelled at %d it is over by %d", since, e.OverBy())
		}
	}
}
