package world_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/peers"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

const sec = quantity.Instant(time.Second)

func play(t *testing.T, o world.Options) world.Counts {
	t.Helper()
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Never)
	return w.Counts()
}

// use is the share of the leftover that ran tasks, leftover the share of all slices.
func use(o world.Options, c world.Counts) (used, leftover float64) {
	var l, u, all int64
	for _, z := range c.Zones {
		l, u = l+z.Leftover, u+z.Used
	}
	for _, n := range o.Cluster.Capacity() {
		all += n
	}
	return float64(u) / float64(l), float64(l) / float64(all) / float64(c.Window)
}

// TestTheLoadIsAsOffered: rigid work holds its share on average, and a placer that loses nothing uses of the leftover what is
// offered of it.
func TestTheLoadIsAsOffered(t *testing.T) {
	for _, load := range []int64{300_000, 800_000} {
		o := world.Usual(50, peers.Omniscient(), load)
		o.From, o.Until = 120*sec, 220*sec
		c := play(t, o)
		used, leftover := use(o, c)
		if math.Abs(leftover-0.6) > 0.01 {
			t.Errorf("load %d: rigid work leaves %.3f, want .6", load, leftover)
		}
		if want := float64(load) / 1e6 * 0.6 / leftover; math.Abs(used-want) > 0.015 {
			t.Errorf("load %d: %.3f of the leftover is used, want %.3f", load, used, want)
		}
		if share := float64(c.Placed) / float64(c.Arrived); share < 0.9999 {
			t.Errorf("load %d: %.5f are placed", load, share)
		}
	}
}

// TestItBeginsFull: in the first seconds as much is used as later, and placed tasks are those that arrive.
func TestItBeginsFull(t *testing.T) {
	o := world.Usual(50, peers.Omniscient(), 800_000)
	o.From, o.Until = 0, 2*sec
	c := play(t, o)
	used, leftover := use(o, c)
	if want := 0.8 * 0.6 / leftover; math.Abs(used-want) > 0.02 {
		t.Errorf("%.3f of the leftover is used, want %.3f", used, want)
	}
	if rate := float64(c.Arrived) / 2; c.Starts != c.Placed || math.Abs(rate/(50*400*0.6*0.8/2.16)-1) > 0.03 {
		t.Errorf("%d tasks arrived in 2 s, %d started and %d were placed", c.Arrived, c.Starts, c.Placed)
	}
}

// TestErlang: where nobody waits a cluster of n slices of one class loses what Erlang's formula says (B).
func TestErlang(t *testing.T) {
	o := world.Usual(1, peers.Omniscient(), 900_000)
	o.Cluster = swarm.Uniform(1, 20, 1)
	o.Rigid.Share, o.Flow.LongShare, o.Flow.Mix, o.Flow.Patience = 0, 0, [swarm.MaxClasses]int64{1}, 1
	o.From, o.Until = 10*sec, 4000*sec
	c := play(t, o)
	b := 1.0
	for n := 1.0; n <= 20; n++ {
		b = 18 * b / (n + 18*b)
	}
	if lost := 1 - float64(c.Placed)/float64(c.Arrived); math.Abs(lost-b) > 0.008 {
		t.Errorf("lost %.4f, want %.4f", lost, b)
	}
}

// offender does one thing that the contract forbids.
type offender struct {
	swarm.Deaf
	port swarm.Port
	c    *swarm.Cluster
	does func(*offender, swarm.Task)
}

func (o *offender) Arrive(_ quantity.Instant, _ int32, tasks []swarm.Task) { o.does(o, tasks[0]) }

func (o *offender) Hear(quantity.Instant, swarm.Message) {}

// TestNobodyPeeks: what a party may not know or do stops the run.
func TestNobodyPeeks(t *testing.T) {
	for want, does := range map[string]func(*offender, swarm.Task){
		"node 3 is not here":   func(o *offender, _ swarm.Task) { o.port.Free(3) },
		"node 4 is not here":   func(o *offender, t swarm.Task) { o.port.Start(4, t.ID) },
		"node 5 is not here":   func(o *offender, _ swarm.Task) { o.port.Hold(5, 0) },
		"a message of kind 9":  func(o *offender, _ swarm.Task) { o.port.Send(swarm.Message{Kind: 9}) },
		"a message of kind 0":  func(o *offender, t swarm.Task) { o.port.Send(swarm.Message{To: o.c.GateAt(t.Gate)}) },
		"a timer of -1ns":      func(o *offender, _ swarm.Task) { o.port.After(-1, swarm.Message{}) },
		"from place":           func(o *offender, _ swarm.Task) { o.port.Send(swarm.Message{To: -1}) },
		"node 6 is not here: ": func(o *offender, _ swarm.Task) { o.port.Release(6, 0) },
	} {
		kind := swarm.Kind{Name: "offender", Messages: []swarm.MessageKind{{Name: "word", Bytes: 1}},
			New: func(s swarm.Setup, p swarm.Port) (swarm.Mechanism, error) {
				return &offender{port: p, c: s.Cluster, does: does}, nil
			}}
		func() {
			defer func() {
				if b, ok := recover().(invariant.Broken); !ok || !strings.Contains(b.Message, want) {
					t.Errorf("got %v, want it to say %q", b, want)
				}
			}()
			play(t, world.Usual(1, kind, 500_000))
		}()
	}
}

