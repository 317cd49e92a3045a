package agents

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
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
		recall := func(name job.ID) *protocol.Acceptance {
			if name != "x" {
				return nil
			}
			return &protocol.Acceptance{Digest: "content", Spec: &job.Spec{External: true}}
		}
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
		if a.Settle(); a.jobs["a"].over || a.jobs["a"].identity != "d" {
			t.Errorf("settled before %v: %+v", settled, a.jobs["a"])
		}
	}
}

// TestTheSameJobOfAnotherUserHasAnotherKey: whoever has submitted a job by that name with the same content before can't bid for it. A job
// from before there were owners keeps its key, and one that is archived has the same as before.
func TestTheSameJobOfAnotherUserHasAnotherKey(t *testing.T) {
	keys := map[string]string{}
	var archived *protocol.Acceptance
	a := New(t.TempDir(), nil, nil, func(job.ID) *protocol.Acceptance { return archived })
	h := NewAPI(a, there{}, nil)
	for _, owner := range []string{"", "ada", "bob"} {
		accepted := &protocol.Acceptance{Spec: &job.Spec{External: true, Owner: owner}, Digest: "content"}
		archived = nil
		a.Fact(&protocol.Fact{Kind: protocol.JobAccepted, Job: "a", Body: accepted})
		key, err := h.AgentKey(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if of, taken := keys[key]; taken {
			t.Errorf("the job of %q has the key of that of %q", owner, of)
		}
		keys[key] = owner
		archived = accepted
		a.Fact(&protocol.Fact{Kind: protocol.JobArchived, Job: "a"})
		if again, err := h.AgentKey(t.Context(), "a"); err != nil || again != key {
			t.Errorf("archived, the job of %q has another key: %v", owner, err)
		}
	}
	if key, err := a.keys.key("a", "content"); err != nil || keys[key] != "" {
		t.Errorf("a key from before opens the job of %q, %v", keys[key], err)
	}
}

// there has a job of any name.
type there struct{}

func (there) Job(context.Context, job.ID) (status.Job, error) { return status.Job{}, nil }
