package host

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestJobsOfOneCallShareASync: while the first is made durable the others are on their way, so that they share the next sync. They are
// accepted in their order, each has a receipt of its own, and a repeated call accepts nothing again. After one that is refused, those
// that were on their way stand and no more are sent.
func TestJobsOfOneCallShareASync(t *testing.T) {
	r := newRig(t)
	together := make(chan bool, 1)
	var h *Host
	var once sync.Once
	r.before = func(records [][]byte) error {
		if h != nil {
			once.Do(func() {
				waiting, _ := h.inbox.load()
				for until := time.Now().Add(20 * time.Second); waiting[people] < submitTogether-len(records) && time.Now().Before(until); waiting, _ = h.inbox.load() {
					time.Sleep(time.Millisecond)
				}
				together <- waiting[people] == submitTogether-len(records)
			})
		}
		return nil
	}
	refused := job.ID("")
	var order []job.ID
	r.actors = func() actor.Set {
		gate := &toyGate{toy{step: func(a *toy, now quantity.Instant, in protocol.Message, out *protocol.Out) {
			if in.Kind == protocol.Submit && in.Job == refused {
				out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Reply, To: in.From, Body: &protocol.Receipt{Request: in.Body.(*protocol.Submission).Request, Err: errkind.Errorf(errkind.Exists, "taken")}})
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
		for i := range 3 * submitTogether {
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
			i != 3 && i < submitTogether && o.Err != nil,
			i >= submitTogether && (errkind.Of(o.Err) != errkind.Unavailable || !strings.Contains(o.Err.Error(), "not submitted")):
			t.Fatalf("job %d: %+v", i, o)
		}
	}
	cancel()
	if err := <-ended; err != nil || !<-together {
		t.Errorf("the jobs of a call do not go together, or %v", err)
	}
	for i := range 3 * submitTogether {
		if want := job.ID(fmt.Sprint("a", i)); order[i] != want {
			t.Fatalf("at place %d is %s, want %s", i, order[i], want)
		}
	}
}

// TestTheDigestOfContentStays: it is stored with a job, and a submission that is tried again with a later version is the same job only as
// long as the digest is.
func TestTheDigestOfContentStays(t *testing.T) {
	s := &job.Spec{Name: "count", Queue: "default", Total: 1000, PerUnit: time.Second, Launch: job.Launch{Command: []string{"sh", "-c", "./count.sh"}}}
	if got, want := contentOf(s), "706240a20875451fca81e440b25d2c0070f68c2e81770de35328fca5e186f9a5"; got != want {
		t.Errorf("the content has digest %s, it was %s", got, want)
	}
}
