package gate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// gatehouse is three gates before one zone, with the mail between them, which a test may lose.
type gatehouse struct {
	t     failing
	names protocol.Gates
	gates map[protocol.Address]*Gate
	now   quantity.Instant
	mail  []protocol.Message
	// replies to people, and what the zone was told of queues.
	replies []protocol.Message
	zone    map[string]protocol.Queue
}

type failing interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

var theZone = protocol.Address{Role: protocol.Zone, ID: "z"}

func newGatehouse(t failing) *gatehouse {
	h := &gatehouse{t: t, names: protocol.Gates{"a", "b", "c"}, gates: map[protocol.Address]*Gate{}, now: 1e9,
		zone: map[string]protocol.Queue{}}
	for _, id := range h.names {
		g, err := New(Config{ID: id, Gates: h.names, Zones: Alone("z")})
		if err != nil {
			t.Fatal(err)
		}
		h.gates[protocol.Address{Role: protocol.Gate, ID: string(id)}] = g
		h.step(g, nil)
	}
	return h
}

// step has a gate take in a message, or come up.
func (h *gatehouse) step(g *Gate, m *protocol.Message) {
	var out protocol.Out
	if m == nil {
		g.Recover(h.now, &out)
	} else {
		g.Step(h.now, *m, &out)
	}
	for _, e := range out.Effects {
		switch e.To.Role {
		case protocol.Gate, protocol.Zone:
			h.mail = append(h.mail, e)
		case protocol.Person:
			h.replies = append(h.replies, e)
		default: // the timer rings anyway
		}
	}
}

// deliver carries the mail until there is none; lost says what does not arrive.
func (h *gatehouse) deliver(lost func() bool) {
	for range 1000 {
		if len(h.mail) == 0 {
			return
		}
		m := h.mail[0]
		h.mail = h.mail[1:]
		if lost() {
			continue
		}
		if m.To == theZone {
			if q, ok := m.Body.(*protocol.Queue); ok {
				h.zone[q.Name] = *q
				h.mail = append(h.mail, protocol.Message{Kind: protocol.QueueChanged, From: theZone, To: m.From, Body: q})
			}
			continue
		}
		h.step(h.gates[m.To], &m)
	}
	h.t.Fatal("the gates do not come to rest")
}

func (h *gatehouse) ask(at protocol.Address, m protocol.Message) error {
	m.From, m.To = protocol.Address{Role: protocol.Person, ID: "p"}, at
	h.replies = nil
	h.step(h.gates[at], &m)
	if len(h.replies) != 1 {
		h.t.Fatalf("%d answers", len(h.replies))
	}
	return h.replies[0].Body.(*protocol.Receipt).Err
}

func settings(q protocol.Queue, request string) protocol.Message {
	return protocol.Message{Kind: protocol.SetQueue, Body: &protocol.QueueSetting{Request: request, Queue: &q}}
}

func tiny(name job.ID) *job.Spec {
	return &job.Spec{Name: name, Queue: DefaultQueue, Kind: job.Items, Total: 1, Grid: 1, Parallelism: 1, PerUnit: time.Second,
		Theta: 10_000, Deadline: quantity.Never, Launch: job.Launch{Command: []string{"true"}}}
}

// TestACopyIsOfTheFirstGate: it is a fact once, however often it is said, and none if another gate says it.
func TestACopyIsOfTheFirstGate(t *testing.T) {
	h := newGatehouse(t)
	all := h.names.All()
	for i, c := range []struct {
		from protocol.Address
		want int
	}{{all[2], 0}, {all[0], 1}, {all[0], 0}, {protocol.Address{Role: protocol.Zone, ID: "z"}, 0}} {
		var out protocol.Out
		h.gates[all[1]].Step(h.now, protocol.Message{Kind: protocol.QueueChanged, From: c.from, To: all[1],
			Body: &protocol.Queue{Name: "q", Weight: 2}}, &out)
		if len(out.Facts) != c.want {
			t.Errorf("word %d, of %v: %d facts, want %d", i, c.from, len(out.Facts), c.want)
		}
	}
}

// TestTheFirstGateHasTheQueues: what it is told reaches all gates and the zone, whatever is lost; others refuse, and say who has them.
func TestTheFirstGateHasTheQueues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newGatehouse(t)
		first := h.names.First()
		last := protocol.Queue{}
		for i := range rapid.IntRange(1, 6).Draw(t, "settings") {
			last = protocol.Queue{Name: "q", Weight: int64(rapid.IntRange(1, 9).Draw(t, "weight")),
				Cap: rapid.IntRange(0, 9).Draw(t, "cap")}
			if err := h.ask(first, settings(last, fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
			h.deliver(func() bool { return rapid.IntRange(0, 2).Draw(t, "lost") == 0 })
			if at := h.names.All()[rapid.IntRange(0, 2).Draw(t, "crash")]; rapid.Bool().Draw(t, "crashes") { // it comes back with its facts
				fresh, err := New(h.gates[at].cfg)
				if err != nil {
					t.Fatal(err)
				}
				for _, q := range h.gates[at].Queues() {
					fresh.Apply(protocol.Fact{Kind: protocol.QueueSet, Body: &q})
				}
				h.gates[at] = fresh
				h.step(fresh, nil)
			}
		}
		for range 20 { // what is not confirmed is said again
			h.now = h.now.Add(time.Minute)
			h.step(h.gates[first], &protocol.Message{Kind: protocol.Tick})
			h.deliver(func() bool { return false })
		}
		for at, g := range h.gates {
			if q := g.queues.Find("q"); q == nil || *q != last {
				t.Fatalf("gate %s has another setting than %+v", at.ID, last)
			}
			if at != first {
				if err := h.ask(at, settings(last, "elsewhere")); err == nil || !strings.Contains(err.Error(), "belong to gate a") {
					t.Fatalf("gate %s takes a setting: %v", at.ID, err)
				}
			}
		}
		if h.zone["q"] != last {
			t.Fatalf("the zone has %+v, want %+v", h.zone["q"], last)
		}
		if h.gates[first].queues.Wake() != quantity.Never {
			t.Fatal("everybody has it, and the first gate goes on saying so")
		}
	})
}

