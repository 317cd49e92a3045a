package sim_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/lender"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

const (
	minute = quantity.Instant(time.Minute)
	begin  = 1000 * quantity.Instant(time.Second)
)

// removed is the state of a slice in a zone whose node was removed: nobody confirms it any more.
const removed = "unconfirmed"

// listed are jobs in a row.
type listed struct{ jobs []workload.Job }

func (l *listed) Next(j *workload.Job) (bool, error) {
	if len(l.jobs) == 0 {
		return false, nil
	}
	*j, l.jobs = l.jobs[0], l.jobs[1:]
	return true, nil
}

// lending is a world without machines of its own: a pool whose host takes room back, refuses and is silent, and a head that crashes twice.
type lending struct {
	gate    *gate.Gate
	zone    *zone.Zone
	sight   *supply.Sight // the newest that the zone has heard
	lent    measure.Lent
	options sim.Options
}

// hearing is the zone, of which it is noted what it sees of the pool.
type hearing struct {
	*zone.Zone
	world *lending
}

func (h hearing) Step(now quantity.Instant, in protocol.Message, out *protocol.Out) {
	if s, ok := in.Body.(*supply.Sight); ok {
		h.world.sight = s
	}
	h.Zone.Step(now, in, out)
}

// needs is a profile of so much over so many units.
func needs(units int64, most quantity.Amount) trp.Profile {
	return trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: units, Mean: most}}}
}

