package stream

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/fabric/fabrictest"
)

var (
	gate  = protocol.Address{Role: protocol.Gate}
	zone  = protocol.Address{Role: protocol.Zone, ID: "z"}
	nodeN = protocol.Address{Role: protocol.Node, ID: "n"}
)

// both is a head and its machine "n" as one fabric, for the suite.
type both struct {
	head   *listening
	member *Member
	rough  func() // called for each message
}

func (b *both) Attach(a protocol.Address, d fabric.Deliver) error {
	if a.Role == protocol.Node {
		return b.member.Attach(a, d)
	}
	return b.head.Attach(a, d)
}

func (b *both) Send(m protocol.Message) {
	b.rough()
	if m.From.Role == protocol.Node {
		b.member.Send(m)
		return
	}
	b.head.Send(m)
}

func (b *both) Dropped() uint64 { return b.head.Dropped() + b.member.Dropped() }
func (b *both) Close() error    { return errors.Join(b.member.Close(), b.head.Head.Close()) }

func TestConformance(t *testing.T) {
	a := newAuthority(t)
	fabrictest.Run(t, fabrictest.Kind{
		Fresh: func(t *testing.T) fabric.Fabric {
			h := serve(t, a, "", brisk)
			m := join(t, a, "n", h.addr, brisk)
			linkedUp(t, h, m)
			return &both{head: h, member: m, rough: func() {}}
		},
	})
}

// A network that cuts all connections again and again loses messages; those who repeat their questions are answered.
func TestRetriesGetThroughANetworkThatCuts(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	net := between(t, h.addr)
	m := join(t, a, "n", net.addr(), brisk)
	if err := m.Attach(nodeN, func(said protocol.Message) {
		m.Send(protocol.Message{Kind: protocol.Published, From: nodeN, To: said.From, Token: said.Token})
	}); err != nil {
		t.Fatal(err)
	}
	var answered sync.Map
	if err := h.Attach(zone, func(said protocol.Message) { answered.Store(said.Token.Seq, true) }); err != nil {
		t.Fatal(err)
	}
	const questions, cuts = 500, 10
	ask := func(q uint64) {
		h.Send(protocol.Message{Kind: protocol.ResultAck, From: zone, To: nodeN, Token: job.Token{Epoch: 1, Seq: q},
			Body: &protocol.Acknowledgement{}})
	}
	for cut := range uint64(cuts) {
		linkedUp(t, h, m)
		speak := net.hush() // so that what is asked now is on its way when the connection is cut
		for q := cut; q < questions; q += cuts {
			ask(q)
		}
		net.cut()
		speak()
	}
	again := 0
	until(t, "all are answered", func() bool {
		missing := 0
		for q := range uint64(questions) {
			if _, ok := answered.Load(q); !ok {
				missing++
				ask(q)
			}
		}
		again += missing
		return missing == 0
	})
	if again == 0 {
		t.Error("nothing was lost: the network cut nothing")
	}
}

// A machine speaks as its own node, to gates and zones: what names another sender or receiver is dropped and counted.
func TestAMachineSpeaksForItselfAlone(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	liar, victim := join(t, a, "liar", h.addr, brisk), join(t, a, "n", h.addr, brisk)
	linkedUp(t, h, liar)
	linkedUp(t, h, victim)
	var heard, told atomic.Int64
	if err := h.Attach(zone, func(m protocol.Message) {
		if m.From != (protocol.Address{Role: protocol.Node, ID: "liar"}) {
			t.Errorf("a message from %v %q was delivered", m.From.Role, m.From.ID)
		}
		heard.Add(1)
	}); err != nil {
		t.Fatal(err)
	}
	if err := victim.Attach(nodeN, func(protocol.Message) { told.Add(1) }); err != nil {
		t.Fatal(err)
	}
	honest := protocol.Address{Role: protocol.Node, ID: "liar"}
	forged := []protocol.Message{
		{Kind: protocol.Published, From: nodeN, To: zone},
		{Kind: protocol.Published, To: zone},
		{Kind: protocol.Adopted, From: zone, To: gate},
		{Kind: protocol.Cancel, From: protocol.Address{Role: protocol.Person}, To: gate, Job: "j", Body: &protocol.Cancellation{}},
		{Kind: protocol.Stop, From: honest, To: nodeN, Body: &protocol.Halt{}},
		{Kind: protocol.Purge, From: honest, To: protocol.Address{Role: protocol.Executor}, Job: "j"},
	}
	for _, m := range forged {
		liar.Send(m)
	}
	liar.Send(protocol.Message{Kind: protocol.Published, From: honest, To: zone})
	until(t, "what is its own arrives", func() bool {
		m, _ := h.Machine("liar")
		return heard.Load() == 1 && m.Received > 0 // it is counted once it was delivered
	})
	for _, m := range h.Machines() {
		if m.Name == "liar" && (m.Forged != uint64(len(forged)) || m.Received != 1) {
			t.Errorf("%d messages were counted as forged and %d as received, want %d and 1", m.Forged, m.Received, len(forged))
		}
	}
	if told.Load() != 0 {
		t.Error("a machine has spoken to another's node")
	}
}

