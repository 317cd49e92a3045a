package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// The oracle of package mail judges every answer to a result in these stories; what they add is that it had to.

// TestALateResultOfAReleasedClaimPublishesNothing: a node is silent until its claim is given up and the work is sold again,
// and then says that the first subjob had done it. One of the two counts.
func TestALateResultOfAReleasedClaimPublishesNothing(t *testing.T) {
	w := newWorld(t, 1024, 1024)
	w.submit(items(t, "a", 20, 100, 1))
	for len(w.slices[0].runs)+len(w.slices[1].runs) == 0 {
		w.tick()
	}
	silent := w.slices[0]
	if len(silent.runs) == 0 {
		silent = w.slices[1]
	}
	late := silent.runs[0].m.Token
	released, answered := false, 0
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.ResultAck && m.Token == late {
			answered++
		}
		return m.Kind == protocol.Result && m.Token == late && !released
	}
	for i := 0; i < 200 && !released; i++ {
		w.tick()
		for _, f := range w.facts {
			released = released || f.Kind == protocol.Released && f.Token == late
		}
	}
	w.until(5 * time.Minute)
	finished(t, w, "a")
	for range 5 {
		w.tick()
	}
	if !released || answered == 0 {
		t.Errorf("released: %v, answers to the late result: %d; the test shows nothing", released, answered)
	}
}

// TestARepeatedResultOfASkippedUnitPublishesNothing: the answer to the result of the unit that is skipped is lost, and the
// node asks again.
func TestARepeatedResultOfASkippedUnitPublishesNothing(t *testing.T) {
	w := newWorld(t, 1024)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		if m.Body.(*protocol.Work).Range.From <= 3 && 3 < m.Body.(*protocol.Work).Range.To {
			return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: 3}
		}
		return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	skipped, answers := job.Token{}, 0
	w.lose = func(m *protocol.Message) bool {
		for _, f := range w.facts[max(0, len(w.facts)-4):] {
			if end, ok := f.Body.(*protocol.ClaimEnd); ok && end.Skipped {
				skipped = f.Token
			}
		}
		if m.Kind != protocol.ResultAck || m.Token != skipped {
			return false
		}
		answers++
		return answers == 1
	}
	s := items(t, "a", 20, 100, 1)
	s.OnBadItem = job.BadItemSkips
	w.submit(s)
	w.until(10 * time.Minute)
	finished(t, w, "a")
	for range 5 {
		w.tick()
	}
	if answers < 2 {
		t.Errorf("the result of the skipped unit was answered %d times: the test shows nothing", answers)
	}
}

// TestASnapshotAnswersForEverySubjob: a zone that comes up from a snapshot answers the repeated result of the first subjob of
// a job as it did when that was settled.
func TestASnapshotAnswersForEverySubjob(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(steps(t, "a", 1500, 10, 100))
	var first protocol.Message
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Result && first.Kind == 0 {
			first = *m
		}
		return false
	}
	w.until(2 * time.Hour)
	finished(t, w, "a")
	kept := w.make()
	for _, f := range capture.All(w.z) {
		kept.Apply(f)
	}
	w.z = kept
	before := len(w.log)
	w.step(first)
	if got, want := w.out.Effects[0], w.mail.published[first.Token]; got.Kind != protocol.ResultAck ||
		got.Body.(*protocol.Acknowledgement).Range != want || want.Empty() {
		t.Errorf("answered with %+v, want %v", got, want)
	}
	if len(w.log) != before {
		t.Error("a result that was settled long ago made facts")
	}
}

// TestAnOvertakenViewIsDropped: the node's earlier view of a slice arrives behind its later one.
func TestAnOvertakenViewIsDropped(t *testing.T) {
	w := newWorld(t, 1024)
	for w.deliver() {
	}
	s := w.slices[0]
	offer := func(version uint64, usable bool) protocol.Message {
		return protocol.Message{Kind: protocol.Offer, From: s.at(), Epoch: w.epoch, Body: &protocol.SliceView{
			Slice: s.view, Node: "n", Version: version, Usable: usable, Gaps: s.gaps(w.now),
		}}
	}
	w.step(offer(s.vers+2, false))
	w.step(offer(s.vers+1, true))
	s.vers += 2
	w.submit(items(t, "a", 5, 100, 1))
	if windows := w.z.Windows(w.now); len(windows) != 0 {
		t.Errorf("the slice is not usable, and %v is offered", windows)
	}
}
