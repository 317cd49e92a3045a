package twin_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"runtime"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/filing"
	"sluice.dev/sluice/internal/core/gate"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
	archivememory "sluice.dev/sluice/internal/edge/archive/memory"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/sim"
	"sluice.dev/sluice/internal/lab/workload"
)

// park is a cluster of real actors on the simulator, offered jobs whose truth differs from what they declare.
type park struct {
	nodes, jobs int
	zones       int            // 0: one; node i is one of zone i mod zones
	gates       protocol.Gates // none: one without a name
	seed        uint64
	gap         time.Duration // mean time between arrivals
	network     sim.Network
	faults      sim.Faults
	retain      time.Duration
	also        func(*sim.Options)
	// exact jobs go as declared. gangs: half of the rigid jobs hold two slices at once.
	exact, gangs bool
	// archive has jobs that are over leave to an archive; nil: they stay until they are forgotten.
	archive *filing.Config
	// rigid is how rigid jobs are planned; the zero value is EASY.
	rigid backfill.Discipline
	// cap of the queue; 0: none.
	cap int
	// tickets search for places, and rigid jobs of one slice give up after patience; 0: none does.
	tickets  bool
	patience time.Duration
	// drain is when the zones but the last one are drained, one after the other, since the park began; 0: none is.
	drain time.Duration
	// cancels are how long after the first drain the owner of the job of each place cancels it; less than 0: before.
	cancels map[int]time.Duration
	// across: gangs may lie in several zones.
	across bool
	// heard hears every fact, too; nil: nobody does.
	heard func(quantity.Instant, *protocol.Fact)
	// homes is what is noted where there are several zones.
	homes *homes
}

// offered is the source of a park's jobs: a mixture of all kinds.
type offered struct {
	n, of int64
	at    quantity.Instant
	park
}

func (o *offered) Next(j *workload.Job) (bool, error) {
	if o.n == o.of {
		return false, nil
	}
	draw := prng.New(o.seed, 77, uint64(o.n))
	o.at = o.at.Add(time.Duration(draw.Exp() * float64(o.gap)))
	*j = workload.Job{
		Number: o.n, Queue: gate.DefaultQueue, Submit: o.at, Kind: []job.Kind{job.Items, job.Steps, job.Rigid}[draw.IntN(3)],
		Slices: 1, Units: int64(50 + draw.IntN(1000)), Grid: int64(1 + draw.IntN(20)), Parallelism: 1, Theta: 10_000,
		Work: time.Minute + time.Duration(draw.Exp()*float64(15*time.Minute)), Restore: 2 * time.Second, Checkpoint: 3 * time.Second,
		Startup: time.Second,
	}
	j.Speeds = []job.SpeedOn{{Profile: "small", Permille: 150}, {Profile: "middle", Permille: 310}, {Profile: "large", Permille: 500}}
	j.Declared = time.Duration(float64(j.Work) * (.5 + .8*draw.Float64()))
	switch j.Kind {
	case job.Items:
		j.Parallelism = 1 + draw.IntN(4)
	case job.Rigid:
		j.Declared, j.Slices = j.Work+time.Duration(draw.IntN(1000))*time.Second, 1+draw.IntN(2)
		if !o.gangs {
			j.Slices = 1
		}
		if j.Slices == 1 {
			j.Patience = o.patience
		}
	}
	mean := quantity.Amount(2+draw.IntN(6)) << 30
	phases := []trp.Phase{{UpTo: 1 + j.Units/3, Mean: mean / 2, SD: mean / 40}, {UpTo: j.Units, Mean: mean, SD: mean / 20}}
	j.Profile = trp.Profile{Form: trp.Phases, Phases: phases}
	j.Memory = workload.Memory{Seed: draw.Uint64(), Phases: slices.Clone(phases)}
	if draw.IntN(8) == 0 { // it uses more than it says
		j.Memory.Phases[1].Mean = mean * 14 / 10
	}
	if o.exact {
		j.Declared = j.Work
		j.Profile.Phases = []trp.Phase{{UpTo: j.Units, Mean: mean}}
		j.Memory.Phases = j.Profile.Phases
	}
	o.n++
	return true, nil
}

