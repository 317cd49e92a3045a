package all_test

import (
	"reflect"
	"runtime"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// conforms checks a kind: it is driven through random small worlds, with everything counted anew after every event.
func conforms(t *testing.T, kind swarm.Kind) {
	t.Helper()
	t.Run("card", func(t *testing.T) { card(t, kind) })
	t.Run("any world", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { life(t, kind) })
	})
	t.Run("light load is placed", func(t *testing.T) { light(t, kind) })
	t.Run("nothing is heard", func(t *testing.T) { deaf(t, kind) })
	t.Run("a zone that comes back is used", func(t *testing.T) { back(t, kind) })
	t.Run("no allocation in steady state", func(t *testing.T) { allocations(t, kind) })
}

// card checks what a kind says of itself.
func card(t *testing.T, kind swarm.Kind) {
	if kind.Name == "" || kind.Summary == "" || kind.New == nil || len(kind.Messages) > world.MaxKinds {
		t.Errorf("a kind has a name, a summary, a way to make one, and at most %d kinds of messages: %+v", world.MaxKinds, kind)
	}
	hops := 0
	for _, m := range kind.Messages {
		if m.Name == "" || m.Bytes < 1 {
			t.Errorf("message %+v has no name or no size", m)
		}
		if m.Hop {
			hops++
		}
	}
	if hops == 0 != kind.Omniscient {
		t.Errorf("%d kinds of messages ask a node for room, and omniscient is %v", hops, kind.Omniscient)
	}
	if _, err := world.New(world.Options{Kind: kind}); errkind.Of(err) != errkind.Invalid {
		t.Errorf("an empty world: got %v, want an error of kind Invalid", err)
	}
}

// witness sees that a task lands at most once and is over exactly once.
type witness struct {
	landed, over map[swarm.TaskID]int
}

func newWitness() *witness {
	return &witness{landed: map[swarm.TaskID]int{}, over: map[swarm.TaskID]int{}}
}

// Landed implements world.Observer.
func (w *witness) Landed(_ quantity.Instant, t swarm.Task, _ int32, _ int8) { w.landed[t.ID]++ }

// Over implements world.Observer.
func (w *witness) Over(_ quantity.Instant, t swarm.Task, f world.Fate) {
	w.over[t.ID]++
	if f == world.Expired && w.landed[t.ID] > 0 || f != world.Expired && w.landed[t.ID] == 0 {
		w.over[t.ID] += 100 // it can not both run and expire
	}
}

// counting is a port that counts what is sent while the window is open.
type counting struct {
	swarm.Port
	now  func() quantity.Instant
	end  quantity.Instant
	sent [world.MaxKinds]int64
}

// Send implements swarm.Port.
func (c *counting) Send(m swarm.Message) {
	if c.now() < c.end {
		c.sent[m.Kind]++
	}
	c.Port.Send(m)
}

// counted is the kind with a port that counts.
func counted(kind swarm.Kind, c *counting) swarm.Kind {
	make := kind.New
	kind.New = func(s swarm.Setup, p swarm.Port) (swarm.Mechanism, error) {
		c.Port = p
		return make(s, c)
	}
	return kind
}

// anyWorld draws a small world with faults.
func anyWorld(t *rapid.T, kind swarm.Kind) world.Options {
	share := func(name string, most int64) int64 {
		if rapid.Bool().Draw(t, name+" at all") {
			return rapid.Int64Range(1, most).Draw(t, name)
		}
		return 0
	}
	length := func(name string, least, most time.Duration) time.Duration {
		return time.Duration(rapid.Int64Range(int64(least), int64(most)).Draw(t, name))
	}
	zones := rapid.IntRange(1, 3).Draw(t, "zones")
	o := world.Usual(zones, kind, rapid.Int64Range(100_000, 2_000_000).Draw(t, "load"))
	if rapid.Bool().Draw(t, "uniform") {
		o.Cluster = swarm.Uniform(zones, rapid.IntRange(1, 6).Draw(t, "nodes"), rapid.IntRange(1, 4).Draw(t, "slices"))
		o.Flow.Mix = [swarm.MaxClasses]int64{1}
	} else {
		o.Cluster.PerZone = rapid.IntRange(4, 6).Draw(t, "nodes") // with a slice of every class
	}
	o.Seed, o.Gates = rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 3).Draw(t, "gates")
	o.Period, o.Decision = length("period", 5*time.Millisecond, time.Second), length("decision", 0, 20*time.Millisecond)
	o.Flow.Mean, o.Flow.LongMean = length("mean", 20*time.Millisecond, time.Second), length("long", 20*time.Millisecond, 5*time.Second)
	o.Flow.Patience, o.Flow.LongPatience = length("patience", time.Millisecond, time.Second),
		length("long patience", time.Millisecond, 2*time.Second)
	o.Flow.Begun = rapid.Bool().Draw(t, "begun")
	o.Flow.Batch = rapid.IntRange(1, 5).Draw(t, "batch")
	o.Rigid.Share, o.Rigid.Width, o.Rigid.Mean = share("rigid", 700_000), rapid.IntRange(1, 16).Draw(t, "width"),
		length("rigid mean", 200*time.Millisecond, 5*time.Second)
	o.Network = world.Network{Delay: length("delay", 0, 5*time.Millisecond), Loss: share("loss", 300_000)}
	if rapid.Bool().Draw(t, "jitters") {
		o.Network.Jitter = length("jitter", 1, 5*time.Millisecond)
	}
	o.Faults.Stragglers, o.Faults.Slow = share("stragglers", world.Million), 3000
	for range rapid.IntRange(0, 3).Draw(t, "faults") {
		o.Faults.Zones = append(o.Faults.Zones, world.ZoneFault{
			Zone: int32(rapid.IntRange(0, zones-1).Draw(t, "zone")), At: quantity.Instant(length("at", 0, 3*time.Second)),
			For: length("for", time.Millisecond, 2*time.Second), Cut: rapid.Bool().Draw(t, "cut"),
		})
	}
	o.From, o.Until = 0, quantity.Instant(length("until", 100*time.Millisecond, 2*time.Second))
	return o
}

