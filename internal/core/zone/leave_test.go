package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

const why = "it moves to zone y: zone z is drained"

// surrendered is the record of job a that went out in the last step; nil if none did.
func surrendered(w *world) *protocol.Record {
	for i := range w.out.Effects {
		if m := &w.out.Effects[i]; m.Kind == protocol.Surrendered {
			return m.Body.(*protocol.Record)
		}
	}
	return nil
}

// parted runs a job of 400 units until some are committed and more of it runs, and has it given up.
func parted(t *testing.T) (*world, *job.Spec) {
	w := newWorld(t, 1024)
	s := items(t, "a", 400, 1000, 10)
	s.Deadline = w.now.Add(time.Hour)
	w.submit(s)
	w.config.Horizon = time.Minute
	w.z = w.make()
	for _, f := range w.facts {
		w.z.Apply(f)
	}
	w.restart()
	for now(w).Progress == 0 || now(w).State != job.Running {
		w.tick()
	}
	gateSays(w, protocol.Surrender, 1, protocol.Message{Body: &protocol.Moving{Text: why}})
	if surrendered(w) != nil {
		t.Fatal("the record goes out while something of the job runs")
	}
	return w, s
}

func TestAJobThatIsGivenUpRunsToTheEndOfWhatIsSold(t *testing.T) {
	w, s := parted(t)
	if j, _ := w.z.Job(w.now, "a"); !strings.HasPrefix(j.Reason, why) {
		t.Errorf("it runs: %q", j.Reason)
	}
	w.restart()
	before := now(w).Progress
	sold := func() (n int) {
		for _, f := range w.facts {
			if f.Kind == protocol.Claimed || f.Kind == protocol.ClaimExtended {
				n++
			}
		}
		return n
	}
	claims := sold()
	for end := w.now.Add(10 * time.Minute); w.now < end; {
		w.tick()
	}
	gateSays(w, protocol.Surrender, 1, protocol.Message{Body: &protocol.Moving{Text: why}})
	r := surrendered(w)
	if r == nil || sold() != claims || r.Committed.Len() <= before || r.Committed.Len() == 400 || len(r.Claims)+len(r.Unpublished) != 0 {
		t.Fatalf("%d units were committed and %d claims sold; the record is %+v after %d claims", before, claims, r, sold())
	}
	// Nothing changes it any more.
	digest := w.z.Digest()
	gateSays(w, protocol.Cancel, 1, protocol.Message{Body: &protocol.Cancellation{Text: "late"}})
	gateSays(w, protocol.PauseJob, 1, protocol.Message{Body: &protocol.Pause{Paused: true}})
	for end := w.now.Add(2 * time.Hour); w.now < end; { // its deadline is over
		w.tick()
	}
	if w.restart(); w.z.Digest() != digest {
		t.Error("a job whose record may be elsewhere is another one now")
	}
	if j, _ := w.z.Job(w.now, "a"); j.Reason != why || j.State != job.Waiting {
		t.Errorf("it waits: %v, %q", j.State, j.Reason)
	}
	for range 2 {
		gateSays(w, protocol.Forget, 1, protocol.Message{})
		gateSays(w, protocol.Adopt, 1, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: 1}})
		if len(w.z.Page(w.now, status.JobQuery{}).Jobs) != 0 {
			t.Fatal("a job that has left is here")
		}
	}
	takesOver(t, r, s)
}

// takesOver has another zone go on from the record.
func takesOver(t *testing.T, r *protocol.Record, s *job.Spec) {
	w := newWorld(t, 1024)
	w.config.ID = "y"
	w.z = w.make()
	s.Deadline = 0
	adopt := protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 2, Generation: 1, From: protocol.Address{Role: protocol.Gate}}
	bad := *r
	bad.Claims = []protocol.Claim{{}}
	adopt.Body = &protocol.Adoption{Since: 1, Spec: s, At: 1, Record: &bad}
	if w.step(adopt); len(w.z.Page(w.now, status.JobQuery{}).Jobs) != 0 {
		t.Fatal("a record with claims is taken over")
	}
	w.adopted["a"] = s
	for range 2 {
		adopt.Body = &protocol.Adoption{Since: 1, Spec: s, At: 1, Record: r}
		w.step(adopt)
		if j := now(w); j.Progress != r.Committed.Len() {
			t.Fatalf("it goes on from %d of %v", j.Progress, r.Committed)
		}
	}
	w.restart()
	w.until(time.Hour)
	if j := now(w); j.State != job.Finished || j.Progress != 400 {
		t.Errorf("%+v", j)
	}
}

// TestAJobThatIsGivenUpMayEnd: what ends it before its record goes out ends it here.
func TestAJobThatIsGivenUpMayEnd(t *testing.T) {
	w, _ := parted(t)
	gateSays(w, protocol.Cancel, 1, protocol.Message{Body: &protocol.Cancellation{Text: "by its owner"}})
	w.until(10 * time.Minute)
	if j := now(w); j.State != job.Cancelled {
		t.Errorf("%+v", j)
	}
	gateSays(w, protocol.Surrender, 1, protocol.Message{Body: &protocol.Moving{Text: why}})
	if surrendered(w) != nil {
		t.Error("a job that is over is given up")
	}
}