// witness hashes everything that it hears and keeps a few sums.
type witness struct {
	hash     uint64
	arrived  int
	done     map[job.State]int
	outcomes map[job.Outcome]int
	work     map[measure.Slot]time.Duration // of the jobs that live
	declared map[measure.Slot]workload.Job
	t        failer
	messages int
	excess   int
	lines    int
	slots    int
}

func newWitness(t failer) *witness {
	return &witness{t: t, done: map[job.State]int{}, outcomes: map[job.Outcome]int{}, work: map[measure.Slot]time.Duration{},
		declared: map[measure.Slot]workload.Job{}}
}

func (w *witness) line(format string, args ...any) {
	h := fnv.New64a()
	_, _ = fmt.Fprintf(h, format, args...)
	w.hash = w.hash*0x9e3779b97f4a7c15 + h.Sum64()
	w.lines++
}

func (w *witness) Arrived(at quantity.Instant, s measure.Slot, j *workload.Job) {
	w.line("arrived %d %d %d", at, s, j.Number)
	w.arrived++
	w.slots = max(w.slots, int(s)+1)
	w.work[s], w.declared[s] = 0, *j
}

func (w *witness) Began(at quantity.Instant, s measure.Slot, class uint8, n int32) {
	w.line("began %d %d %d %d", at, s, class, n)
}

func (w *witness) Ended(at quantity.Instant, p *measure.Piece) {
	w.line("ended %d %+v", at, *p)
	w.outcomes[p.Outcome]++
	w.work[p.Slot] += p.Work * time.Duration(p.Slices) // a gang has the work on each of its slices
	if p.Excess {
		w.excess++
	}
	if held := p.End.Sub(p.Start); p.Useful < 0 || p.Overhead < 0 || p.Useful+p.Overhead > held || p.Work < 0 {
		w.t.Errorf("a piece of %v has %v useful, %v overhead", held, p.Useful, p.Overhead)
	}
}

func (w *witness) Done(at quantity.Instant, s measure.Slot, state job.State) {
	w.line("done %d %d %v", at, s, state)
	w.done[state]++
	if j := w.declared[s]; state == job.Finished && w.work[s] != j.Work*time.Duration(j.Slices) {
		w.t.Errorf("job %d finished with %v of its %v of work", j.Number, w.work[s], j.Work)
	}
}

func (w *witness) Sent(n int) { w.messages += n; w.line("sent %d", n) }

const parkStart = quantity.Instant(1_000_000 * time.Second)

// nodeName is that of the node of this place.
func nodeName(i int) string { return fmt.Sprintf("n%03d", i) }