// A machine that was removed is told so, and asks no faster than the last wait.
func TestARefusedMachineIsToldWhy(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	m := join(t, a, "stranger", h.addr, brisk)
	until(t, "it knows why", func() bool {
		_, err := m.State()
		return err != nil && strings.Contains(err.Error(), "machine stranger was removed") && errors.Is(err, errRefused)
	})
	if len(h.Machines()) != 0 {
		t.Errorf("it is listed: %+v", h.Machines())
	}
}

// A head that stops is gone at once, and found again when it is back, at the same address.
func TestAHeadThatComesBack(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	m := join(t, a, "n", h.addr, brisk)
	linkedUp(t, h, m)
	h.shut()
	until(t, "the machine knows", func() bool { _, err := m.State(); return err != nil })
	m.Send(protocol.Message{Kind: protocol.Published, From: nodeN, To: zone})
	if m.Dropped() == 0 {
		t.Error("a message without a link was not counted as dropped")
	}
	again := serve(t, a, h.addr, brisk)
	linkedUp(t, again, m)
	var got atomic.Bool
	if err := again.Attach(zone, func(protocol.Message) { got.Store(true) }); err != nil {
		t.Fatal(err)
	}
	m.Send(protocol.Message{Kind: protocol.Published, From: nodeN, To: zone})
	until(t, "messages flow again", got.Load)
}

// A network that swallows everything, without ending a connection, is known on both sides by the silence; both go on when it speaks again.
// Meanwhile more is said than the buffers of the connection hold.
func TestASilentNetwork(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	net := between(t, h.addr)
	m := join(t, a, "n", net.addr(), brisk)
	if err := m.Attach(nodeN, func(protocol.Message) {}); err != nil {
		t.Fatal(err)
	}
	linkedUp(t, h, m)
	speak := net.hush()
	defer speak()
	large := &protocol.Refusal{Text: strings.Repeat("x", 64<<10)}
	for range 500 {
		h.Send(protocol.Message{Kind: protocol.RedeemRefused, From: zone, To: nodeN, Body: large})
		m.Send(protocol.Message{Kind: protocol.RedeemRefused, From: nodeN, To: zone, Body: large})
	}
	until(t, "the machine knows", func() bool { _, err := m.State(); return err != nil })
	until(t, "the head knows", func() bool { l := h.Machines(); return len(l) == 1 && !l[0].Up && l[0].Why != nil })
	speak()
	linkedUp(t, h, m)
}

// A machine that calls again, before the head knows that its link is gone, takes the place of the earlier one.
func TestAMachineThatCallsAgain(t *testing.T) {
	a := newAuthority(t)
	slow := brisk
	slow.Silence = time.Hour
	h := serve(t, a, "", slow)
	net := between(t, h.addr)
	first := join(t, a, "n", net.addr(), slow)
	linkedUp(t, h, first)
	speak := net.hush()
	defer speak()
	second := join(t, a, "n", h.addr, slow)
	var got atomic.Bool
	if err := second.Attach(nodeN, func(protocol.Message) { got.Store(true) }); err != nil {
		t.Fatal(err)
	}
	until(t, "the second gets what the node is told", func() bool {
		h.Send(protocol.Message{Kind: protocol.Stop, From: zone, To: nodeN, Body: &protocol.Halt{}})
		return got.Load()
	})
	if list := h.Machines(); len(list) != 1 || !list[0].Up {
		t.Errorf("machines: %+v", list)
	}
}

// Close ends every stream, and waits for the receivers that were called.
func TestCloseEndsTheStreams(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", Timing{})
	m := join(t, a, "n", h.addr, Timing{})
	linkedUp(t, h, m)
	if err := h.Head.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, "the machine knows", func() bool { _, err := m.State(); return err != nil })
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
}

// An expelled machine is told why, and may call again.
func TestExpel(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	m := join(t, a, "n", h.addr, brisk)
	linkedUp(t, h, m)
	was, _ := m.State()
	h.Expel("n", errkind.Errorf(errkind.Conflict, "its certificate was renewed"))
	h.Expel("nobody", errors.New("nothing"))
	until(t, "it has called again", func() bool { now, err := m.State(); return err == nil && now.Since.After(was.Since) })
}