func lend(t *testing.T) *lending {
	t.Helper()
	w := &lending{}
	build := func(at protocol.Address) protocol.Actor {
		if at.Role == protocol.Gate {
			g, err := gate.New(gate.Config{Zones: gate.Alone("z"), Retain: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			w.gate = g
			return g
		}
		z, err := zone.New(zone.Config{ID: "z", Policy: policies.Policies()[0]})
		if err != nil {
			t.Fatal(err)
		}
		w.zone = z
		return hearing{z, w}
	}
	build(protocol.Address{Role: protocol.Gate})
	build(protocol.Address{Role: protocol.Zone, ID: "z"})
	slice := supply.Slice{Capacity: trp.Vector{trp.Memory: 10 << 30}, Speed: 1000, Profile: "1g.10gb"}
	pool := lender.Pool{
		Pool: supply.Pool{
			Name: "p", Most: 3, Lengths: []time.Duration{2 * time.Minute, 15 * time.Minute}, Step: time.Minute, Idle: time.Minute,
			Start: 8 * time.Second, HandOver: 10 * time.Second, Slices: []supply.Slice{slice, slice},
		},
		Joins: 8 * time.Second, Pass: 7 * time.Second,
		Gaps: []lender.Gap{{Span: lender.Span{Start: begin + minute, End: quantity.Never}, Count: 3}},
		Preempts: []lender.Preemption{{At: begin + 6*minute, Count: 1, Grace: 30 * time.Second, For: 5 * time.Minute},
			{At: begin + 20*minute, Count: 2, For: time.Minute}},
		Refuses: []lender.Span{{Start: begin, End: begin + 2*minute}},
		Silent:  []lender.Span{{Start: begin + 24*minute, End: begin + 27*minute}},
	}
	var jobs []workload.Job
	for i := range int64(12) {
		jobs = append(jobs, workload.Job{Number: i, Queue: gate.DefaultQueue, Kind: job.Steps, Slices: 1, Units: 600, Grid: 5,
			Parallelism: 1, Submit: begin + quantity.Instant(i)*minute, Theta: job.DefaultTheta, Work: 600 * time.Second,
			Declared: 600 * time.Second, Restore: time.Second,
			Checkpoint: time.Second, Profile: needs(600, 4<<30),
			Memory: workload.Memory{Phases: needs(600, 4<<30).Phases}})
	}
	specs := workload.Specs{Grace: 2 * time.Second}
	w.options = sim.Options{
		Start: begin - quantity.Instant(time.Second),
		Gates: actor.OneGate(w.gate), Zones: []actor.ZoneAt{{ID: "z", Zone: hearing{w.zone, w}}}, Rebuild: build,
		Source: &listed{jobs}, Spec: func(j *workload.Job) (*job.Spec, error) { return specs.Spec(j, j.Name()) },
		Lenders: &lender.Lenders{Pools: []lender.Pool{pool}, Lent: &w.lent}, Seed: 7,
		Pilot: func(id job.NodeID, number int, p *lender.Pool) actor.Node {
			return node.New(node.Config{ID: id, Number: number, Zone: "z", HandOver: p.HandOver, TruncateGrace: lender.Grace - p.HandOver,
				Refresh: 5 * time.Second})
		},
		Faults: sim.Faults{Schedule: []sim.Fault{{Kind: sim.DaemonCrash, At: begin + 15*minute, For: 20 * time.Second},
			{Kind: sim.ZoneCrash, Zone: "z", At: begin + 22*minute, For: time.Second}}},
	}
	return w
}

// play plays the world to its end, and gives what every step came to.
func (w *lending) play(t *testing.T) uint64 {
	t.Helper()
	sum := fnv.New64a()
	w.options.Stepped = func(now quantity.Instant, p actor.Party) {
		fmt.Fprintln(sum, now, p.Address, p.Actor.Digest())
	}
	s, err := sim.New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	over, err := s.RunOut(t.Context(), begin+5*60*minute)
	if err != nil || !over {
		t.Fatalf("over: %v, %v; %d jobs are left", over, err, s.Live())
	}
	s.FinishPilots()
	return sum.Sum64()
}

// TestPilotsComeAndGo: whatever a host does and whenever the head crashes, all work is done, by pilots alone, and in the end nobody knows
// of any: neither the gate nor the zone, whose facts fold to what they were at each crash (package sim checks it).
func TestPilotsComeAndGo(t *testing.T) {
	w := lend(t)
	w.play(t)
	l := &w.lent
	if l.Preempted != 3 || l.Refused == 0 || l.Failed != 0 || l.Granted < 8 || l.Asked != l.Granted+l.Refused {
		t.Errorf("%+v", l)
	}
	if done := 12 * 600 * time.Second; l.Useful < done || l.Useful > done+10*time.Minute || l.Held < l.Useful || l.Starting <= 0 ||
		l.Time < l.Held+l.Starting || l.Room < l.Time {
		t.Errorf("%+v", l)
	}
	for _, x := range w.zone.Survey().Offered(begin + 300*minute) {
		if x.State != removed {
			t.Errorf("a slice that is not there any more: %+v", x)
		}
	}
	// What a pool may lend is known to the gate as slices, so that a job that fits them alone is taken in, and one that doesn't is not.
	for _, c := range []struct {
		need quantity.Amount
		fits bool
	}{{9 << 30, true}, {11 << 30, false}} {
		specs := workload.Specs{}
		j := workload.Job{Queue: gate.DefaultQueue, Kind: job.Steps, Slices: 1, Units: 10, Grid: 1, Parallelism: 1, Work: time.Minute,
			Declared: time.Minute,
			Profile:  needs(10, c.need), Memory: workload.Memory{Phases: needs(10, c.need).Phases}, Theta: job.DefaultTheta}
		spec, err := specs.Spec(&j, "late")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.gate.Check(begin, spec); (err == nil) != c.fits {
			t.Errorf("a job that needs %d MiB: %v", c.need>>20, err)
		}
	}
}

// TestPilotsAreTheSameEachTime: every step of every actor comes to the same digest.
func TestPilotsAreTheSameEachTime(t *testing.T) {
	one, two := lend(t), lend(t)
	if a, b := one.play(t), two.play(t); a != b || one.lent != two.lent {
		t.Errorf("%x and %x: %+v, %+v", a, b, one.lent, two.lent)
	}
	other := lend(t)
	other.options.Lenders.Pools[0].Pass++
	if a, b := one.lent, other.play(t); b == 0 || a.Granted == 0 {
		t.Error("nothing was played")
	}
}

// TestTheZoneSeesPilotsAsLive: a pilot's slices are there from when its machine has joined, closed by its end, and they are gone once it
// has left.
func TestTheZoneSeesPilotsAsLive(t *testing.T) {
	w := lend(t)
	s, err := sim.New(w.options)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[job.NodeID]bool{}
	most := 0
	for now := begin; now < begin+14*minute; now += quantity.Instant(time.Second) {
		if err := s.Run(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		until := map[job.NodeID]quantity.Instant{} // by the newest sight, which may be a little old
		if w.sight != nil {
			for _, p := range w.sight.Pilots {
				until[job.NodeID(p.Name)] = p.Until
			}
		}
		nodes := map[job.NodeID]bool{}
		for _, x := range w.zone.Survey().Offered(now) {
			if x.State == removed {
				continue
			}
			nodes[x.Node], seen[x.Node] = true, true
			closed := slices.ContainsFunc(x.Reservations, func(r protocol.Reservation) bool {
				return r.End == quantity.Never && (until[x.Node] == 0 || r.Start <= until[x.Node])
			})
			if !closed || !strings.HasPrefix(string(x.Slice.ID), string(x.Node)+"/") {
				t.Fatalf("at %v slice %s of %s, which is gone at %v, is not closed by then: %+v", now.Time(), x.Slice.ID, x.Node,
					until[x.Node].Time(), x.Reservations)
			}
		}
		most = max(most, len(nodes))
	}
	if most < 2 || most > 3 || len(seen) < 3 {
		t.Errorf("%d machines at once, %d in all", most, len(seen))
	}
}