// options of a simulation of a park.
func (p park) options(t failer) sim.Options {
	t.Helper()
	if p.retain == 0 {
		p.retain = time.Second
	}
	if p.gap == 0 {
		p.gap = 12 * time.Minute / time.Duration(p.nodes) // a fifth more than there is room for
	}
	at := func(node int) job.ZoneID { return zoneOf(node%max(1, p.zones), p.zones) }
	var zones []gate.Zone
	for i := range max(1, p.zones) {
		zones = append(zones, gate.Zone{ID: at(i)})
	}
	for i := range p.nodes {
		z := &zones[i%len(zones)]
		z.Nodes = append(z.Nodes, job.NodeID(nodeName(i)))
	}
	var tickets *search.Config
	if p.tickets {
		tickets = p.search(t, zones)
	}
	zoneConfig := zone.Config{ID: zoneID, Policy: fifo.Policy{}, Horizon: time.Hour, Rigid: p.rigid, Archive: p.archive, Search: tickets,
		Gates: p.gates}
	newGate := func(id string) *gate.Gate {
		g, err := gate.New(gate.Config{ID: job.GateID(id), Gates: p.gates, Zones: zones, Retain: p.retain, Horizon: time.Hour,
			Archive: p.archive, Search: tickets})
		if err != nil {
			t.Fatalf("%v", err)
		}
		return g
	}
	newZone := func(id job.ZoneID) *zone.Zone {
		c := zoneConfig
		c.ID = id
		z, err := zone.New(c)
		if err != nil {
			t.Fatalf("%v", err)
		}
		return z
	}
	newNode := func(id string) *node.Node {
		c := node.Config{ID: job.NodeID(id), Zone: zoneID, Horizon: time.Hour, Search: tickets, Gates: p.gates}
		if _, err := fmt.Sscanf(id, "n%d", &c.Number); err != nil {
			t.Fatalf("node %q: %v", id, err)
		}
		c.Zone = at(c.Number)
		if p.network != (sim.Network{}) || len(p.faults.Schedule)+len(p.faults.Random) > 0 {
			c.Refresh = 30 * time.Second
		}
		return node.New(c)
	}
	specs := &workload.Specs{Grace: 10 * time.Second}
	o := sim.Options{
		Start: parkStart, Seed: p.seed, Network: p.network, Faults: p.faults,
		Source: &offered{of: int64(p.jobs), at: parkStart.Add(time.Minute), park: p},
		Spec:   func(j *workload.Job) (*job.Spec, error) { return specs.Spec(j, j.Name()) },
		Rebuild: func(a protocol.Address) protocol.Actor {
			switch a.Role {
			case protocol.Gate:
				return newGate(a.ID)
			case protocol.Zone:
				return newZone(job.ZoneID(a.ID))
			default:
				return newNode(a.ID)
			}
		},
	}
	for _, a := range p.gates.All() {
		o.Gates = append(o.Gates, actor.GateAt{ID: job.GateID(a.ID), Gate: newGate(a.ID)})
	}
	for _, z := range zones {
		o.Zones = append(o.Zones, actor.ZoneAt{ID: z.ID, Zone: newZone(z.ID)})
	}
	if p.archive != nil {
		o.Archive = archivememory.New()
	}
	for i := range p.nodes {
		id := nodeName(i)
		n := sim.Node{ID: job.NodeID(id), Actor: newNode(id)}
		for k, m := range []struct {
			profile    string
			gib, speed int64
		}{{"small", 5, 150}, {"small", 5, 150}, {"middle", 10, 300}, {"large", 20, 500}} {
			n.Slices = append(n.Slices, protocol.Slice{
				ID: job.SliceID(fmt.Sprintf("%s/s%d", id, k)), Model: "sim", Profile: m.profile,
				Capacity: trp.Vector{quantity.Amount(m.gib << 30)},
				Speed:    m.speed, Simulated: true,
			})
		}
		o.Nodes = append(o.Nodes, n)
	}
	if p.also != nil {
		p.also(&o)
	}
	return o
}

// play runs a park until its jobs are over, with an oracle, a witness and the collector of metrics listening.
func (p park) play(t failer, limit time.Duration) (*witness, *oracle) {
	t.Helper()
	return p.playWith(t, limit, nil)
}

// playWith has somebody else hear the facts too.
func (p park) playWith(t failer, limit time.Duration, also func(quantity.Instant, *protocol.Fact)) (*witness, *oracle) {
	t.Helper()
	o := p.options(t)
	w, judge := newWitness(t), newOracle(t)
	collector, err := measure.New(measure.Config{Classes: sim.Classes(o.Nodes), Usable: func(*workload.Job) uint64 { return 7 }})
	if err != nil {
		t.Fatalf("%v", err)
	}
	o.Observer, o.Fact = measure.Observers{w, collector}, judge.fact
	if p.zones > 1 {
		o.Fact = p.watched(t, &o, judge.fact)
	}
	for _, hears := range []func(quantity.Instant, *protocol.Fact){also, p.heard} {
		if before := o.Fact; hears != nil {
			o.Fact = func(now quantity.Instant, f *protocol.Fact) { before(now, f); hears(now, f) }
		}
	}
	s, err := sim.New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if p.cap > 0 {
		p.setCap(s, p.cap)
	}
	if p.drain > 0 {
		p.drainZones(s)
		p.cancelJobs(s)
	}
	over, err := s.RunOut(context.Background(), parkStart.Add(limit))
	if err != nil {
		t.Fatalf("%v", err)
	}
	if !over {
		for i := range max(1, p.zones) {
			for _, j := range everyJob(s.Actor(protocol.Address{Role: protocol.Zone, ID: string(zoneOf(i, p.zones))}).(*zone.Zone),
				s.Now()) {
				t.Errorf("job %s: %v %d of %d, %s", j.Name, j.State, j.Progress, j.Total, j.Reason)
			}
		}
	}
	if w.arrived != p.jobs {
		t.Errorf("%d of %d jobs came", w.arrived, p.jobs)
	}
	collector.Finish(s.Now())
	return w, &judge
}

