package home

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// leasedDesk is a desk with a job of which one claim stands until end, and a step just before that.
func leasedDesk(t *testing.T) (d *desk, token job.Token, end quantity.Instant) {
	t.Helper()
	d = newDesk(Config{})
	var out protocol.Out
	now := quantity.Instant(1e12)
	spec := &job.Spec{Name: "a", Queue: "q", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, PerUnit: time.Second, MaxFailures: 3}
	d.Step(now, protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 1, Generation: 1,
		Body: &protocol.Adoption{Since: 1, Spec: spec, At: now}}, &out)
	token, end = job.Token{Epoch: 1, Seq: 1}, now.Add(time.Minute)
	d.Apply(protocol.Fact{Kind: protocol.Claimed, Job: "a", Token: token,
		Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s", Range: job.Range{To: 10}, Start: now, End: end}}})
	d.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
	d.Ledger.Step(now, &protocol.Message{Kind: protocol.Leased, Job: "a", Token: token}, &out)
	d.Step(end.Add(-time.Second), protocol.Message{Kind: protocol.Tick}, &out)
	return d, token, end
}

// releasedBy says whether a step at that time gives the claim up.
func (d *desk) releasedBy(now quantity.Instant) bool {
	var out protocol.Out
	d.Step(now, protocol.Message{Kind: protocol.Tick}, &out)
	for i := range out.Facts {
		if out.Facts[i].Kind == protocol.Released {
			return true
		}
	}
	return false
}

// TestAfterAPauseNodesAreHeardFirst: a daemon is paused over the end of a lease, for long or just so long that the claim would be given up.
// What it does first when it comes back is not to call the subjob lost; it is done, and its node says so in a moment.
func TestAfterAPauseNodesAreHeardFirst(t *testing.T) {
	for _, back := range []time.Duration{5 * time.Second, 5500 * time.Millisecond, time.Minute, 24 * time.Hour} {
		d, token, end := leasedDesk(t)
		if now := end.Add(back); d.releasedBy(now) || d.releasedBy(now.Add(time.Second)) {
			t.Errorf("back %v after the lease's end, its claim is given up before its node had its say", back)
			continue
		}
		var out protocol.Out
		d.Step(end.Add(back+time.Second), protocol.Message{Kind: protocol.Result, Job: "a", Token: token, Epoch: 1, Generation: 1,
			Body: &protocol.Conclusion{
				Slice: "s", Range: job.Range{To: 10}, Result: &job.Result{Outcome: job.Done, Progress: 10, Start: end.Add(-time.Minute),
					End: end.Add(-time.Second)},
			}}, &out)
		if len(out.Facts) == 0 || out.Facts[0].Kind != protocol.Committed {
			t.Errorf("back %v after the lease's end: %+v, want what it did committed", back, out.Facts)
		}
	}
}

// TestAPauseDelaysALossByAMoment: of a node that stays silent the claim is given up all the same, also by a home that hears nothing else.
func TestAPauseDelaysALossByAMoment(t *testing.T) {
	d, _, end := leasedDesk(t)
	back := end.Add(time.Minute)
	for now := back; !d.releasedBy(now); now = d.woken {
		if d.woken > back.Add(2*time.Second) {
			t.Fatalf("it wakes at %v after it came back, and its claim stands", d.woken.Sub(back))
		}
	}
	d, _, end = leasedDesk(t)
	for now := end; now <= end.Add(5*time.Second); now = now.Add(time.Second) {
		if released := d.releasedBy(now); released != (now == end.Add(5*time.Second)) {
			t.Errorf("not paused, %v after the lease's end: given up %v", now.Sub(end), released)
		}
	}
}
