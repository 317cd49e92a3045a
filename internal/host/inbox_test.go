package host

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
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

// TestInboxBounds: every lane has room of its own; what is said again is dropped beyond it, who waits for an answer is refused, and
// what the executor says once is always taken. A full lane is told of once.
func TestInboxBounds(t *testing.T) {
	told := map[lane]int{}
	b := newInbox(func(l lane, _ uint64) { told[l]++ })
	from := func(k protocol.Kind, r protocol.Role) protocol.Message {
		return protocol.Message{Kind: k, From: protocol.Address{Role: r}}
	}
	total := 0
	for l, m := range map[lane]protocol.Message{
		bidders: from(protocol.Attend, protocol.Bidder), peers: from(protocol.Closed, protocol.Zone), reports: from(protocol.Report, protocol.Executor),
	} {
		for range l.room() + 10 {
			b.put(m)
		}
		total += l.room()
		if waiting, dropped := b.load(); waiting[l] != l.room() || dropped[l] != 10 || told[l] != 1 {
			t.Errorf("%v: %d wait, %d were dropped, told of %d times; want %d, 10 and 1", l, waiting[l], dropped[l], told[l], l.room())
		}
	}
	for range people.room() {
		if err := b.call(from(protocol.Submit, protocol.Person)); err != nil {
			t.Fatalf("people have room of their own: %v", err)
		}
	}
	for _, m := range []protocol.Message{from(protocol.Submit, protocol.Person), from(protocol.Answer, protocol.Bidder)} {
		if err := b.call(m); errkind.Of(err) != errkind.Exhausted {
			t.Errorf("a call of %v too many: got %v, want kind exhausted", laneOf(&m), err)
		}
	}
	b.put(from(protocol.Exited, protocol.Executor))
	total += people.room() + 1
	got, _ := b.take(2*total, 0, nil, nil)
	if waiting, _ := b.load(); len(got) != total || got[total-1].Kind != protocol.Exited || waiting != [lanes]int{} {
		t.Errorf("%d messages, then %v wait; want %d with the result last, and none", len(got), waiting, total)
	}
	b.put(from(protocol.Closed, protocol.Zone))
	if got, _ := b.take(9, 0, nil, nil); len(got) != 1 {
		t.Error("there is no room again")
	}
	for range maxQueries {
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
	b := newInbox(nil)
	put, got := 0, 0
	for round := range 3000 { // it grows, wraps around and is emptied
		for range round % 7 * (round / 500) {
			b.put(protocol.Message{Session: uint64(put)})
			put++
		}
		batch, _ := b.take(round%11, 0, nil, nil)
		if round%1000 == 999 {
			batch, _ = b.take(put, 0, batch, nil)
		}
		for _, m := range batch {
			if m.Session != uint64(got) {
				t.Fatalf("message %d came at place %d", m.Session, got)
			}
			got++
		}
	}
	if got != put || got < 10_000 {
		t.Errorf("%d of %d came", got, put)
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
	c.reply(protocol.Message{Body: &protocol.Receipt{Request: "r"}, Job: "1"}, journal.Position{Seq: 1})
	c.reply(protocol.Message{Body: &protocol.Receipt{Request: "r"}, Job: "2"}, journal.Position{Seq: 2})
	c.reply(protocol.Message{Body: &protocol.Receipt{Request: "r"}, Job: "3"}, journal.Position{Seq: 3}) // nobody waits: harmless
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

// chatty is an inventory that sees something new as fast as it is heard.
type chatty struct{ fixed }

func (chatty) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	for ctx.Err() == nil {
		report(inventory.Sighting{Slice: "s", Present: true})
	}
	return nil
}

// TestTheInventoryWaits while nobody takes what it has said: none of that may be lost, and it must not grow for ever.
func TestTheInventoryWaits(t *testing.T) {
	r := newRig(t)
	r.options = func(o *Options) {
		o.Inventory, o.Ours = chatty{}, func(job.SliceID, int) bool { return false }
	}
	h, err := r.open() // not running: nobody takes anything
	if err != nil {
		t.Fatal(err)
	}
	stop := h.watch(t.Context())
	for waiting, _ := h.inbox.load(); waiting[world] < patientRoom; waiting, _ = h.inbox.load() {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(5 * time.Millisecond) // a chance to go on, were it not to wait
	stop()
	// Once it is to end it says what it was about to say.
	if waiting, dropped := h.inbox.load(); waiting[world] > patientRoom+1 || dropped[world] != 0 {
		t.Errorf("%d wait, %d were dropped", waiting[world], dropped[world])
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
}