// TestManyNodes: all kinds of jobs, with a truth that differs from what they declare, on several nodes.
func TestManyNodes(t *testing.T) {
	w, _ := park{nodes: 4, jobs: 60, seed: 1, gangs: true}.play(t, 48*time.Hour)
	if w.done[job.Finished] < 50 {
		t.Errorf("jobs ended %v, runs %v", w.done, w.outcomes)
	}
	if w.outcomes[job.MemoryKilled] == 0 || w.excess == 0 || w.outcomes[job.Yielded] == 0 {
		t.Errorf("the truth shows nothing: runs ended %v, %d excesses", w.outcomes, w.excess)
	}
}

// TestTheArchiveMovesNoAward: what is sold when, and to whom, does not depend on where jobs are that are over.
func TestTheArchiveMovesNoAward(t *testing.T) {
	var played [2][]string
	for i, archive := range []*filing.Config{nil, {Keep: time.Second, Most: 2}} {
		p := park{nodes: 4, jobs: 60, seed: 1, gangs: true, retain: 1000 * time.Hour, archive: archive}
		o := p.options(t)
		left := 0
		o.Observer = newWitness(t)
		o.Fact = func(_ quantity.Instant, f *protocol.Fact) {
			switch f.Kind {
			case protocol.Claimed:
				played[i] = append(played[i], award(f))
			case protocol.HomeArchived:
				left++
			}
		}
		s, err := sim.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if over, err := s.RunOut(context.Background(), parkStart.Add(48*time.Hour)); !over || err != nil {
			t.Fatal(over, err)
		}
		if (left > 40) != (archive != nil) {
			t.Errorf("%d jobs left to the archive", left)
		}
	}
	if len(played[0]) < 100 || !slices.Equal(played[0], played[1]) {
		t.Errorf("%d awards, %d where jobs leave to the archive: they are not the same", len(played[0]), len(played[1]))
	}
}

// TestLongLives: daemons that crash again and again over so long a time that their logs are replaced by snapshots, several
// times. The driver compares digests over every crash.
func TestLongLives(t *testing.T) {
	w, _ := park{nodes: 2, jobs: 500, seed: 2, gap: 8 * time.Minute, faults: sim.Faults{Random: []sim.Rate{
		{Fault: sim.Fault{Kind: sim.DaemonCrash, For: 10 * time.Second}, Every: 4 * time.Hour},
		{Fault: sim.Fault{Kind: sim.NodeCrash, For: time.Minute, Keep: true}, Every: 5 * time.Hour},
	}}}.play(t, 90*24*time.Hour)
	if w.done[job.Finished] < 450 {
		t.Errorf("jobs ended %v, runs %v", w.done, w.outcomes)
	}
}

