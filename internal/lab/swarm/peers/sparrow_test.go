package peers

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// response is the mean time in seconds of a job of 100 tasks of .1 s on machines of four cores, half a millisecond from everywhere: the
// simulation of SOSP 2013, section 3, with a tenth of its 10,000 machines.
func response(t *testing.T, kind swarm.Kind, load int64) float64 {
	o := Bare(kind, 10, 100, 4, load)
	o.Flow.Mean, o.Flow.Batch, o.Network.Delay = 100*time.Millisecond, 100, 500*time.Microsecond
	o.From, o.Until = quantity.Instant(5*time.Second), quantity.Instant(25*time.Second)
	waits := &Waits{From: o.From}
	o.Observer = waits
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Instant(60 * time.Second))
	w.Run(quantity.Instant(90 * time.Second))
	return waits.Response(o.Until.Add(-10 * time.Second))
}

// TestSparrowIsNearIdeal: at load .8 batch sampling with late binding is within 12% of an ideal scheduler (abstract of SOSP 2013), and
// sampling for each task alone and random placement are worse, in this order (its figure 3).
func TestSparrowIsNearIdeal(t *testing.T) {
	ideal := response(t, Omniscient(), 800_000)
	batch := response(t, Sparrow(), 800_000)
	each := response(t, TwoChoices(), 800_000)
	random := response(t, Choices("random", 1), 800_000)
	t.Logf("ideal %.3f s, sparrow %.3f, two choices for each task %.3f, random %.3f", ideal, batch, each, random)
	if batch > 1.12*ideal {
		t.Errorf("sparrow takes %.3f s, ideal %.3f: want at most 12%% more", batch, ideal)
	}
	if !(ideal <= batch && batch < each && each < random) {
		t.Errorf("ideal %.3f, sparrow %.3f, each task alone %.3f, random %.3f: want them in this order", ideal, batch, each, random)
	}
}

// TestMoreProbesDoNotPayOff: two probes a task give nearly all that there is to have (section 3.5: d beyond 2 does not help much).
func TestMoreProbesDoNotPayOff(t *testing.T) {
	one, two, four := response(t, SparrowOf("d1", 1), 800_000), response(t, Sparrow(), 800_000),
		response(t, SparrowOf("d4", 4), 800_000)
	if one-two < 3*(two-four) || one < 1.2*two {
		t.Errorf("one probe %.3f s, two %.3f, four %.3f: want most of the gain from the second", one, two, four)
	}
}
