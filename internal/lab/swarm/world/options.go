package world

import (
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// Million is the whole of a share in parts per million.
const Million = 1_000_000

// Forever is a patience that never ends.
const Forever = time.Duration(1<<63 - 1)

// Options of a world.
type Options struct {
	Seed    uint64
	Cluster swarm.Cluster
	Kind    swarm.Kind
	Gates   int
	// Period of reports and digests.
	Period time.Duration
	// Decision as in swarm.Setup.
	Decision time.Duration
	Flow     Flow
	Rigid    Rigid
	Network  Network
	Faults   Faults
	// Figures are of [From, Until); no task arrives at or after Until.
	From, Until quantity.Instant
	// Observer hears of every task; nil if nobody does.
	Observer Observer
}

// Flow is the tasks that arrive: a Poisson process of jobs of Batch tasks of one class, at a gate drawn for each.
type Flow struct {
	// Load offered in parts per million of the slice-time that rigid work leaves on average.
	Load int64
	// Mean length of a task; exponential. LongShare of the jobs in parts per million are of long tasks, of LongMean.
	Mean      time.Duration
	LongShare int64
	LongMean  time.Duration
	// Patience of a task and of a long one, from arrival to start.
	Patience, LongPatience time.Duration
	// Mix weighs the classes.
	Mix [swarm.MaxClasses]int64
	// Begun: tasks run at time 0 already, as many as on average if nobody waits.
	Begun bool
	// Batch is the tasks of a job, at least 1.
	Batch int
	// Log is what arrives instead of a Poisson process of exponential tasks: over and over, from a place drawn by the seed, its gaps
	// stretched or shrunk alike so that the load is as it says. Mean must be that of its lengths; it has no long tasks.
	Log []Request
}

// Request is one line of a log: how long after the one before it came, and how long it takes.
type Request struct{ Gap, Length time.Duration }

// MaxWidth is the largest Rigid.Width.
const MaxWidth = 64

// Rigid is work that holds slices of its own zone, neighbours as far as possible: in each zone a Poisson process of jobs, of 1 to
// Width slices and exponential length. It is at its stationary mean from the start.
type Rigid struct {
	// Share of all slices that it holds on average, in parts per million.
	Share int64
	Width int
	Mean  time.Duration
}

// Network is what happens to a message.
type Network struct {
	// Delay of every one, and the mean of an exponential jitter on top.
	Delay, Jitter time.Duration
	// Loss in parts per million.
	Loss int64
}

// Faults of the cluster.
type Faults struct {
	// Stragglers are nodes, in parts per million, on which every task takes Slow thousandths of its time.
	Stragglers, Slow int64
	// Zones that die or are cut off.
	Zones []ZoneFault
}

// ZoneFault is a zone that dies with all that runs there, or (Cut) that exchanges no message with the rest; and comes back.
type ZoneFault struct {
	Zone int32
	At   quantity.Instant
	For  time.Duration
	Cut  bool
}

// Fate is how a task was over.
type Fate uint8

// The fates.
const (
	// Ran to its end.
	Ran Fate = iota
	// Expired: its deadline came before it was started.
	Expired
	// Lost with its node.
	Lost
)

// Observer hears of tasks.
type Observer interface {
	// Landed: a task was started.
	Landed(now quantity.Instant, t swarm.Task, node int32, slot int8)
	// Over: a task has its fate, once.
	Over(now quantity.Instant, t swarm.Task, f Fate)
}

// Usual is the options of the shipped scenarios: zones of 100 nodes of four slices, of which rigid work holds 40% on average.
func Usual(zones int, kind swarm.Kind, load int64) Options {
	return Options{
		Seed: 1, Cluster: swarm.Mixed(zones), Kind: kind, Gates: 8, Period: 100 * time.Millisecond, Decision: 50 * time.Microsecond,
		Flow: Flow{
			Load: load, Mean: time.Second, LongShare: 200_000, LongMean: 6800 * time.Millisecond,
			Patience: time.Second, LongPatience: 30 * time.Second, Mix: [swarm.MaxClasses]int64{55, 35, 7, 3}, Batch: 1, Begun: true,
		},
		Rigid:   Rigid{Share: 400_000, Width: 16, Mean: 30 * time.Second},
		Network: Network{Delay: 500 * time.Microsecond},
		From:    quantity.Instant(20 * time.Second), Until: quantity.Instant(40 * time.Second),
	}
}

// check lists what is wrong with the options and prepares the cluster.
func (o *Options) check() error {
	if err := o.Cluster.Prepare(); err != nil {
		return err
	}
	var problems []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	f, r := &o.Flow, &o.Rigid
	wrong(o.Kind.New == nil, "no mechanism is given")
	wrong(o.Gates < 1, "gates: %d; want at least 1", o.Gates)
	wrong(o.Period <= 0, "period: %s; want more than 0", o.Period)
	wrong(o.Decision < 0, "decision: %s; want at least 0", o.Decision)
	wrong(f.Load < 0 || f.Load > 100*Million, "load: %d parts per million; want 0 to 100 times what rigid work leaves", f.Load)
	wrong(f.Mean <= 0 || f.LongShare < 0 || f.LongShare > Million || f.LongShare > 0 && f.LongMean <= 0,
		"flow: tasks need a mean length, and long ones a share of 0 to 1")
	wrong(f.Patience <= 0 || f.LongShare > 0 && f.LongPatience <= 0, "patience: want more than 0")
	wrong(f.Batch < 1, "batch: %d; want at least 1", f.Batch)
	if len(f.Log) > 0 {
		gaps := time.Duration(0)
		for _, q := range f.Log {
			wrong(q.Gap < 0 || q.Gap > time.Hour || q.Length <= 0, "log: a gap of %s and a length of %s; want 0 to an hour and more than 0",
				q.Gap, q.Length)
			gaps += q.Gap
		}
		wrong(gaps <= 0, "log: all comes at once")
		wrong(f.LongShare > 0 || f.Begun || f.Batch != 1, "log: it has its own lengths and no batches, and no world begins full of it")
	}
	sum, largest := int64(0), -1
	for i, m := range f.Mix {
		wrong(m < 0 || m > Million, "mix: class %d weighs %d; want 0 to %d", i, m, Million)
		if sum += m; m > 0 {
			largest = i
		}
	}
	capacity := o.Cluster.Capacity()
	for need, m := range f.Mix {
		room := int64(0)
		for _, n := range capacity[need:] {
			room += n
		}
		wrong(m > 0 && room == 0, "mix: no node has a slice that is large enough for class %d", need)
	}
	wrong(sum == 0 || largest >= len(o.Cluster.Classes), "mix: want a weight above 0 for a class that there is, and none for others")
	wrong(r.Share < 0 || r.Share > 900_000, "rigid: a share of %d parts per million; want at most 900000", r.Share)
	wrong(r.Share > 0 && (r.Width < 1 || r.Width > MaxWidth || r.Mean <= 0),
		"rigid: width %d, mean %s; want 1 to %d slices and a mean above 0", r.Width, r.Mean, MaxWidth)
	wrong(o.Network.Delay < 0 || o.Network.Jitter < 0 || o.Network.Loss < 0 || o.Network.Loss > Million,
		"network: want a delay and jitter of at least 0 and a loss of 0 to 1")
	wrong(o.Faults.Stragglers < 0 || o.Faults.Stragglers > Million || o.Faults.Stragglers > 0 && o.Faults.Slow < 1000,
		"stragglers: want a share of 0 to 1, at least as slow as the others")
	for _, z := range o.Faults.Zones {
		wrong(z.Zone < 0 || int(z.Zone) >= o.Cluster.Zones || z.At < 0 || z.For <= 0,
			"fault of zone %d at %s for %s: want a zone that there is, and some time", z.Zone, time.Duration(z.At), z.For)
	}
	wrong(o.From < 0 || o.Until <= o.From, "window: from %s until %s; nothing would be measured", time.Duration(o.From),
		time.Duration(o.Until))
	if err := errors.Join(problems...); err != nil {
		return errkind.Errorf(errkind.Invalid, "lean world: %w", err)
	}
	return nil
}
