package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// outliving is a world of three slices in which the first subjob of a job outlives its lease by d: its node says so, and only then how it
// ended.
func outliving(t *testing.T, parallelism int, d time.Duration) (w *world, end quantity.Instant, token job.Token) {
	w = newWorld(t, 1024, 1024, 1024)
	w.submit(items(t, "a", 60, 100, parallelism))
	for len(w.slices[0].runs) == 0 {
		w.tick()
	}
	first := w.slices[0].runs[0]
	token, end = first.m.Token, first.m.Body.(*protocol.Work).End
	first.result = job.Result{Outcome: job.DeadlineKilled, Progress: first.m.Body.(*protocol.Work).Range.From, Start: first.result.Start}
	w.lose = func(m *protocol.Message) bool {
		return m.Kind == protocol.Result && m.Token == token && w.now < end.Add(d)
	}
	return w, end, token
}

// says has the node say until then, each second from one after the lease's end on, that the subjob is not gone.
func (w *world) says(token job.Token, end, until quantity.Instant) {
	for said := end; w.now < until; w.tick() {
		if w.now.Sub(said) < time.Second {
			continue
		}
		said = w.now
		w.step(protocol.Message{
			Kind: protocol.Report, From: protocol.Address{Role: protocol.Node, ID: "n"}, To: protocol.Address{Role: protocol.Zone, ID: "z"},
			Token: token, Job: "a", Body: &protocol.Observation{Slice: "s0", At: w.now, Remains: true},
		})
	}
}

// released is the fact that gave a claim up before its result came, nil if there is none.
func (w *world) released(token job.Token) *protocol.Fact {
	for i := range w.facts {
		if f := &w.facts[i]; f.Kind == protocol.Released && f.Token == token && f.Body.(*protocol.ClaimEnd).Result == nil {
			return f
		}
	}
	return nil
}

// sold is when the job's claims were made after an instant.
func (w *world) sold(after quantity.Instant) (at []quantity.Instant) {
	for _, f := range w.facts {
		if f.Kind == protocol.Claimed && f.At > after {
			at = append(at, f.At)
		}
	}
	return at
}

// TestWhatOutlivesItsLeaseIsWaitedFor: the same work runs nowhere else meanwhile, and the job takes no other slice; it goes on afterwards.
func TestWhatOutlivesItsLeaseIsWaitedFor(t *testing.T) {
	const lives = time.Minute
	w, end, token := outliving(t, 2, lives)
	w.says(token, end, end.Add(2*time.Second))
	from := w.now
	w.says(token, end, end.Add(lives))
	if f := w.released(token); f != nil {
		t.Errorf("its claim was given up though its node said that it is there: %s", f.Body.(*protocol.ClaimEnd).Text)
	}
	if n := len(w.sold(from)); n > 0 {
		t.Errorf("%d subjobs of the job were begun while processes of an earlier one lived", n)
	}
	w.until(10 * time.Minute)
	finished(t, w, "a")
	if pause := w.sold(from)[0].Sub(end.Add(lives)); pause < lives/2 {
		t.Errorf("it began again %v after what had lived for %v too long", pause, lives)
	}
}

// TestWhatNeverGoesKeepsItsSliceAndNotItsJob: it is not waited for forever.
func TestWhatNeverGoesKeepsItsSliceAndNotItsJob(t *testing.T) {
	w, end, token := outliving(t, 1, time.Hour)
	w.says(token, end, end.Add(12*time.Minute))
	f := w.released(token)
	if f == nil {
		t.Fatal("its claim is unchanged, 12 minutes after its lease's end")
	}
	why := f.Body.(*protocol.ClaimEnd).Text
	if late := f.At.Sub(end); late < 10*time.Minute || !strings.Contains(why, "outlived") {
		t.Errorf("given up after %v: %q", late, why)
	}
	w.until(10 * time.Minute)
	finished(t, w, "a")
}

// TestACancelDoesNotWaitForProcesses: the slice is the node's to keep.
func TestACancelDoesNotWaitForProcesses(t *testing.T) {
	w, end, token := outliving(t, 1, time.Hour)
	w.says(token, end, end.Add(3*time.Second))
	w.step(protocol.Message{Kind: protocol.Cancel, Job: "a", Epoch: 1, Body: &protocol.Cancellation{Text: "by its owner"}})
	w.says(token, w.now, w.now.Add(2*time.Second))
	if j, _ := w.z.Job(w.now, "a"); j.State != job.Cancelled {
		t.Errorf("it is %v: %s", j.State, j.Reason)
	}
}
