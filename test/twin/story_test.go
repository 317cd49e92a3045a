package twin_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/sim"
)

// story is the real actors on the simulator, with an oracle that reads only their facts. It begins at second 1000.
type story struct {
	t      failer
	sim    *sim.Sim
	actors actor.Set
	oracle oracle
	asks   map[quantity.Instant]int
}

// setting of a story. Zero values: two slices as in machine, policy fifo, a horizon of ten minutes, no faults.
type setting struct {
	slices  []protocol.Slice
	policy  policy.Policy
	horizon time.Duration
	model   sim.Model
	// rough draws what becomes of a message between actors: 0 is lost, 2 is doubled. Nil: every message arrives once.
	rough func(m *protocol.Message) int
}

const storyStart = quantity.Instant(1000 * time.Second)

func at(after time.Duration) quantity.Instant { return storyStart.Add(after) }

func newStory(t failer, o setting) *story {
	t.Helper()
	if o.slices == nil {
		o.slices = machine("n/")
	}
	if o.policy == nil {
		o.policy = fifo.Policy{}
	}
	if o.model == nil {
		o.model = truly(o.slices)
	}
	if o.horizon == 0 {
		o.horizon = 10 * time.Minute
	}
	n := node.Config{ID: nodeID, Zone: zoneID, Horizon: o.horizon}
	if o.rough != nil {
		n.Refresh = 5 * time.Second
	}
	make, err := arrangement.Alone(
		gate.Config{Zones: gate.Alone(zoneID), Horizon: o.horizon},
		zone.Config{ID: zoneID, Policy: o.policy, Horizon: o.horizon},
		n,
	).Build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	s := &story{t: t, actors: make(), asks: map[quantity.Instant]int{}}
	s.oracle = newOracle(t)
	watched := actor.Alone(zoneID, nodeID, roughGate{s.actors.Gates[0].Gate, o.rough},
		roughZone{s.actors.Zones[0].Zone, func(m *protocol.Message) int {
			if m.Kind == protocol.Ask || m.Kind == protocol.Reserve {
				s.asks[s.sim.Now()]++
				if s.asks[s.sim.Now()] > 200 {
					t.Fatalf("at %v the zone asks again and again: %+v", s.since(), *m)
				}
			}
			if o.rough == nil {
				return 1
			}
			return o.rough(m)
		}}, roughNode{s.actors.Nodes[0].Node, o.rough})
	s.sim, err = sim.New(sim.Options{
		Start: storyStart, Gates: watched.Gates, Zones: watched.Zones, Model: o.model, Fact: s.oracle.fact,
		Nodes: []sim.Node{{ID: nodeID, Actor: watched.Nodes[0].Node, Slices: o.slices}},
		Reply: func(_ quantity.Instant, m *protocol.Message) {
			if m.Body.(*protocol.Receipt).Err != nil {
				t.Errorf("after %v a call is refused: %v", s.since(), m.Body.(*protocol.Receipt).Err)
			}
		},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return s
}

func (s *story) since() time.Duration { return s.sim.Now().Sub(storyStart) }

func (s *story) person(after time.Duration, to protocol.Role, m protocol.Message) {
	m.From, m.To = protocol.Address{Role: protocol.Person, ID: "p"}, protocol.Address{Role: to}
	if to == protocol.Node {
		m.To.ID = string(nodeID)
	}
	s.sim.At(at(after), m)
}

func (s *story) submit(after time.Duration, specs ...*job.Spec) {
	for _, spec := range specs {
		s.person(after, protocol.Gate, protocol.Message{
			Kind: protocol.Submit, Body: &protocol.Submission{Request: "of " + string(spec.Name), Spec: spec, Digest: "content of " +
				string(spec.Name)}, Job: spec.Name,
		})
	}
}

// reserve takes a slice's time for its owner.
func (s *story) reserve(after time.Duration, r protocol.Reservation) {
	s.person(after, protocol.Node, protocol.Message{Kind: protocol.Reserve, Body: &protocol.Booking{Request: fmt.Sprint("reserve ", r),
		Reservation: &r}})
}

// run goes on until so long after the start.
func (s *story) run(until time.Duration) {
	s.t.Helper()
	if err := s.sim.Run(context.Background(), at(until)); err != nil {
		s.t.Fatalf("%v", err)
	}
	for _, j := range everyJob(s.actors.Zones[0], s.sim.Now()) {
		if j.Reason == "" {
			s.t.Errorf("after %v job %s is %v without a reason", s.since(), j.Name, j.State)
		}
	}
}

func (s *story) job(name job.ID) jobView {
	j, _ := s.actors.Zones[0].Job(s.sim.Now(), name)
	return jobView{State: j.State, Reason: j.Reason, Progress: j.Progress, Started: j.Started.Sub(storyStart),
		Ended: j.Ended.Sub(storyStart), Pieces: len(j.History)}
}

// jobView is what stories look at. Times are since the start.
type jobView struct {
	State          job.State
	Reason         string
	Progress       int64
	Started, Ended time.Duration
	Pieces         int
}

// ended fails unless the jobs ended in this state by then.
func (s *story) ended(state job.State, by time.Duration, names ...job.ID) {
	s.t.Helper()
	for _, n := range names {
		if j := s.job(n); j.State != state || j.Ended > by {
			s.t.Errorf("job %s: want %v by %v, got %+v", n, state, by, j)
		}
	}
}

// The rough actors lose and double what they send to each other.
type (
	roughGate struct {
		actor.Gate
		draw func(*protocol.Message) int
	}
	roughZone struct {
		actor.Zone
		draw func(*protocol.Message) int
	}
	roughNode struct {
		actor.Node
		draw func(*protocol.Message) int
	}
)

func (r roughGate) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	roughly(r.Gate, r.draw, now, in, out)
}
func (r roughZone) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	roughly(r.Zone, r.draw, now, in, out)
}
func (r roughNode) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	roughly(r.Node, r.draw, now, in, out)
}