// TestStragglers: where every node takes twice as long, half the load uses what the whole would.
func TestStragglers(t *testing.T) {
	o := world.Usual(10, peers.Omniscient(), 400_000)
	o.Rigid.Share, o.From, o.Until = 0, 60*sec, 120*sec
	o.Faults.Stragglers, o.Faults.Slow = world.Million, 2000
	if used, _ := use(o, play(t, o)); math.Abs(used-0.8) > 0.02 {
		t.Errorf("%.3f is used, want .8", used)
	}
}

// TestADeadZoneLosesWhatRuns: and is no part of the leftover while it is dead.
func TestADeadZoneLosesWhatRuns(t *testing.T) {
	o := world.Usual(2, peers.Omniscient(), 500_000)
	o.Rigid.Share, o.From, o.Until = 0, 0, 40*sec
	o.Faults.Zones = []world.ZoneFault{{Zone: 1, At: 20 * sec, For: 10 * time.Second}}
	c := play(t, o)
	if c.Fates[world.Lost] < 150 || c.Fates[world.Lost] > 280 {
		t.Errorf("%d tasks are lost, want about half of 400", c.Fates[world.Lost])
	}
	if alive := float64(c.Zones[1].Leftover) / float64(c.Zones[0].Leftover); math.Abs(alive-0.75) > 1e-9 {
		t.Errorf("zone 1 counts %.4f of zone 0, want three quarters", alive)
	}
}

func TestBrokenOptionsAreRefused(t *testing.T) {
	for name, change := range map[string]func(*world.Options){
		"gates":    func(o *world.Options) { o.Gates = 0 },
		"period":   func(o *world.Options) { o.Period = 0 },
		"load":     func(o *world.Options) { o.Flow.Load = -1 },
		"patience": func(o *world.Options) { o.Flow.Patience = 0 },
		"batch":    func(o *world.Options) { o.Flow.Batch = 0 },
		"mix":      func(o *world.Options) { o.Flow.Mix[5] = 1 },
		"rigid":    func(o *world.Options) { o.Rigid.Width = 65 },
		"network":  func(o *world.Options) { o.Network.Loss = 2 * world.Million },
		"slow":     func(o *world.Options) { o.Faults.Stragglers, o.Faults.Slow = 1, 999 },
		"zone":     func(o *world.Options) { o.Faults.Zones = []world.ZoneFault{{Zone: 9, For: 1}} },
		"window":   func(o *world.Options) { o.Until = o.From },
		"kind":     func(o *world.Options) { o.Kind.New = nil },
		"decision": func(o *world.Options) { o.Decision = -1 },
	} {
		o := world.Usual(1, peers.Omniscient(), 500_000)
		change(&o)
		if _, err := world.New(o); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: got %v, want an error of kind Invalid", name, err)
		}
	}
}

// TestALogIsPlayed: its requests come in its order, over and over, each as long as it says, and as many as make up the load.
func TestALogIsPlayed(t *testing.T) {
	kind := peers.Omniscient()
	o := world.Usual(2, kind, 500_000)
	o.Flow.LongShare, o.Flow.Begun, o.Flow.Mean = 0, false, 2*time.Second
	o.Flow.Log = []world.Request{{0, time.Second}, {time.Hour, 2 * time.Second}, {time.Minute, 3 * time.Second}}
	o.Rigid.Share = 0
	o.From, o.Until = quantity.Instant(10*time.Second), quantity.Instant(40*time.Second)
	seen := &lengths{began: map[swarm.TaskID]quantity.Instant{}}
	o.Observer = seen
	w, err := world.New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.Run(quantity.Never)
	for i, want := range seen.jobs[:len(seen.jobs)-3] {
		if next := seen.jobs[i+3]; want != next && want > 0 && next > 0 { // who still runs at the end has none
			t.Fatalf("request %d takes %s and three later %s", i, want, next)
		}
	}
	// 800 slices at half load, 2 s on average: 200 a second; three at a time, in a log of three.
	if c := w.Counts(); c.Arrived < 5_900 || c.Arrived > 6_100 || c.Placed != c.Arrived {
		t.Errorf("%d arrived and %d were placed in 30 s; want 6000", c.Arrived, c.Placed)
	}
	o.Flow.Log[1].Gap, o.Flow.Log[2].Gap = 0, 0
	if _, err := world.New(o); errkind.Of(err) != errkind.Invalid {
		t.Errorf("got %v of a log that comes all at once", err)
	}
}

// lengths notes by arrival how long each task takes.
type lengths struct {
	began map[swarm.TaskID]quantity.Instant
	jobs  []time.Duration
}

func (l *lengths) Landed(now quantity.Instant, t swarm.Task, _ int32, _ int8) { l.began[t.ID] = now }

func (l *lengths) Over(now quantity.Instant, t swarm.Task, _ world.Fate) {
	for uint64(len(l.jobs)) < t.Job {
		l.jobs = append(l.jobs, 0)
	}
	l.jobs[t.Job-1] = now.Sub(l.began[t.ID])
}
