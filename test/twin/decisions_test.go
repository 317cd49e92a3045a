package twin_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/arrangement"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/guest"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// tale is a small story that is told word by word.
type tale struct {
	name   string
	slices []protocol.Slice
	policy policy.Policy
	market *auction.Config
	model  sim.Model
	agent  sim.Agents
	faults sim.Faults
	guests *guest.House
	// answers stands in for the node: true if it has dealt with the message.
	answers func(now quantity.Instant, in *protocol.Message, out *protocol.Out) bool
	tell    func(t *testing.T, s *story)
	// several has the slices on several nodes, in several zones; nil: one of each.
	several *spread
	// until is how long it goes on, and shows what must be in it: that the story is still about what its name says.
	until time.Duration
	shows []string
}

// TestDecisions holds every message and every fact of small stories against testdata/decisions: what is decided, and in which
// order, is seen in review. Change it on purpose with -update (make golden).
func TestDecisions(t *testing.T) {
	for _, story := range tales() {
		t.Run(story.name, func(t *testing.T) {
			_, got := story.told(t, story.until)
			got += "\nas people see it after " + story.look().String() + ":\n" + story.seen(t)
			for _, part := range story.shows {
				if !strings.Contains(got, part) {
					t.Errorf("the story no longer has %q in it", part)
				}
			}
			file := filepath.Join("testdata", "decisions", story.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // golden files are for everyone
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: write it with -update", err)
			}
			if got != string(want) {
				t.Errorf("%s is told otherwise: %s\nrun make golden and read the difference if that is wanted", file,
					firstDifference(got, string(want)))
			}
		})
	}
}

func firstDifference(got, want string) string {
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d is\n%s\nwant\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("it has %d lines, want %d", len(a), len(b))
}

// look is when people look at it.
func (x *tale) look() time.Duration { return x.until / 20 }

// seen is what people are shown at a moment of the story, in a telling of its own: who looks may change nothing.
func (x *tale) seen(t *testing.T) string {
	s, _ := x.told(t, x.look())
	var b strings.Builder
	now := s.sim.Now()
	show := func(what string, v any) {
		fmt.Fprintf(&b, "%s%s\n", what, fields(reflect.ValueOf(v), "Spec", "Job"))
	}
	for _, z := range s.actors.Zones {
		if x.several != nil {
			fmt.Fprintf(&b, "zone %s:\n", z.ID)
		}
		for _, j := range everyJob(z, now) {
			show(string(j.Name), j)
			e, _ := z.Explain(now, j.Name)
			show("  explained", e)
		}
		for _, w := range z.Windows(now) {
			show("window", w)
		}
		for _, q := range z.Queues(now) {
			show("queue", q)
		}
	}
	show("dry run", s.actors.Zones[0].DryRun(now, spec(t, "tried", job.Items, 100, time.Second)))
	return b.String()
}

// told plays the story so far and returns it with its transcript.
func (x *tale) told(t *testing.T, until time.Duration) (*story, string) {
	if x.policy == nil {
		x.policy = fifo.Policy{}
	}
	if x.model == nil {
		x.model = truly(x.slices)
	}
	horizon := 10 * time.Minute
	cfg := arrangement.Alone(
		gate.Config{Zones: gate.Alone(zoneID), Horizon: horizon, External: true},
		zone.Config{ID: zoneID, Policy: x.policy, Horizon: horizon, Market: x.market},
		node.Config{ID: nodeID, Zone: zoneID, Horizon: horizon},
	)
	if x.several != nil {
		cfg = x.arrangement(t, horizon)
	}
	build, err := cfg.Build()
	if err != nil {
		t.Fatalf("%v", err)
	}
	script := &transcript{}
	s := &story{t: t, actors: build(), oracle: newOracle(t)}
	watched := func() actor.Set { return scribed(s.actors, script, x.answers) }
	first := watched()
	nodes := []sim.Node{{ID: nodeID, Actor: first.Nodes[0].Node, Slices: x.slices}}
	if x.several != nil {
		nodes = x.several.nodes(first, x.slices)
	}
	s.sim, err = sim.New(sim.Options{
		Start: storyStart, Model: x.model, Agent: x.agent, Faults: x.faults, Guests: x.guests,
		Gates: first.Gates, Zones: first.Zones, Nodes: nodes,
		Fact: s.oracle.fact,
		Rebuild: func(a protocol.Address) protocol.Actor {
			fresh := build()
			switch a.Role {
			case protocol.Gate:
				s.actors.Gates = fresh.Gates
				return watched().Gates[0].Gate
			case protocol.Zone:
				i := slices.IndexFunc(s.actors.Zones, func(z actor.ZoneAt) bool { return string(z.ID) == a.ID })
				s.actors.Zones[i] = fresh.Zones[i]
				return watched().Zones[i].Zone
			default:
				i := slices.IndexFunc(s.actors.Nodes, func(n actor.NodeAt) bool { return string(n.ID) == a.ID })
				s.actors.Nodes[i] = fresh.Nodes[i]
				return watched().Nodes[i].Node
			}
		},
	})
	if err != nil {
		t.Fatalf("%v", err)
	}
	x.tell(t, s)
	s.run(until)
	for _, z := range s.actors.Zones {
		for _, j := range everyJob(z, s.sim.Now()) {
			fmt.Fprintf(&script.text, "%v end: %s %v %d/%d in %d pieces, %d lost: %s\n", s.since(), j.Name, j.State, j.Progress, j.Total,
				j.Subjobs, j.Lost, j.Reason)
		}
	}
	return s, script.text.String()
}

