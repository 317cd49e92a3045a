package host

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/tape"
)

func readTape(t *testing.T, dataDir string) []tape.Entry {
	t.Helper()
	dir := filepath.Join(dataDir, tapeDir)
	boots, err := tape.Boots(dir)
	if err != nil || len(boots) == 0 {
		t.Fatalf("boots %q, %v", boots, err)
	}
	r, err := tape.Open(dir, boots[len(boots)-1])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	var all []tape.Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
}

func TestInboxBounds(t *testing.T) {
	b := newInbox()
	for range maxReports + 10 {
		b.put(protocol.Message{Kind: protocol.Report})
	}
	if err := b.call(protocol.Message{Kind: protocol.Submit}); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("a call into a full inbox: got %v, want kind exhausted", err)
	}
	b.put(protocol.Message{Kind: protocol.Exited}) // what must not be lost is always taken
	got, _ := b.take(2*maxReports, nil, nil)
	if len(got) != maxReports+1 || got[maxReports].Kind != protocol.Exited || b.dropped != 10 {
		t.Errorf("%d messages, %d dropped; want %d with the result last, and 10", len(got), b.dropped, maxReports+1)
	}
	for range maxCalls {
		if err := b.ask(func(quantity.Instant) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.ask(func(quantity.Instant) {}); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("a question too many: got %v, want kind exhausted", err)
	}
	b.close()
	if err := b.call(protocol.Message{}); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("after close: got %v, want kind unavailable", err)
	}
}

func TestInboxKeepsOrder(t *testing.T) {
	b := newInbox()
	for i := range 10 {
		b.put(protocol.Message{Ask: uint64(i)})
	}
	var got []protocol.Message
	for len(got) < 10 {
		got, _ = b.take(3, got, nil)
	}
	for i, m := range got {
		if m.Ask != uint64(i) {
			t.Fatalf("message %d came at place %d", m.Ask, i)
		}
	}
}

func TestRepliesFindTheirCalls(t *testing.T) {
	c := newCalls()
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
	c.reply(protocol.Message{Request: "r", Job: "1"}, journal.Position{Seq: 1})
	c.reply(protocol.Message{Request: "r", Job: "2"}, journal.Position{Seq: 2})
	c.reply(protocol.Message{Request: "r", Job: "3"}, journal.Position{Seq: 3}) // nobody waits: harmless
	if a, b := <-first, <-second; a.reply.Job != "1" || b.reply.Job != "2" {
		t.Errorf("replies %q and %q went to the first and the second", a.reply.Job, b.reply.Job)
	}
	if _, err := c.add("r", protocol.Cancel); err != nil {
		t.Errorf("the id is free again: %v", err)
	}
	c.close(errStopping())
	if _, err := c.add("s", protocol.Submit); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("after close: got %v", err)
	}
}

func TestACallThatGivesUpIsToldHowToAskAgain(t *testing.T) {
	r := newRig(t)
	h, err := r.open() // not running: nobody answers
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := h.Submit(ctx, "r1", spec("a"), nil); errkind.Of(err) != errkind.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}
