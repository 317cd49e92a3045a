package requests

import (
	"context"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/space"
	"sluice.dev/sluice/internal/host/trouble"
)

func TestRepliesFindTheirCalls(t *testing.T) {
	c := NewCalls()
	first, err := c.add("r", protocol.Submit)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.add("r", protocol.Submit)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.add("r", protocol.Cancel); errkind.Of(err) != errkind.Conflict {
		t.Errorf("another call under the same id: got %v, want kind conflict", err)
	}
	c.Reply(protocol.Message{Body: &protocol.Receipt{Request: "r"}, Job: "1"}, journal.Position{Seq: 1})
	c.Reply(protocol.Message{Body: &protocol.Receipt{Request: "r"}, Job: "2"}, journal.Position{Seq: 2})
	c.Reply(protocol.Message{Body: &protocol.Receipt{Request: "r"}, Job: "3"}, journal.Position{Seq: 3}) // nobody waits: harmless
	if a, b := <-first, <-second; a.reply.Job != "1" || b.reply.Job != "2" {
		t.Errorf("replies %q and %q went to the first and the second", a.reply.Job, b.reply.Job)
	}
	if _, err := c.add("r", protocol.Cancel); err != nil {
		t.Errorf("the id is free again: %v", err)
	}
	c.Close(inbox.ErrStopping())
	if _, err := c.add("s", protocol.Submit); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("after close: got %v", err)
	}
}

// TestAJobWithoutACommandIsRefused before anybody else hears of it.
func TestAJobWithoutACommandIsRefused(t *testing.T) {
	state := trouble.New(nodes.Nodes{"n"}, nil, nil, nil)
	d := New(nil, nil, state, space.New(t.TempDir(), state, nil), nodes.Directory{Own: nodes.Nodes{"n"}}, nil, nil)
	for _, command := range [][]string{nil, {}, {""}} {
		s := &job.Spec{Name: "a", Launch: job.Launch{Command: command}}
		if _, err := d.Submit(context.Background(), "r", s, nil); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// TestTheDigestOfContentStays: it is stored with a job, and a submission that is tried again with a later version is the same job only as
// long as the digest is.
func TestTheDigestOfContentStays(t *testing.T) {
	s := &job.Spec{Name: "count", Queue: "default", Total: 1000, PerUnit: time.Second,
		Launch: job.Launch{Command: []string{"sh", "-c", "./count.sh"}}}
	if got, want := contentOf(s), "706240a20875451fca81e440b25d2c0070f68c2e81770de35328fca5e186f9a5"; got != want {
		t.Errorf("the content has digest %s, it was %s", got, want)
	}
}
