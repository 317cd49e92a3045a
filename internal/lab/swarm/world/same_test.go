package world

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
	"sluice.dev/sluice/internal/lab/swarm/peers"
)

// script notes what the world says of tasks in the words of plain.
type script struct{ log []string }

func (s *script) Landed(now quantity.Instant, t swarm.Task, node int32, slot int8) {
	s.log = append(s.log, fmt.Sprintf("%d: job %d class %d lands on %d/%d", now, t.Job, t.Class, node, slot))
}

func (s *script) Over(now quantity.Instant, t swarm.Task, f Fate) {
	s.log = append(s.log, fmt.Sprintf("%d: job %d %s", now, t.Job, [...]string{"ran", "expired", "is lost"}[f]))
}

// TestThePlainWorldIsTheSame: under every mechanism each task lands, ends and expires in both worlds at the same instant and place,
// and what is counted is the same.
func TestThePlainWorldIsTheSame(t *testing.T) {
	kinds := []swarm.Kind{
		laminar.Kind(), peers.Central(), peers.TwoLevel(), peers.Spillback(), peers.Sparrow(), peers.TwoChoices(), peers.Omega(),
		peers.Omniscient(),
	}
	for _, kind := range kinds {
		t.Run(kind.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { same(t, kind) })
		})
	}
}

func same(t *rapid.T, kind swarm.Kind) {
	length := func(name string, least, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, name))
	}
	zones := rapid.IntRange(1, 3).Draw(t, "zones")
	o := Usual(zones, kind, rapid.Int64Range(200_000, 1_500_000).Draw(t, "load"))
	o.Cluster.PerZone = rapid.IntRange(4, 6).Draw(t, "nodes")
	o.Seed, o.Gates = rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "gates")
	o.Period, o.Decision = length("period", 20*time.Millisecond, 300*time.Millisecond), length("decision", 0, 5*time.Millisecond)
	o.Flow.LongMean, o.Flow.LongPatience, o.Flow.Batch = 2*time.Second, time.Second, rapid.IntRange(1, 3).Draw(t, "batch")
	o.Flow.Mean, o.Flow.Patience, o.Flow.Begun = length("mean", 100*time.Millisecond, time.Second),
		length("patience", 50*time.Millisecond, time.Second), rapid.Bool().Draw(t, "begun")
	o.Rigid.Share, o.Rigid.Mean = rapid.Int64Range(0, 600_000).Draw(t, "rigid"), length("rigid mean", 300*time.Millisecond, 2*time.Second)
	o.Network = Network{Delay: length("delay", 0, 2*time.Millisecond), Jitter: length("jitter", 0, time.Millisecond),
		Loss: rapid.Int64Range(0, 100_000).Draw(t, "loss")}
	o.Faults.Stragglers, o.Faults.Slow = rapid.Int64Range(0, 500_000).Draw(t, "stragglers"), 2500
	for range rapid.IntRange(0, 2).Draw(t, "faults") {
		o.Faults.Zones = append(o.Faults.Zones, ZoneFault{
			Zone: int32(rapid.IntRange(0, zones-1).Draw(t, "zone")), At: quantity.Instant(length("at", 0, time.Second)),
			For: length("for", time.Millisecond, time.Second), Cut: rapid.Bool().Draw(t, "cut"),
		})
	}
	o.From, o.Until = quantity.Instant(length("from", 0, 500*time.Millisecond)),
		quantity.Instant(length("until", 600*time.Millisecond, 1200*time.Millisecond))

	p := newPlain(t, o)
	p.play()
	seen := &script{}
	o.Observer = seen
	w, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for !w.Done() {
		w.Step()
	}
	for i := range min(len(p.log), len(seen.log)) {
		if p.log[i] != seen.log[i] {
			t.Fatalf("line %d is %q, and in the plain world %q", i, seen.log[i], p.log[i])
		}
	}
	if len(p.log) != len(seen.log) {
		t.Fatalf("%d lines, and in the plain world %d", len(seen.log), len(p.log))
	}
	c := w.Counts()
	want := Counts{Reports: int64(p.told["reports"]), Digests: int64(p.told["digests"]), Dropped: int64(p.told["lost"]), Refused: p.refused}
	for k := range want.Sent {
		want.Sent[k] = int64(p.told[fmt.Sprint("kind ", k)])
	}
	if c.Reports != want.Reports || c.Digests != want.Digests || c.Dropped != want.Dropped || c.Sent != want.Sent ||
		c.Refused != want.Refused {
		t.Fatalf("counted %+v, in the plain world %+v", c, want)
	}
	for z := range c.Zones {
		if c.Zones[z] != (Use{p.left[z], p.used[z]}) {
			t.Fatalf("zone %d: %+v, in the plain world leftover %d, used %d", z, c.Zones[z], p.left[z], p.used[z])
		}
	}
}
