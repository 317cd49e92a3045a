package meter_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/swarm/meter"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// TestAMeterChangesNothing: a mechanism that is measured does what it does unmeasured, of every kind, and each run of it makes the same
// calls.
func TestAMeterChangesNothing(t *testing.T) {
	for _, k := range all.Kinds() {
		o := world.Usual(2, k, 900_000)
		o.From, o.Until = quantity.Instant(time.Second), quantity.Instant(2*time.Second)
		tick := int64(0)
		m := meter.New(func() int64 { tick++; return tick }, o.From, o.Until)
		var counts []world.Counts
		for _, kind := range []swarm.Kind{k, m.Wrap(k), m.Wrap(k)} {
			o.Kind = kind
			w, err := world.New(o)
			if err != nil {
				t.Fatal(err)
			}
			w.Run(quantity.Never)
			counts = append(counts, w.Counts())
		}
		for _, c := range counts[1:] {
			if c.Placed != counts[0].Placed || c.Sent != counts[0].Sent || c.Starts != counts[0].Starts {
				t.Errorf("%s: measured it places %d with %v, unmeasured %d with %v", k.Name, c.Placed, c.Sent, counts[0].Placed,
					counts[0].Sent)
			}
		}
	}
}

// player is a mechanism that takes as long as the test says, and in one call of three sends a message, which takes the world 1000.
type player struct {
	swarm.Deaf
	p    swarm.Port
	play func()
}

func (x *player) Arrive(quantity.Instant, int32, []swarm.Task) {
	x.play()
	x.p.Send(swarm.Message{})
	x.play()
}

type slow struct {
	swarm.Port
	now *int64
}

func (s slow) Send(swarm.Message) { *s.now += 1000 }

// TestTheLeastOfEachCallCounts: without the world's part, within the window alone, each call as it was in its fastest run.
func TestTheLeastOfEachCallCounts(t *testing.T) {
	now := int64(0)
	m := meter.New(func() int64 { return now }, 10, 20)
	for _, lengths := range [][]int64{{5, 70, 3, 9}, {5, 7, 30, 9}} { // the calls at 9, 10, 19 and 20
		var length int64
		k := m.Wrap(swarm.Kind{New: func(_ swarm.Setup, p swarm.Port) (swarm.Mechanism, error) {
			return &player{p: p, play: func() { now += length }}, nil
		}})
		x, err := k.New(swarm.Setup{}, slow{now: &now})
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range []quantity.Instant{9, 10, 19, 20} {
			length = lengths[i]
			x.Arrive(at, 0, nil)
		}
	}
	if got, want := m.Nanos(), int64(2*(7+3)); got != want {
		t.Errorf("got %d ns, want %d", got, want)
	}
}