// most is how many events of a random world are looked at one by one.
const most = 3000

// life plays a random world to its end and holds it to what must be true of it, then plays it again.
func life(t *rapid.T, kind swarm.Kind) {
	o := anyWorld(t, kind)
	seen := newWitness()
	count := &counting{end: o.Until}
	o.Kind, o.Observer = counted(kind, count), seen
	var w *world.World
	count.now = func() quantity.Instant { return w.Now() }
	begin := func() {
		w = &world.World{} // it calls the mechanism while it is made: no time has passed by then
		made, err := world.New(o)
		if err != nil {
			t.Fatal(err)
		}
		w = made
	}
	begin()
	for i := 0; i < most && !w.Done(); i++ {
		w.Step()
		if err := w.Check(); err != nil {
			t.Fatalf("at %s: %v", time.Duration(w.Now()), err)
		}
	}
	w.Run(o.Until.Add(time.Hour))
	if !w.Done() {
		t.Fatalf("an hour after the last task has come some still wait")
	}
	if err := w.Check(); err != nil {
		t.Fatalf("at the end: %v", err)
	}
	c := w.Counts()
	if c.Arrived != c.Placed+c.Fates[world.Expired] || c.Fates[world.Ran]+c.Fates[world.Lost] > c.Placed {
		t.Fatalf("%d tasks came, %d were placed, and their fates are %v", c.Arrived, c.Placed, c.Fates)
	}
	if n := c.Refused[swarm.Elsewhere]; n > 0 {
		t.Fatalf("%d times a task was to start that had been started", n)
	}
	for id, n := range seen.landed {
		if n > 1 {
			t.Fatalf("task %d landed %d times", id, n)
		}
	}
	for id, n := range seen.over {
		if n > 1 {
			t.Fatalf("task %d was over %d times", id, n)
		}
	}
	for k := range count.sent {
		if count.sent[k] != c.Sent[k] {
			t.Fatalf("kind %d was sent %d times, and %d are counted", k, count.sent[k], c.Sent[k])
		}
	}
	begin()
	w.Run(o.Until.Add(time.Hour))
	if again := w.Counts(); !reflect.DeepEqual(c, again) {
		t.Fatalf("the same world again:\n%+v\n%+v", c, again)
	}
}

// plain is a world of two zones of 20 nodes without faults.
func plain(kind swarm.Kind, load int64) world.Options {
	o := world.Usual(2, kind, load)
	o.Cluster.PerZone = 20
	o.From, o.Until = quantity.Instant(5*time.Second), quantity.Instant(15*time.Second)
	return o
}

// play plays a world to its end.
func play(t *testing.T, o world.Options) world.Counts {
	t.Helper()
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Never)
	return w.Counts()
}

// light: where rigid work holds nothing and half of the slices would do, four of five tasks at least are placed.
func light(t *testing.T, kind swarm.Kind) {
	o := plain(kind, 400_000)
	o.Rigid.Share = 0
	if c := play(t, o); c.Placed*5 < c.Arrived*4 {
		t.Errorf("of %d tasks %d were placed", c.Arrived, c.Placed)
	}
}

// deaf: where every message is lost every task expires, but for who needs none.
func deaf(t *testing.T, kind swarm.Kind) {
	o := plain(kind, 400_000)
	o.Network.Loss = world.Million
	if c := play(t, o); c.Arrived == 0 || !kind.Omniscient && c.Fates[world.Expired] != c.Arrived {
		t.Errorf("of %d tasks %d expired", c.Arrived, c.Fates[world.Expired])
	}
}

// back: both zones die in turn and come back; afterwards tasks are placed as before.
func back(t *testing.T, kind swarm.Kind) {
	o := plain(kind, 400_000)
	o.Rigid.Share = 0
	o.Faults.Zones = []world.ZoneFault{
		{Zone: 0, At: quantity.Instant(time.Second), For: time.Second},
		{Zone: 1, At: quantity.Instant(2500 * time.Millisecond), For: time.Second},
	}
	if c := play(t, o); c.Placed*5 < c.Arrived*4 {
		t.Errorf("of %d tasks %d were placed", c.Arrived, c.Placed)
	}
}

// allocations lets a world run until its tables have grown, and counts in a second of some thousand events.
func allocations(t *testing.T, kind swarm.Kind) {
	o := plain(kind, 900_000)
	o.Until = quantity.Instant(time.Hour)
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Instant(200 * time.Second))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	tasks := w.Counts().Arrived
	w.Run(quantity.Instant(300 * time.Second))
	runtime.ReadMemStats(&after)
	tasks = w.Counts().Arrived - tasks
	if n := after.Mallocs - before.Mallocs; int64(n)*20 > tasks {
		t.Errorf("%d allocations for %d tasks, want none for all but a few", n, tasks)
	}
}
