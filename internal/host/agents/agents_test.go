package agents

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host/inbox"
)

// TestMailboxIsBounded: what nobody asks for is dropped from its old end, and counted.
func TestMailboxIsBounded(t *testing.T) {
	s := newSession(1)
	for i := range 100 {
		s.hear(&protocol.Message{Kind: protocol.Announce, Body: &protocol.Call{Round: uint64(i), Most: 1,
			Windows: make([]protocol.Advert, 1)}})
		s.hear(&protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: uint64(i), Notices: make([]protocol.Notice, 10)}})
	}
	s.hear(&protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: 100, Notices: make([]protocol.Notice, 1000)}})
	got := s.take()
	calls, notices, last := 0, 0, uint64(0)
	for _, e := range got.Events {
		if e.Call != nil {
			calls++
		}
		notices += len(e.Notices)
		if e.Round < last {
			t.Errorf("round %d after %d", e.Round, last)
		}
		last = e.Round
	}
	if calls != keptCalls || notices != keptNotices || got.Dropped != int64(100+2000-keptCalls-keptNotices) || len(s.rounds) != keptCalls ||
		s.rounds[0].round != 100-keptCalls {
		t.Errorf("%d calls, %d notices, %d dropped, rounds %v", calls, notices, got.Dropped, s.rounds)
	}
	if again := s.take(); len(again.Events) != 0 || again.Dropped != 0 {
		t.Errorf("taken twice: %+v", again)
	}
}

// TestTheAgentOfAnArchivedJob: it hears that the job is over, like any other, and nothing of it is kept when it has gone.
func TestTheAgentOfAnArchivedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recall := func(name job.ID) (string, bool) { return "content", name == "x" }
		b := inbox.New(nil)
		a := New(t.TempDir(), b.Put, b.Call, recall)
		h := NewAPI(a, nil, b)
		key, err := a.keys.key("x", "content")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []Negotiation{{Job: "x", Key: strings.Repeat("0", 64)}, {Job: "y", Key: key}} {
			if _, err := h.Negotiate(t.Context(), n); errkind.Of(err) != errkind.Denied {
				t.Errorf("job %s: %v", n.Job, err)
			}
		}
		if len(a.jobs) != 0 {
			t.Errorf("%d are kept for callers without a key", len(a.jobs))
		}
		got, err := h.Negotiate(t.Context(), Negotiation{Job: "x", Key: key, Wait: time.Minute})
		if err != nil || !got.Over {
			t.Fatalf("%+v, %v", got, err)
		}
		if got, err = h.Negotiate(t.Context(), Negotiation{Job: "x", Session: got.Session}); err != nil || !got.Over {
			t.Errorf("%+v, %v", got, err)
		}
		time.Sleep(2 * AgentGone)
		a.mu.Lock()
		if len(a.jobs) != 0 {
			t.Error("it is kept for ever")
		}
		a.mu.Unlock()
	})
}

// TestAgentsOfAnotherLife are let in: the place of an external job's agent is open again after a requeue, also when the end of
// the last life is of the same batch.
func TestAgentsOfAnotherLife(t *testing.T) {
	s := &job.Spec{Name: "a", External: true}
	for _, settled := range []bool{false, true} {
		a := New("", nil, nil, nil)
		a.Fact(&protocol.Fact{Kind: protocol.JobAccepted, Job: "a", Body: &protocol.Acceptance{Spec: s, Digest: "d"}})
		a.Fact(&protocol.Fact{Kind: protocol.JobClosed, Job: "a", Body: &protocol.Final{}})
		if settled {
			if a.Settle(); !a.jobs["a"].over {
				t.Error("its agent does not hear that it is over")
			}
		}
		a.Fact(&protocol.Fact{Kind: protocol.JobRequeued, Job: "a", Generation: 2, Body: &protocol.Sequel{}})
		if a.Settle(); a.jobs["a"].over || a.jobs["a"].digest != "d" {
			t.Errorf("settled before %v: %+v", settled, a.jobs["a"])
		}
	}
}
