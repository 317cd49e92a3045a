package flow

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// benchSplitter has digests of some zones.
func benchSplitter(zones int) *Splitter {
	s, source := NewSplitter(tested(), zones), prng.New(3)
	for z := range zones {
		d := Digest{Zone: ZoneID(z), Version: 1, Alive: true, Pressure: uint16(source.IntN(500))}
		for c := range d.Free {
			d.Free[c], d.Demand[c] = uint32(source.IntN(200)), uint32(source.IntN(100))
		}
		s.Hear(start, &d)
	}
	s.Rebuild(start)
	return s
}

func BenchmarkDraw(b *testing.B) {
	for _, zones := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			s := benchSplitter(zones)
			tk, sum, i := Ticket{}, ZoneID(0), 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				tk.ID, tk.Class = TicketID(i), Class(i%len(levels))
				z, _ := s.Draw(&tk)
				sum += z
			}
			if sum == 0 {
				b.Error("always the first zone")
			}
		})
	}
}

// BenchmarkRebuild is the tables of all classes; ns/zone is what a digest costs whoever draws.
func BenchmarkRebuild(b *testing.B) {
	for _, zones := range []int{10, 1000} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			s := benchSplitter(zones)
			b.ReportAllocs()
			for b.Loop() {
				s.Rebuild(start)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(zones), "ns/zone")
		})
	}
}

// BenchmarkArbitration is one decision of a node, among 1,024 nodes and sets of probes by turns.
func BenchmarkArbitration(b *testing.B) {
	for _, probes := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("probes=%d", probes), func(b *testing.B) {
			const many = 1024
			source, a := prng.New(5), NewArbiter(tested())
			var fresh, nodes [many]Node
			var sets [many][]Probe
			for i := range many {
				f := Fragments{uint8(source.IntN(3)), uint8(source.IntN(3)), uint8(source.IntN(2)), 0, uint8(source.IntN(2))}
				fresh[i] = NewNode(1, f, make([]Grant, 0, 8))
				for k := range probes {
					p := Probe{Ticket: TicketID(source.Uint64()), Demand: quantity.Amount(source.IntN(80e9)), Born: start - quantity.Instant(source.IntN(2e9)), Priority: int16(source.IntN(3)), Churn: uint8(k % 2)}
					p.Class, _ = levels.Of(p.Demand)
					sets[i] = append(sets[i], p)
				}
			}
			out, i := make([]Answer, 0, 8), 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 1) % many
				nodes[i] = fresh[i]
				out = a.Decide(start, &nodes[i], sets[i], out[:0])
			}
			if len(out) != probes {
				b.Error("no answer")
			}
		})
	}
}

// plain is a flow without messages: what the arithmetic costs of a task from its draw until it has a lease and gives it back, with digests and hints as old as a
// period. Everything is in flat arrays, and time is a wheel of milliseconds.
type plain struct {
	cfg      *Config
	now      quantity.Instant
	search   *Search
	splitter *Splitter
	arbiter  *Arbiter
	zones    []*Directory
	nodes    []Node
	mix      [4]int // of classes, in percent, added up: as the swarm's
	source   prng.Stream

	rest     wheel[Ticket]
	run      wheel[running]
	tick     int
	digested quantity.Instant
	gap      float64 // mean, in nanoseconds

	probe                   [1]Probe
	answer                  [1]Answer
	begun                   uint64
	placed, probes, expired int
}

// running is a task on its fragment.
type running struct {
	node     int32
	fragment Class
}

// wheel has what waits for a millisecond, in lists.
type wheel[T any] struct {
	heads [8192]int32
	slots []slot[T]
	free  int32
}

type slot[T any] struct {
	next int32
	of   T
}

func newWheel[T any]() wheel[T] {
	w := wheel[T]{free: -1}
	for i := range w.heads {
		w.heads[i] = -1
	}
	return w
}

func (w *wheel[T]) put(now, at int, of T) {
	at = max(now+1, min(at, now+len(w.heads)-1)) % len(w.heads)
	i := w.free
	if i >= 0 {
		w.free = w.slots[i].next
	} else {
		i = int32(len(w.slots))
		w.slots = append(w.slots, slot[T]{})
	}
	w.slots[i] = slot[T]{w.heads[at], of}
	w.heads[at] = i
}

// due hands out what waits for a millisecond.
func (w *wheel[T]) due(now int, do func(*T)) {
	i := w.heads[now%len(w.heads)]
	w.heads[now%len(w.heads)] = -1
	for i >= 0 {
		s := w.slots[i]
		w.slots[i].next, w.free = w.free, i
		do(&s.of)
		i = s.next
	}
}

const perZone = 100

// newPlain is a flow of so many nodes of four slices, as the swarm's.
func newPlain(nodes int, load float64) *plain {
	cfg := checked(Config{Seed: 9, Classes: levels[:4]})
	w := &plain{
		cfg: cfg, now: start, search: NewSearch(cfg), splitter: NewSplitter(cfg, nodes/perZone), arbiter: NewArbiter(cfg), source: prng.New(8), digested: start,
		mix: [4]int{55, 90, 97, 100}, rest: newWheel[Ticket](), run: newWheel[running](), gap: 1e9 / (load * 4 * float64(nodes)),
	}
	layouts := []Fragments{{2, 1, 1}, {1, 3}, {2, 1, 1}, {3, 0, 0, 1}, {1, 3}}
	grants := make([]Grant, nodes)
	for z := range nodes / perZone {
		w.zones = append(w.zones, NewDirectory(cfg, ZoneID(z), perZone, 0))
	}
	w.nodes = make([]Node, nodes)
	for i := range w.nodes {
		w.nodes[i] = NewNode(1, layouts[i%len(layouts)], grants[i:i:i+1])
	}
	w.digests()
	return w
}

