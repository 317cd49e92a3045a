// Package fabrictest is what every kind of fabric must do.
package fabrictest

import (
	"reflect"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric"
)

// Kind makes fabrics for the suite. Gate and zones are attached at the head of a fabric between processes, the node "n" at one of its
// machines; messages are sent where their sender is attached.
type Kind struct {
	// Fresh makes a fabric that was asked for no faults.
	Fresh func(t *testing.T) fabric.Fabric
	// Rough makes one that loses, doubles, delays and reorders; nil if the kind can't be asked to.
	Rough func(t *testing.T, seed uint64) fabric.Fabric
}

// patience bounds every wait of the suite; a kind that needs more is broken.
const patience = 20 * time.Second

var (
	gate = protocol.Address{Role: protocol.Gate}
	zone = protocol.Address{Role: protocol.Zone, ID: "z"}
	node = protocol.Address{Role: protocol.Node, ID: "n"}
)

// Run runs the suite.
func Run(t *testing.T, k Kind) {
	t.Run("carries a message unchanged to its address", func(t *testing.T) { unchanged(t, k) })
	t.Run("carries a message to the node, and its answer", func(t *testing.T) { answered(t, k) })
	t.Run("nobody there", func(t *testing.T) { nobody(t, k) })
	t.Run("one receiver an address", func(t *testing.T) { twice(t, k) })
	t.Run("a receiver may send", func(t *testing.T) { reentrant(t, k) })
	t.Run("many senders", func(t *testing.T) { many(t, k) })
	t.Run("closed", func(t *testing.T) { closed(t, k) })
	t.Run("retries get through a rough one", func(t *testing.T) { rough(t, k) })
}

// box collects what arrives.
type box struct {
	mu   sync.Mutex
	all  []protocol.Message
	ping chan struct{}
}

func newBox() *box { return &box{ping: make(chan struct{}, 1)} }

func (b *box) deliver(m protocol.Message) {
	b.mu.Lock()
	b.all = append(b.all, m)
	b.mu.Unlock()
	select {
	case b.ping <- struct{}{}:
	default:
	}
}

func (b *box) got() []protocol.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]protocol.Message(nil), b.all...)
}

// wait returns once n messages are there.
func (b *box) wait(t *testing.T, n int) []protocol.Message {
	t.Helper()
	end := time.After(patience)
	for {
		if got := b.got(); len(got) >= n {
			return got
		}
		select {
		case <-b.ping:
		case <-end:
			t.Fatalf("%d of %d messages arrived within %v", len(b.got()), n, patience)
		}
	}
}

func attach(t *testing.T, f fabric.Fabric, a protocol.Address, d fabric.Deliver) {
	t.Helper()
	if err := f.Attach(a, d); err != nil {
		t.Fatal(err)
	}
}

func shut(t *testing.T, f fabric.Fabric) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func unchanged(t *testing.T, k Kind) {
	f := k.Fresh(t)
	defer shut(t, f)
	z, n := newBox(), newBox()
	attach(t, f, zone, z.deliver)
	attach(t, f, node, n.deliver)
	m := protocol.Message{
		Kind: protocol.Redeem, From: zone, To: node, Job: "j", Epoch: 3,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "n/0", Also: []job.SliceID{"n/1"}, Range: job.Range{From: 10, To: 20},
			Start: 5, End: 50, Plan: protocol.Plan{Run: time.Second, Wall: 2 * time.Second, Window: 4, Round: 5}}},
		Token: job.Token{Epoch: 2, Seq: 9},
	}
	f.Send(m)
	if got := n.wait(t, 1); !reflect.DeepEqual(got[0], m) {
		t.Errorf("got %+v, sent %+v", got[0], m)
	}
	if got := z.got(); len(got) != 0 {
		t.Errorf("the zone got %d messages that were for the node", len(got))
	}
}

// answered: whoever is asked answers from within its receiver.
func answered(t *testing.T, k Kind) {
	f := k.Fresh(t)
	defer shut(t, f)
	z := newBox()
	attach(t, f, zone, z.deliver)
	attach(t, f, node, func(m protocol.Message) {
		f.Send(protocol.Message{Kind: protocol.RedeemRefused, From: node, To: m.From, Token: m.Token, Job: m.Job,
			Body: &protocol.Refusal{Text: "it is late"}})
	})
	f.Send(protocol.Message{Kind: protocol.Redeem, From: zone, To: node, Job: "j", Token: job.Token{Epoch: 2, Seq: 9},
		Body: &protocol.Work{}})
	got := z.wait(t, 1)[0]
	if got.Kind != protocol.RedeemRefused || got.From != node || got.Token != (job.Token{Epoch: 2, Seq: 9}) ||
		got.Body.(*protocol.Refusal).Text != "it is late" {
		t.Errorf("got %+v", got)
	}
}