func roughly(a protocol.Actor, draw func(*protocol.Message) int, now quantity.Instant, in protocol.Message, out *protocol.Out) {
	first := len(out.Effects)
	a.Step(now, in, out)
	if draw == nil {
		return
	}
	said := slices.Clone(out.Effects[first:])
	out.Effects = out.Effects[:first]
	for i := range said {
		n := 1
		if role := said[i].To.Role; role == protocol.Gate || role == protocol.Zone || role == protocol.Node {
			n = draw(&said[i])
		}
		for range n {
			out.Effects = append(out.Effects, said[i])
		}
	}
}

// truly is a machine on which every unit takes what its job declared, and not what the plan allows for: a rigid job takes
// its walltime.
func truly(slices []protocol.Slice) sim.Model {
	return func(m *protocol.Message) sim.Behaviour {
		b := sim.Planned(m)
		if m.Body.(*protocol.Work).Spec.Divisible() {
			speed := int64(1000)
			for _, s := range slices {
				if s.ID == m.Body.(*protocol.Work).Slice {
					speed = s.Speed
				}
			}
			unit := m.Body.(*protocol.Work).Spec.PerUnit
			if unit == 0 { // nothing is declared
				unit = 700 * time.Millisecond
			}
			b.PerUnit = unit * 1000 / time.Duration(speed)
		}
		return b
	}
}

// one is a slice of so many GiB.
func one(gib int64) []protocol.Slice { return equal(1, gib) }

func equal(n int, gib int64) (out []protocol.Slice) {
	for i := range n {
		out = append(out, protocol.Slice{
			ID: job.SliceID(fmt.Sprintf("n/s%d", i)), Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: 1000, Simulated: true,
		})
	}
	return out
}

// with changes a spec.
func with(s *job.Spec, change func(*job.Spec)) *job.Spec {
	change(s)
	return s
}

func TestTheOracleSees(t *testing.T) {
	said := &recorder{}
	o := newOracle(said)
	fact := func(f protocol.Fact) { o.fact(at(0), &f) }
	lease := protocol.Fact{Kind: protocol.LeaseMade, Token: job.Token{Epoch: 1, Seq: 1},
		Body: &protocol.Terms{Placement: protocol.Placement{Slice: "s", Start: at(0), End: at(time.Minute), Range: job.Range{To: 9}}}}
	fact(lease)
	lease.Token.Seq++
	fact(lease)
	done := protocol.Fact{Kind: protocol.Committed, Job: "a", Body: &protocol.ClaimEnd{Range: job.Range{To: 9},
		Result: &job.Result{Progress: 5}}}
	fact(done)
	fact(done)
	if said.errors != 4 { // an overlap, work that was not done twice, and work twice
		t.Errorf("the oracle found %d faults, want 4", said.errors)
	}
}

type recorder struct{ errors int }

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }
func (r *recorder) Fatalf(string, ...any) { r.errors++ }