// TestDeterminism: the same seed gives the same events, another one others.
func TestDeterminism(t *testing.T) {
	rough := park{nodes: 3, jobs: 40, seed: 7, network: roughNetwork(), faults: sim.Faults{
		Random: []sim.Rate{{Fault: sim.Fault{Kind: sim.NodeCrash, For: time.Minute}, Every: 2 * time.Hour}},
		Offset: time.Second, Drift: 50,
	}}
	var hashes []uint64
	for _, procs := range []int{1, 2, 1, 2} {
		before := runtime.GOMAXPROCS(procs)
		w, _ := rough.play(t, 96*time.Hour)
		runtime.GOMAXPROCS(before)
		hashes = append(hashes, w.hash)
		if w.lines < 200 {
			t.Errorf("only %d events: the scenario shows nothing", w.lines)
		}
	}
	for _, h := range hashes {
		if h != hashes[0] {
			t.Fatalf("the same seed gives the events %x", hashes)
		}
	}
	rough.seed++
	if w, _ := rough.play(t, 96*time.Hour); w.hash == hashes[0] {
		t.Error("another seed gives the same events")
	}
}

func roughNetwork() sim.Network {
	return sim.Network{
		GateZone: sim.Link{Delay: time.Millisecond, Jitter: 5 * time.Millisecond, Loss: 50_000, Double: 50_000},
		ZoneNode: sim.Link{Delay: time.Millisecond, Jitter: 20 * time.Millisecond, Loss: 50_000, Double: 50_000},
	}
}

// TestFaults: whatever goes wrong, every job comes to its end, no two leases share a slice and no work is committed twice
// (the oracle), and the observer hears of a world that is possible (the collector).
func TestFaults(t *testing.T) {
	every := func(k sim.FaultKind, every, length time.Duration) sim.Rate {
		return sim.Rate{Fault: sim.Fault{Kind: k, For: length, Offset: 2 * time.Second}, Every: every}
	}
	kept := every(sim.NodeCrash, time.Hour, time.Minute)
	kept.Keep = true
	for _, c := range []struct {
		name    string
		network sim.Network
		faults  sim.Faults
		lost    bool // work that was running is lost
	}{
		{name: "rough network", network: roughNetwork()},
		{name: "nodes crash", faults: sim.Faults{Random: []sim.Rate{every(sim.NodeCrash, time.Hour, time.Minute)}}, lost: true},
		{name: "nodes crash and what runs there is kept", faults: sim.Faults{Random: []sim.Rate{kept}}},
		{name: "the daemon crashes", faults: sim.Faults{Random: []sim.Rate{every(sim.DaemonCrash, 10*time.Minute, 5*time.Second)}}},
		{name: "partitions", faults: sim.Faults{Random: []sim.Rate{
			every(sim.Partition, time.Hour, time.Minute), every(sim.PartitionIn, time.Hour, time.Minute),
			every(sim.PartitionOut, time.Hour, time.Minute),
		}}},
		{name: "clocks are off", network: sim.Network{ZoneNode: sim.Link{Delay: time.Millisecond}}, faults: sim.Faults{
			Offset: 2 * time.Second, Drift: 100, Random: []sim.Rate{every(sim.ClockSet, time.Hour, 10*time.Minute)},
		}},
		{name: "all of it", network: roughNetwork(), lost: true, faults: sim.Faults{
			Offset: time.Second, Drift: 100,
			Random: []sim.Rate{
				every(sim.NodeCrash, 2*time.Hour, time.Minute), kept, every(sim.DaemonCrash, time.Hour, 5*time.Second),
				every(sim.Partition, 2*time.Hour, time.Minute),
			},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(6) {
				p := park{nodes: 3, jobs: 40, seed: seed, gangs: true, network: c.network, faults: c.faults}
				if seed%3 == 0 { // jobs leave to the archive, and nobody forgets them
					p.archive, p.retain = &filing.Config{Keep: time.Minute, Most: 4}, 1000*time.Hour
				}
				if seed%2 == 0 {
					p.gap = time.Minute // four times what there is room for: gangs wait for gangs
				}
				w, judge := p.play(t, 14*24*time.Hour)
				if judge.reserved > 10*p.jobs {
					t.Errorf("seed %d: places were reserved %d times: they do not come to rest", seed, judge.reserved)
				}
				if lost := w.outcomes[job.NodeFailed] > 0; lost != c.lost {
					t.Errorf("seed %d: runs ended %v", seed, w.outcomes)
				}
				if w.done[job.Finished] < 25 || len(judge.leases) > 0 {
					t.Errorf("seed %d: jobs ended %v, runs %v, %d leases stand", seed, w.done, w.outcomes, len(judge.leases))
				}
			}
		})
	}
}

