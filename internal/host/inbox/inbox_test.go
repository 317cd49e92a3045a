package inbox

import (
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestInboxBounds: every lane has room of its own; what is said again is dropped beyond it, who waits for an answer is refused, and
// what the executor says once is always taken. A full lane is told of once.
func TestInboxBounds(t *testing.T) {
	told := map[Lane]int{}
	b := New(func(l Lane, _ uint64) { told[l]++ })
	from := func(k protocol.Kind, r protocol.Role) protocol.Message {
		return protocol.Message{Kind: k, From: protocol.Address{Role: r}}
	}
	total := 0
	for l, m := range map[Lane]protocol.Message{
		Bidders: from(protocol.Attend, protocol.Bidder), Peers: from(protocol.Closed, protocol.Zone),
		Reports: from(protocol.Report, protocol.Executor),
	} {
		for range l.Room() + 10 {
			b.Put(m)
		}
		total += l.Room()
		if waiting, dropped := b.Load(); waiting[l] != l.Room() || dropped[l] != 10 || told[l] != 1 {
			t.Errorf("%v: %d wait, %d were dropped, told of %d times; want %d, 10 and 1", l, waiting[l], dropped[l], told[l], l.Room())
		}
	}
	for range People.Room() {
		if err := b.Call(from(protocol.Submit, protocol.Person)); err != nil {
			t.Fatalf("people have room of their own: %v", err)
		}
	}
	for _, m := range []protocol.Message{from(protocol.Submit, protocol.Person), from(protocol.Answer, protocol.Bidder)} {
		if err := b.Call(m); errkind.Of(err) != errkind.Exhausted {
			t.Errorf("a call of %v too many: got %v, want kind exhausted", laneOf(&m), err)
		}
	}
	b.Put(from(protocol.Exited, protocol.Executor))
	total += People.Room() + 1
	got, _ := b.Take(2*total, 0, nil, nil)
	if waiting, _ := b.Load(); len(got) != total || got[total-1].Kind != protocol.Exited || waiting != [Lanes]int{} {
		t.Errorf("%d messages, then %v wait; want %d with the result last, and none", len(got), waiting, total)
	}
	b.Put(from(protocol.Closed, protocol.Zone))
	if got, _ := b.Take(9, 0, nil, nil); len(got) != 1 {
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
	b.Close()
	if err := b.Call(protocol.Message{}); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("after close: got %v, want kind unavailable", err)
	}
}

func TestInboxKeepsOrder(t *testing.T) {
	b := New(nil)
	put, got := 0, 0
	for round := range 3000 { // it grows, wraps around and is emptied
		for range round % 7 * (round / 500) {
			b.Put(protocol.Message{Session: uint64(put)})
			put++
		}
		batch, _ := b.Take(round%11, 0, nil, nil)
		if round%1000 == 999 {
			batch, _ = b.Take(put, 0, batch, nil)
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