func tales() []tale {
	alone := func(s *job.Spec) { s.Parallelism = 1 }
	bids := func(s *job.Spec) { s.Worth, s.TauMin = job.DefaultWorth, 20*time.Second }
	return append(append(declineTales(), zoneTales()...), []tale{
		{
			name: "sja", slices: machine("n/"), policy: shortest.Policy{}, until: 30 * time.Minute, shows: []string{"fact Committed"},
			tell: func(t *testing.T, s *story) {
				s.submit(0, spec(t, "count", job.Items, 900, time.Second))
				s.submit(10*time.Second, spec(t, "train", job.Steps, 300, time.Second))
				s.reserve(20*time.Second, protocol.Reservation{Kind: protocol.ForOwner, Slice: "n/gpu1", Start: at(12 * time.Minute),
					End: at(14 * time.Minute)})
			},
		},
		{
			name: "jasda", slices: machine("n/"), market: &auction.Config{}, until: 30 * time.Minute,
			shows: []string{"fact QueueCalibrated", "bid={"},
			tell: func(t *testing.T, s *story) {
				s.submit(0, with(spec(t, "count", job.Items, 400, time.Second), bids))
				s.submit(time.Second, with(spec(t, "train", job.Steps, 200, time.Second), bids),
					with(spec(t, "urgent", job.Items, 100, time.Second), func(s *job.Spec) {
						bids(s)
						s.Priority, s.Deadline = 100, at(15*time.Minute)
					}))
				s.reserve(20*time.Second, protocol.Reservation{Kind: protocol.ForServing, Slice: "n/gpu0", Start: at(3 * time.Minute),
					End: at(5 * time.Minute)})
			},
		},
		{
			name: "gives-back", slices: equal(2, 10), until: 20 * time.Minute,
			shows: []string{"Wished", "fact Truncated", "time taken (reclaim) by guest one"},
			guests: &guest.House{Notice: 30 * time.Second, Guests: []guest.Guest{
				{Name: "one", At: at(2 * time.Minute), Node: nodeID, Profile: equal(2, 10)[0].Profile, Slices: 1, Runs: 2 * time.Minute},
				{Name: "both", At: at(6 * time.Minute), Node: nodeID, Profile: equal(2, 10)[0].Profile, Slices: 2, Runs: time.Minute},
			}},
			tell: func(t *testing.T, s *story) {
				s.submit(0, with(spec(t, "long", job.Items, 400, time.Second), alone))
				s.submit(time.Minute, with(spec(t, "later", job.Items, 300, time.Second), alone))
			},
		},
		{
			name: "rigid", slices: one(10), until: 20 * time.Minute, shows: []string{"kind=rigid", "Unreserve"},
			tell: func(t *testing.T, s *story) {
				s.submit(0, with(spec(t, "a", job.Items, 100, time.Second), alone))
				s.submit(time.Second, gang(t, "head", 3*time.Minute, 1))
				s.submit(2*time.Second, gang(t, "second", time.Minute, 1), with(spec(t, "small", job.Items, 20, time.Second), alone))
				s.person(40*time.Second, protocol.Gate, protocol.Message{Kind: protocol.Cancel, Body: &protocol.Cancellation{Request: "c"},
					Job: "head"})
				s.submit(50*time.Second, gang(t, "third", time.Minute, 1))
			},
		},
		{
			name: "gang", slices: equal(3, 10), until: 20 * time.Minute, shows: []string{"also=("},
			tell: func(t *testing.T, s *story) {
				s.submit(0, with(spec(t, "a", job.Items, 200, time.Second), func(s *job.Spec) {
					s.Parallelism, s.TauMin = 3,
						20*time.Second
				}))
				s.submit(3*time.Second, gang(t, "pair", 2*time.Minute, 2))
				s.submit(5*time.Second, spec(t, "small", job.Items, 60, time.Second))
			},
		},
		{
			name: "continuation", slices: one(10), policy: shortest.Policy{}, model: sim.Planned, until: 40 * time.Minute,
			shows: []string{"fact ClaimExtended", "Extended"},
			tell: func(t *testing.T, s *story) {
				s.submit(0, with(spec(t, "a", job.Steps, 1500, time.Second), func(s *job.Spec) {
					s.Continue, s.TauMin = true,
						time.Minute
				}))
				s.submit(15*time.Minute, spec(t, "b", job.Items, 60, time.Second))
			},
		},
		{
			name: "repack", slices: one(10), market: &auction.Config{Repack: auction.Withdraw, Freeze: 5 * time.Second},
			until: 20 * time.Minute,
			shows: []string{"flag=true text=\"withdrawn before it began"},
			model: func(m *protocol.Message) sim.Behaviour {
				b := sim.Planned(m)
				b.PerUnit = m.Body.(*protocol.Work).Spec.PerUnit / 4
				return b
			},
			tell: func(t *testing.T, s *story) {
				s.submit(0, with(spec(t, "a", job.Items, 400, time.Second), func(s *job.Spec) {
					bids(s)
					s.Parallelism = 4
				}))
			},
		},
		{
			name: "agents", slices: machine("n/"), market: &auction.Config{}, until: 15 * time.Minute,
			shows: []string{"Announce", "kind=lost", "kind=concluded"},
			agent: func(_ *workload.Job, spec *job.Spec) sim.Agent {
				kind, _ := bidder.Find(strings.TrimRight(string(spec.Name), "0123456789"))
				return bidder.New(spec, kind.New(kind.By), 20*time.Millisecond)
			},
			tell: func(t *testing.T, s *story) {
				for i, name := range []job.ID{"honest1", "honest2", "silent1"} {
					s.submit(time.Duration(i)*time.Second, with(spec(t, name, job.Items, 200, time.Second), func(s *job.Spec) {
						bids(s)
						s.External = true
					}))
				}
				s.submit(5*time.Second, with(spec(t, "own", job.Steps, 100, time.Second), bids))
			},
		},
		{
			name: "backoff", slices: equal(2, 10), until: 10 * time.Minute, shows: []string{"Refused", "fact Released"},
			answers: func(_ quantity.Instant, in *protocol.Message, out *protocol.Out) bool {
				switch {
				case in.Kind == protocol.Ask && in.Job == "refused" && in.Body.(*protocol.Asking).Start < at(90*time.Second):
					out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Refused, To: in.From,
						Body: &protocol.Refusal{Ask: in.Body.(*protocol.Asking).Ask, Slice: in.Body.(*protocol.Asking).Slice,
							Text: "not for this one"}, Job: in.Job})
				case in.Kind == protocol.Ask && in.Job == "unheard" && in.Body.(*protocol.Asking).Start < at(60*time.Second):
				case in.Kind == protocol.Redeem && in.Job == "lapsed" && in.Body.(*protocol.Work).Start < at(30*time.Second):
				default:
					return false
				}
				return true
			},
			model: func(m *protocol.Message) sim.Behaviour {
				b := sim.Planned(m)
				if m.Job == "failing" && m.Body.(*protocol.Work).Range.From == 0 {
					b.Fails, b.FailAfter = job.ExitFailed, time.Second
				}
				return b
			},
			tell: func(t *testing.T, s *story) {
				for i, name := range []job.ID{"refused", "unheard", "lapsed", "failing"} {
					s.submit(time.Duration(i)*100*time.Millisecond, with(spec(t, name, job.Steps, 40, time.Second), alone))
				}
			},
		},
		{
			name: "cap", slices: equal(3, 10), until: 15 * time.Minute, shows: []string{"cap=2"},
			tell: func(t *testing.T, s *story) {
				s.person(0, protocol.Gate, protocol.Message{Kind: protocol.SetQueue,
					Body: &protocol.QueueSetting{Request: "q", Queue: &protocol.Queue{Name: "default", Weight: 1, Cap: 2}}})
				s.submit(time.Second, with(spec(t, "a", job.Items, 60, time.Second), alone))
				s.submit(2*time.Second, gang(t, "pair", time.Minute, 2))
				for i := range 3 {
					s.submit(time.Duration(3+5*i)*time.Second, with(spec(t, job.ID(fmt.Sprint("late", i)), job.Items, 30, time.Second),
						alone))
				}
			},
		},
		{
			name: "crash", slices: machine("n/"), until: 20 * time.Minute, shows: []string{"zone z comes up", "outcome=node-failed"},
			faults: sim.Faults{Schedule: []sim.Fault{
				{Kind: sim.DaemonCrash, At: at(30 * time.Second), For: 10 * time.Second},
				{Kind: sim.NodeCrash, At: at(5 * time.Minute), For: 20 * time.Second, Node: nodeID},
			}},
			tell: func(t *testing.T, s *story) {
				s.submit(0, spec(t, "count", job.Items, 500, time.Second))
				s.submit(time.Second, spec(t, "train", job.Steps, 200, time.Second), gang(t, "head", time.Minute, 1))
			},
		},
	}...)
}
