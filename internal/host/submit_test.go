package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/host/inbox"
)

// together is how many jobs of one call are on their way at once, as package requests has it.
const together = 64

// TestJobsOfOneCallShareASync: while the first is made durable the others are on their way, so that they share the next sync. They are
// accepted in their order, each has a receipt of its own, and a repeated call accepts nothing again. After one that is refused, those
// that were on their way stand and no more are sent.
func TestJobsOfOneCallShareASync(t *testing.T) {
	r := newRig(t)
	shared := make(chan bool, 1)
	var h *Host
	var once sync.Once
	r.before = func(records [][]byte) error {
		if h != nil {
			once.Do(func() {
				waiting, _ := h.daemon.inbox.Load()
				for until := time.Now().Add(20 * time.Second); waiting[inbox.People] < together-len(records) &&
					time.Now().Before(until); waiting, _ = h.daemon.inbox.Load() {
					time.Sleep(time.Millisecond)
				}
				shared <- waiting[inbox.People] == together-len(records)
			})
		}
		return nil
	}
	refused := job.ID("")
	var order []job.ID
	r.actors = func() actor.Set {
		gate := &toyGate{toy{step: func(a *toy, now quantity.Instant, in protocol.Message, out *protocol.Out) {
			if in.Kind == protocol.Submit && in.Job == refused {
				out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From,
					Body: &protocol.Receipt{Request: in.Body.(*protocol.Submission).Request, Err: errkind.Errorf(errkind.Exists, "taken")}})
				return
			}
			if in.Kind == protocol.Submit {
				order = append(order, in.Job)
			}
			accept(a, now, in, out)
		}}}
		return actor.Alone("z", "n", gate, &toyZone{}, &toyNode{})
	}
	opened, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	h = opened
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	file := func(prefix string) (list []Submission) {
		for i := range 3 * together {
			list = append(list, Submission{Request: fmt.Sprint(prefix, i), Spec: spec(job.ID(fmt.Sprint(prefix, i)))})
		}
		return list
	}
	for i, o := range h.SubmitAll(t.Context(), file("a"), nil) {
		if want := job.ID(fmt.Sprint("a", i)); o.Err != nil || !o.Created || o.Name != want {
			t.Fatalf("job %d: %+v", i, o)
		}
	}
	for i, o := range h.SubmitAll(t.Context(), file("a"), nil) {
		if o.Err != nil || o.Created {
			t.Fatalf("job %d again: %+v", i, o)
		}
	}
	refused = "b3"
	for i, o := range h.SubmitAll(t.Context(), file("b"), nil) {
		switch {
		case i == 3 && errkind.Of(o.Err) != errkind.Exists,
			i != 3 && i < together && o.Err != nil,
			i >= together && (errkind.Of(o.Err) != errkind.Unavailable || !strings.Contains(o.Err.Error(), "not submitted")):
			t.Fatalf("job %d: %+v", i, o)
		}
	}
	cancel()
	if err := <-ended; err != nil || !<-shared {
		t.Errorf("the jobs of a call do not go together, or %v", err)
	}
	for i := range 3 * together {
		if want := job.ID(fmt.Sprint("a", i)); order[i] != want {
			t.Fatalf("at place %d is %s, want %s", i, order[i], want)
		}
	}
}

// TestWhoAsks: what people ask for says who they are, and ids that two of them have chosen alike are two; the daemon's own user is known by
// the plain ids of before.
func TestWhoAsks(t *testing.T) {
	r := newRig(t)
	var asked []string
	r.actors = func() actor.Set {
		gate := &toyGate{toy{step: func(_ *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
			who := protocol.Asker{}
			switch b := in.Body.(type) {
			case *protocol.Submission:
				if who = b.By; b.Spec.Owner != who.Name {
					t.Errorf("%s is of %q, and %q submits it", in.Job, b.Spec.Owner, who.Name)
				}
			case *protocol.Cancellation:
				who = b.By
			case *protocol.Pause:
				who = b.By
			case *protocol.Requeueing:
				who = b.By
			case *protocol.Deletion:
				who = b.By
			default:
				return
			}
			request := in.Body.(protocol.Requested).RequestID()
			asked = append(asked, fmt.Sprintf("%s own=%v %s", who.Name, who.Own, request))
			out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From,
				Body: &protocol.Receipt{Request: request}})
		}}}
		return actor.Alone("z", "n", gate, &toyZone{}, &toyNode{})
	}
	h, stop := r.start(t)
	for _, c := range []struct {
		caller *users.Caller
		want   string
	}{
		{nil, " own=false r"},
		{&users.Caller{Name: "root", Role: users.Admin, Own: true}, "root own=false r"},
		{&users.Caller{Name: "ada", Role: users.User}, "ada own=true ada/r"},
		{&users.Caller{Name: "eve", Role: users.Operator}, "eve own=false eve/r"},
	} {
		asked = nil
		ctx := t.Context()
		if c.caller != nil {
			ctx = users.With(ctx, c.caller)
		}
		_, requeued := h.Requeue(ctx, "r", "a", 0)
		for i, err := range []error{h.SubmitAll(ctx, []Submission{{Request: "r", Spec: spec("a")}}, nil)[0].Err, h.Cancel(ctx, "r", "a"),
			h.PauseJob(ctx, "r", "a", true), requeued, h.Delete(ctx, "r", "a")} {
			if err != nil {
				t.Errorf("call %d of %+v: %v", i, c.caller, err)
			}
		}
		if want := slices.Repeat([]string{c.want}, 5); !slices.Equal(asked, want) {
			t.Errorf("asked as %q, want %q", asked, want)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}