// BenchmarkPark is a zone of 64 nodes with four slices each, at a load of about .9 with what restore and checkpoint take, with a network
// of a millisecond and some jitter, metrics on, every fact told and a digest asked for after every step: virtual seconds in a second.
func BenchmarkPark(b *testing.B) {
	for _, n := range []struct{ nodes, jobs int }{{4, 1000}, {64, 1000}, {64, 10_000}, {64, 100_000}} {
		b.Run(fmt.Sprintf("%d/%d", n.nodes, n.jobs), func(b *testing.B) {
			if n.jobs > 1000 && testing.Short() {
				b.Skip("one simulation takes 10 seconds or more; run it without -short")
			}
			p := park{nodes: n.nodes, jobs: n.jobs, seed: 1, gap: 18 * time.Minute / time.Duration(n.nodes), network: sim.Network{
				GateZone: sim.Link{Delay: time.Millisecond, Jitter: time.Millisecond},
				ZoneNode: sim.Link{Delay: time.Millisecond, Jitter: time.Millisecond},
			}}
			virtual, steps, sum := time.Duration(0), uint64(0), uint64(0)
			for b.Loop() {
				o := p.options(b)
				collector, err := measure.New(measure.Config{Classes: sim.Classes(o.Nodes),
					Usable: func(*workload.Job) uint64 { return 7 }})
				if err != nil {
					b.Fatal(err)
				}
				o.Observer = collector
				o.Fact = func(_ quantity.Instant, f *protocol.Fact) { sum += uint64(f.Kind) }
				o.Stepped = func(_ quantity.Instant, p actor.Party) { sum += p.Actor.Digest() }
				s, err := sim.New(o)
				if err != nil {
					b.Fatal(err)
				}
				if over, err := s.RunOut(context.Background(), quantity.Never); !over || err != nil {
					b.Fatal(over, err)
				}
				virtual += s.Now().Sub(parkStart)
				steps += s.Steps()
			}
			b.ReportMetric(virtual.Seconds()/b.Elapsed().Seconds(), "x_real_time")
			b.ReportMetric(float64(steps)/b.Elapsed().Seconds(), "steps/s")
			b.ReportMetric(float64(steps)/virtual.Seconds(), "steps/virtual_s")
		})
	}
}

// TestMemoryGrowsWithLiveJobs: however many jobs come, the slots in use and what the actors keep stay as many as are alive.
func TestMemoryGrowsWithLiveJobs(t *testing.T) {
	p := park{nodes: 2, jobs: 600, seed: 5, gap: 15 * time.Minute}
	most, kept := 0, 0
	w := newWitness(t)
	var s *sim.Sim
	p.also = func(o *sim.Options) {
		o.Observer = w
		o.Fact = func(_ quantity.Instant, f *protocol.Fact) {
			if f.Kind != protocol.HomeTaken {
				return
			}
			most = max(most, s.Live())
			jobs := everyJob(s.Actor(protocol.Address{Role: protocol.Zone, ID: string(zoneID)}).(*zone.Zone), s.Now())
			kept = max(kept, len(jobs))
		}
	}
	var err error
	if s, err = sim.New(p.options(t)); err != nil {
		t.Fatal(err)
	}
	if over, err := s.RunOut(context.Background(), quantity.Never); !over || err != nil {
		t.Fatal(over, err)
	}
	if w.arrived != p.jobs || most > p.jobs/10 {
		t.Fatalf("%d jobs came, up to %d at once: the scenario shows nothing", w.arrived, most)
	}
	if w.slots > most || kept > most+3 {
		t.Errorf("up to %d jobs were alive; %d slots were used, the zone kept %d", most, w.slots, kept)
	}
}