func nobody(t *testing.T, k Kind) {
	f := k.Fresh(t)
	defer shut(t, f)
	f.Send(protocol.Message{Kind: protocol.Adopt, From: gate, To: zone, Body: &protocol.Adoption{}})
	end := time.Now().Add(patience)
	for f.Dropped() != 1 {
		if time.Now().After(end) {
			t.Fatalf("%d messages dropped, want 1", f.Dropped())
		}
		time.Sleep(time.Millisecond)
	}
}

func twice(t *testing.T, k Kind) {
	f := k.Fresh(t)
	defer shut(t, f)
	attach(t, f, zone, func(protocol.Message) {})
	if err := f.Attach(zone, func(protocol.Message) {}); errkind.Of(err) != errkind.Exists {
		t.Errorf("second receiver: got %v, want an error of kind exists", err)
	}
}

func reentrant(t *testing.T, k Kind) {
	f := k.Fresh(t)
	defer shut(t, f)
	g := newBox()
	attach(t, f, gate, g.deliver)
	attach(t, f, zone, func(m protocol.Message) {
		f.Send(protocol.Message{Kind: protocol.Adopted, From: zone, To: gate, Job: m.Job})
	})
	f.Send(protocol.Message{Kind: protocol.Adopt, From: gate, To: zone, Job: "j", Body: &protocol.Adoption{}})
	if got := g.wait(t, 1); got[0].Kind != protocol.Adopted || got[0].Job != "j" {
		t.Errorf("got %+v", got[0])
	}
}

func many(t *testing.T, k Kind) {
	const senders, each = 8, 100
	f := k.Fresh(t)
	defer shut(t, f)
	z := newBox()
	attach(t, f, zone, z.deliver)
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				f.Send(protocol.Message{Kind: protocol.Report, From: node, To: zone, Session: uint64(s),
					Body: &protocol.Observation{Progress: int64(i)}})
			}
		})
	}
	wg.Wait()
	seen := map[[2]int64]int{}
	for _, m := range z.wait(t, senders*each) {
		seen[[2]int64{int64(m.Session), m.Body.(*protocol.Observation).Progress}]++
	}
	if len(seen) != senders*each {
		t.Errorf("%d different messages arrived, want %d", len(seen), senders*each)
	}
}

func closed(t *testing.T, k Kind) {
	f := k.Fresh(t)
	z := newBox()
	attach(t, f, zone, z.deliver)
	shut(t, f)
	shut(t, f)
	before := len(z.got())
	f.Send(protocol.Message{Kind: protocol.Adopt, From: gate, To: zone, Body: &protocol.Adoption{}})
	if got := len(z.got()); got != before {
		t.Errorf("a message was delivered after Close")
	}
	if err := f.Attach(node, func(protocol.Message) {}); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("attach after Close: got %v, want an error of kind unavailable", err)
	}
}

// rough asks until every one of a hundred questions is answered, as every actor does, and insists that something was
// really lost and doubled on the way.
func rough(t *testing.T, k Kind) {
	if k.Rough == nil {
		t.Skip("this kind can't be asked to misbehave")
	}
	const questions = 100
	f := k.Rough(t, 1)
	defer shut(t, f)
	g := newBox()
	attach(t, f, gate, g.deliver)
	attach(t, f, zone, func(m protocol.Message) {
		f.Send(protocol.Message{Kind: protocol.Adopted, From: zone, To: gate, Session: m.Session})
	})
	answers := map[uint64]int{}
	end := time.Now().Add(patience)
	for len(answers) < questions {
		if time.Now().After(end) {
			t.Fatalf("%d of %d questions answered", len(answers), questions)
		}
		for q := range uint64(questions) {
			if answers[q] == 0 {
				f.Send(protocol.Message{Kind: protocol.Adopt, From: gate, To: zone, Session: q, Body: &protocol.Adoption{}})
			}
		}
		time.Sleep(5 * time.Millisecond)
		clear(answers)
		for _, m := range g.got() {
			answers[m.Session]++
		}
	}
	if f.Dropped() == 0 {
		t.Error("nothing was lost: the fabric was not rough")
	}
}
