package peers

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// tails plays 2,000 nodes of one slice and gives the share of nodes with at least k tasks, over many moments.
func tails(t *testing.T, d int, load int64) (share [9]float64) {
	kind := Choices("choices", d)
	var m *choices
	make := kind.New
	kind.New = func(s swarm.Setup, p swarm.Port) (swarm.Mechanism, error) {
		x, err := make(s, p)
		m = x.(*choices)
		return x, err
	}
	o := Bare(kind, 20, 100, 1, load)
	o.From, o.Until = 0, quantity.Instant(200*time.Second)
	seen := &busy{on: map[int32]bool{}}
	o.Observer = seen
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	moments := 0
	for at := 50 * time.Second; at < 200*time.Second; at += 3 * time.Second {
		w.Run(quantity.Instant(at))
		moments++
		for n := range int32(2000) {
			has := m.queues.Len(n)
			if seen.on[n] {
				has++
			}
			for k := 0; k <= min(has, len(share)-1); k++ {
				share[k] += 1. / 2000
			}
		}
	}
	for k := range share {
		share[k] /= float64(moments)
	}
	return share
}

// busy is the nodes that run a task.
type busy struct {
	on map[int32]bool
	at map[swarm.TaskID]int32
}

func (b *busy) Landed(_ quantity.Instant, t swarm.Task, node int32, _ int8) {
	if b.at == nil {
		b.at = map[swarm.TaskID]int32{}
	}
	b.on[node], b.at[t.ID] = true, node
}

func (b *busy) Over(_ quantity.Instant, t swarm.Task, _ world.Fate) {
	delete(b.on, b.at[t.ID])
	delete(b.at, t.ID)
}

// TestMitzenmacher: the share of nodes with at least k tasks is x^k with one choice and x^(2^k-1) with two, an exponential
// improvement of the longest queue (TPDS 2001, lemma 1 and theorem 1; there for infinitely many nodes).
func TestMitzenmacher(t *testing.T) {
	for _, c := range []struct {
		d    int
		load int64
	}{{1, 700_000}, {2, 700_000}, {2, 900_000}, {3, 900_000}} {
		got := tails(t, c.d, c.load)
		x := float64(c.load) / 1e6
		for k := 1; k < len(got); k++ {
			exponent := float64(k)
			if c.d > 1 {
				exponent = (math.Pow(float64(c.d), float64(k)) - 1) / float64(c.d-1)
			}
			want := math.Pow(x, exponent)
			if math.Abs(got[k]-want) > 0.015+0.05*want {
				t.Errorf("%d choices, load %.1f: %.4f of the nodes have %d tasks or more, want %.4f", c.d, x, got[k], k, want)
			}
		}
	}
}

// TestMeanTime: what follows from it for the mean time in the system: 1/(1-x) with one choice, and with two the sum of x^(2^i-2).
func TestMeanTime(t *testing.T) {
	two := 0.
	for i := 1.; i < 7; i++ {
		two += math.Pow(0.7, math.Pow(2, i)-2)
	}
	for d, want := range map[int]float64{1: 1 / (1 - 0.7), 2: two} {
		o := Bare(Choices("choices", d), 20, 100, 1, 700_000)
		o.From, o.Until = quantity.Instant(50*time.Second), quantity.Instant(150*time.Second)
		waits := &Waits{From: o.From}
		o.Observer = waits
		Play(t, o)
		if got := 1 + waits.Mean(); math.Abs(got/want-1) > 0.03 {
			t.Errorf("%d choices: a task is there for %.3f s, want %.3f", d, got, want)
		}
	}
}