// TestAJobBelongsToTheGateOfItsName: others refuse it and say whose it is, so that no name is given out twice.
func TestAJobBelongsToTheGateOfItsName(t *testing.T) {
	h := newGatehouse(t)
	s := tiny("j")
	own := h.names.Of("j")
	for _, at := range h.names.All() {
		err := h.ask(at, protocol.Message{Kind: protocol.Submit, Job: "j", Body: &protocol.Submission{Request: "r", Spec: s, Digest: "d"}})
		switch {
		case at == own && err != nil:
			t.Errorf("its own gate %s: %v", at.ID, err)
		case at != own && (errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "belong to gate "+own.ID)):
			t.Errorf("gate %s: %v", at.ID, err)
		}
	}
}

// TestGatesShareHowManyJobsAQueueMayHave: never more than that in all.
func TestGatesShareHowManyJobsAQueueMayHave(t *testing.T) {
	for _, most := range []int{1, 2, 3, 7} {
		h := newGatehouse(t)
		if err := h.ask(h.names.First(), settings(protocol.Queue{Name: "default", Weight: 1, MaxJobs: most}, "q")); err != nil {
			t.Fatal(err)
		}
		h.deliver(func() bool { return false })
		taken := 0
		for i := range 60 {
			name := job.ID(fmt.Sprint("j", i))
			s := tiny(name)
			if h.ask(h.names.Of(name), protocol.Message{Kind: protocol.Submit, Job: name, Body: &protocol.Submission{Request: string(name),
				Spec: s, Digest: "d"}}) == nil {
				taken++
			}
		}
		if taken != most {
			t.Errorf("%d jobs are taken where there may be %d", taken, most)
		}
	}
}

func TestAGateIsOneOfTheGates(t *testing.T) {
	for _, c := range []Config{{ID: "x"}, {ID: "x", Gates: protocol.Gates{"a", "b"}}, {Gates: protocol.Gates{"a", "b"}}} {
		if c.Zones = Alone("z"); c.Validate() == nil {
			t.Errorf("gate %q of %v is valid", c.ID, c.Gates)
		}
	}
}

// TestEveryGateKnowsADrainedZone: the first gate tells the others until they have said so, also after it came back, and each moves its own
// jobs.
func TestEveryGateKnowsADrainedZone(t *testing.T) {
	names := protocol.Gates{"a", "b"}
	cfg := Config{Gates: names, Zones: []Zone{{ID: "y", Nodes: []job.NodeID{"m"}}, {ID: "z", Nodes: []job.NodeID{"n"}}}}
	open := func(id job.GateID, facts []protocol.Fact) *Gate {
		cfg.ID = id
		g := testGate(t, cfg)
		for _, f := range facts {
			g.Apply(f)
		}
		var out protocol.Out
		g.Recover(1e9, &out)
		return g
	}
	told := func(out *protocol.Out) *protocol.Message {
		for i := range out.Effects {
			if m := &out.Effects[i]; m.Kind == protocol.DrainZone {
				return m
			}
		}
		return nil
	}
	first, second := open("a", nil), open("b", nil)
	call := protocol.Message{Kind: protocol.DrainZone, From: protocol.Address{Role: protocol.Person, ID: "p"},
		Body: &protocol.Draining{Request: "r", Zone: "z"}}
	var out, other protocol.Out
	if second.Step(1e9, call, &other); len(other.Facts) != 0 {
		t.Fatal("a gate that is not the first drains a zone")
	}
	first.Step(1e9, call, &out)
	first = open("a", out.Facts)
	out.Reset()
	first.Step(3e9, protocol.Message{Kind: protocol.Tick}, &out)
	m := told(&out)
	if m == nil || m.To.ID != "b" {
		t.Fatalf("after it came back the first gate tells %+v", m)
	}
	for i := range 2 { // doubled
		other.Reset()
		if second.Step(4e9, *m, &other); told(&other) == nil || (len(other.Facts) == 1) != (i == 0) || !second.Drained("z") {
			t.Fatalf("the other gate: %+v", other)
		}
	}
	first.Step(4e9, *told(&other), &out)
	out.Reset()
	if first.Step(1e12, protocol.Message{Kind: protocol.Tick}, &out); told(&out) != nil {
		t.Error("a gate that knows is told again")
	}
}