func (w *plain) digests() {
	for i := range w.nodes {
		s := w.nodes[i].Summary(w.cfg)
		w.zones[i/perZone].Report(NodeID(i%perZone), &s)
	}
	for _, d := range w.zones {
		digest := d.Digest(w.now)
		w.splitter.Hear(w.now, &digest)
	}
	w.splitter.Rebuild(w.now)
}

// do takes a ticket as far as it comes at this instant.
func (w *plain) do(t *Ticket, m Move) {
	for {
		switch m.Act {
		case Draw:
			z, _ := w.splitter.Draw(t)
			m = w.search.Arrive(w.now, t, w.zones[z])
		case Ask:
			w.probes++
			at := int32(t.Zone)*perZone + int32(m.Node)
			d, node := w.zones[t.Zone], &w.nodes[at]
			w.probe[0] = t.Probe()
			a := w.arbiter.Decide(w.now, node, w.probe[:], w.answer[:0])[0]
			if a.Granted {
				node.Redeem(w.now, a.Token)
			}
			s := node.Summary(w.cfg)
			d.Report(m.Node, &s)
			if !a.Granted {
				m = w.search.Refused(w.now, t, d)
				continue
			}
			w.search.Granted(t, d)
			w.placed++
			w.run.put(w.tick, w.tick+int(w.source.Exp()*1000), running{at, a.Fragment})
			return
		case Rest:
			w.rest.put(w.tick, int((m.At-start)/1e6)+1, *t)
			return
		default:
			w.expired++
			return
		}
	}
}

// arrive lets time pass until the next task comes, and begins it.
func (w *plain) arrive() {
	next := w.now + quantity.Instant(w.source.Exp()*w.gap)
	for tick := int((next - start) / 1e6); w.tick < tick; {
		w.tick++
		w.now = start + quantity.Instant(w.tick)*1e6
		w.run.due(w.tick, func(r *running) { w.nodes[r.node].Release(r.fragment) })
		w.rest.due(w.tick, func(t *Ticket) { w.do(t, w.search.Next(w.now, t, w.zones[t.Zone])) })
		if w.now-w.digested >= quantity.Instant(w.cfg.Period) {
			w.digested = w.now
			w.digests()
		}
	}
	w.now = next
	r, c := w.source.IntN(100), 0
	for r >= w.mix[c] {
		c++
	}
	w.begun++
	t := Ticket{ID: TicketID(w.begun), Demand: w.cfg.Classes[c], Class: Class(c), Born: w.now}
	w.do(&t, w.search.Begin(w.now, &t))
}

// processor is the time that the process has had of processors.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPlacement is one task: draw, probes, grant, redemption, the slice's return, and its part of digests and tables.
func BenchmarkPlacement(b *testing.B) {
	for _, nodes := range []int{1000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			w := newPlain(nodes, .9)
			for w.now < start+6e9 {
				w.arrive()
			}
			w.placed, w.probes, w.expired = 0, 0, 0
			b.ReportAllocs()
			b.ResetTimer()
			before := processor()
			for range b.N {
				w.arrive()
			}
			cpu, n := float64(processor()-before), float64(b.N)
			b.ReportMetric(float64(w.probes)/n, "probes/op")
			b.ReportMetric(cpu/n, "cpu-ns/op")
			b.ReportMetric(cpu/float64(w.probes), "cpu-ns/probe")
			b.ReportMetric(float64(w.placed)/float64(w.placed+w.expired), "placed")
		})
	}
}

// TestTheHotPathAllocatesNothing: draws, hops, decisions, redemptions, returns, digests and tables.
func TestTheHotPathAllocatesNothing(t *testing.T) {
	w := newPlain(1000, .9)
	for w.now < start+10e9 { // until the wheels have grown as far as they do
		w.arrive()
	}
	for range 5000 {
		w.arrive()
	}
	if n := testing.AllocsPerRun(5, func() {
		for range 3000 {
			w.arrive()
		}
	}); n != 0 {
		t.Errorf("3,000 tasks allocate %v times", n)
	}
	if w.placed < 5000 || w.probes < w.placed {
		t.Errorf("%d placed with %d probes", w.placed, w.probes)
	}
	a, n, out := NewArbiter(tested()), NewNode(1, Fragments{9}, make([]Grant, 0, 8)), make([]Answer, 0, 8)
	probes := []Probe{{Ticket: 3}, {Ticket: 1}, {Ticket: 2}}
	if got := testing.AllocsPerRun(5, func() { out = a.Decide(start, &n, probes, out[:0]) }); got != 0 {
		t.Errorf("a decision about several allocates %v times", got)
	}
}

// TestPlacementIsFlat: a hundred times the nodes, at the same load, take the same probes for each task.
func TestPlacementIsFlat(t *testing.T) {
	var mean [2]float64
	for i, nodes := range []int{300, 10_000} {
		w := newPlain(nodes, .9)
		for w.now < start+4e9 {
			if w.now < start+2e9 {
				w.placed, w.probes, w.expired = 0, 0, 0
			}
			w.arrive()
		}
		mean[i] = float64(w.probes) / float64(w.placed)
		t.Logf("%d nodes: %.2f probes for each of %d placed, %d expired", nodes, mean[i], w.placed, w.expired)
	}
	if mean[1] > 1.1*mean[0] {
		t.Errorf("10,000 nodes take %.2f probes a task, 300 take %.2f", mean[1], mean[0])
	}
}
