package laminar_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/laminar"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// play is ten seconds of ten zones as in the shipped scenarios: the share of tasks that are placed, and hops for each.
func play(t *testing.T, k swarm.Kind, zones int, change func(*world.Options)) (placed, hops float64, c world.Counts) {
	t.Helper()
	o := world.Usual(zones, k, 900_000)
	o.From, o.Until = quantity.Instant(5*time.Second), quantity.Instant(15*time.Second)
	change(&o)
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Never)
	c = w.Counts()
	return float64(c.Placed) / float64(c.Arrived), float64(c.Hops(k.Messages)) / float64(c.Starts), c
}

// TestWhatEachPartIsWorth: at load .9 nearly all is placed with hardly more than one hop, and without a part it takes more of them, or
// messages.
func TestWhatEachPartIsWorth(t *testing.T) {
	brief := func(o *world.Options) {
		o.From, o.Until = quantity.Instant(10*time.Second), quantity.Instant(13*time.Second)
	}
	placed, hops, _ := play(t, laminar.Kind(), 40, brief)
	if placed < .999 || hops > 1.1 {
		t.Errorf("laminar places %.4f with %.2f hops a task; want .999 with 1.1", placed, hops)
	}
	for v, atLeast := range map[laminar.Variant]float64{laminar.Argmax: 2, laminar.Uniform: 1.2, laminar.Blind: 3} {
		k := laminar.New(v)
		if _, without, _ := play(t, k, 40, brief); without < atLeast*hops {
			t.Errorf("%s takes %.2f hops a task, the whole %.2f: that part is worth less than it was", k.Name, without, hops)
		}
	}
	beyond := func(o *world.Options) { brief(o); o.Flow.Load = 1_300_000 }
	_, _, whole := play(t, laminar.Kind(), 10, beyond)
	_, _, forgetful := play(t, laminar.New(laminar.Forgetful), 10, beyond)
	if a, b := whole.Messages()*forgetful.Starts, forgetful.Messages()*whole.Starts; 5*b < 6*a {
		t.Errorf("at load 1.3 a task takes %d messages, and %d where what was refused is submitted again; want a fifth more",
			whole.Messages()/whole.Starts, forgetful.Messages()/forgetful.Starts)
	}
}

// TestMessagesAreFlat: ten times the zones take the same messages for each task, reports and digests counted.
func TestMessagesAreFlat(t *testing.T) {
	var per [2]float64
	for i, zones := range []int{5, 50} {
		_, _, c := play(t, laminar.Kind(), zones, func(o *world.Options) { o.Until = quantity.Instant(8 * time.Second) })
		per[i] = float64(c.Messages()) / float64(c.Starts)
	}
	if per[1] > 1.1*per[0] {
		t.Errorf("a task takes %.2f messages with 50 zones and %.2f with 5", per[1], per[0])
	}
}

// TestLossCostsHopsNotTasks: with one message of a hundred lost nearly all is placed still, and nothing is started twice.
func TestLossCostsHopsNotTasks(t *testing.T) {
	placed, _, c := play(t, laminar.Kind(), 10, func(o *world.Options) { o.Network.Loss = 10_000 })
	if placed < .98 || c.Refused[swarm.Elsewhere] > 0 {
		t.Errorf("%.4f are placed, %d were to start twice", placed, c.Refused[swarm.Elsewhere])
	}
}

// TestBeyondLoadOneLongTasksWait: who gives up first is served first, so that short tasks are placed while long ones have time.
func TestBeyondLoadOneLongTasksWait(t *testing.T) {
	placed, hops, c := play(t, laminar.Kind(), 10, func(o *world.Options) {
		o.Flow.Load = 1_150_000
		o.From, o.Until = quantity.Instant(5*time.Second), quantity.Instant(10*time.Second)
	})
	if per := float64(c.Messages()) / float64(c.Starts); placed < .995 || hops > 3 || per > 12 {
		t.Errorf("%.4f are placed with %.2f hops and %.1f messages a task; want .995 with 3 and 12", placed, hops, per)
	}
}

// TestNobodyIsToldTwice: a node reports only what it has not said with an answer, and a zone says to the gates only what has changed.
func TestNobodyIsToldTwice(t *testing.T) {
	_, _, c := play(t, laminar.Kind(), 10, func(o *world.Options) { o.Until = quantity.Instant(8 * time.Second) })
	if reports, digests := float64(c.Reports)/float64(c.Starts), float64(c.Digests)/float64(c.Starts); reports > 1 || digests > .7 {
		t.Errorf("%.2f reports and %.2f digests a task; want less than one report, for its end, and not every digest", reports, digests)
	}
}
