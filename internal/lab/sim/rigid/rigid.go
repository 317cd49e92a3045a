// Package rigid is the simulated driver of whole-cluster planners: jobs that are never cut, run through the cluster actor. Arrivals,
// starts and ends, and nothing between. Kin of package sim: the same kind of heap, source and observer, so that every mechanism is offered
// the same work and is measured alike. Make one with New and call its Run.
package rigid

import (
	"context"
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/agenda"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// Options are those of a simulation of a planner, under which every job is one block. Actor, Machines, Source and Task
// are needed.
type Options struct {
	// Start is the first instant.
	Start quantity.Instant
	// Actor runs Machines under a planner.
	Actor    *cluster.Cluster
	Machines cluster.Machines
	// Speeds are how fast a job without a speed of its own for a class (by its name) runs there, in parts per thousand; nil:
	// as each class weighs.
	Speeds []int64

	Source workload.Source
	// Task fills in what the planner is told of a job: devices, classes, host and declared run on each class. ID and Run are
	// set already; it writes to *Run, or sets Run to nil if no planner may know it. An error is final.
	Task func(j *workload.Job, t *cluster.Task) error

	// Observer hears what happens; nil if nobody does.
	Observer measure.Observer
	// Progress is called now and then with how far the simulation has come; nil if not wanted.
	Progress func(now quantity.Instant, live int)
}

// Sim is a simulation of a planner. It is not safe for concurrent use.
//
// A job runs for its true time on the class it is given. A rigid one is killed at its walltime, at its own speed, and has
// failed. One that enters a phase whose true peak passes the device's memory is killed there; what it did since its last
// checkpoint is lost and it comes again, without the classes that have as little memory, and has failed if there is no
// other. One that is preempted pays for its checkpoint, comes again with the rest of its work, and pays for the restore.
// One whose owner's deadline passes has expired. Nothing is allocated in steady state.
type Sim struct {
	o      Options
	now    quantity.Instant
	events agenda.Heap[event]
	jobs   []*block
	free   []*block
	next   *block // the job that comes next, nil after the last
	live   int
	count  uint64
	out    cluster.Out
	piece  measure.Piece // so that none escapes
	wake   quantity.Instant
}

// event is something of a block that is due, unless its course has changed since. It is small: the heap is what every
// event walks through.
type event struct {
	id  cluster.ID
	due uint32 // what is, and of which version of the block
}

type kind uint32

const (
	overs kind = iota
	returns
	expires
	kinds
)

func due(k kind, version uint32) uint32 { return version*uint32(kinds) + uint32(k) }

func (r *Sim) schedule(at quantity.Instant, b *block, k kind, version uint32) {
	r.events.Put(at, event{id: b.task.ID, due: due(k, version)})
}

// block is one job. What every event touches stands together in front.
type block struct {
	version, life uint32 // of its course, and of the slot
	running       bool
	restores      bool
	run           stint
	left          time.Duration // of its work, at speed 1000, from its last checkpoint on
	attempt       int64
	task          cluster.Task
	job           workload.Job
	// planned is the run by class as given to the planner. The planner may still read that while it gets what is left of the run, which is
	// in spare, made when the job is preempted first.
	planned, spare *[len(cluster.Task{}.Run)]time.Duration
}

// stint is what is known of a run when it begins.
type stint struct {
	class  uint8
	device int32
	speed  int64
	begin  quantity.Instant
	before time.Duration // passes before the work begins
	from   int64         // unit it begins at
	how    job.Outcome
	peak   quantity.Amount
}

// New makes a simulation. An error of kind Invalid lists everything that is wrong with the options; others come from
// the source.
func New(o Options) (*Sim, error) {
	var errs []error
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: "+format, args...))
		}
	}
	wrong(o.Actor == nil || len(o.Machines.Classes) == 0, "it needs a cluster and its machines")
	wrong(o.Source == nil || o.Task == nil, "it needs a source of jobs and what makes a task of a job")
	wrong(o.Speeds != nil && len(o.Speeds) != len(o.Machines.Classes), "there are %d speeds for %d classes; give one for each",
		len(o.Speeds), len(o.Machines.Classes))
	for i, v := range o.Speeds {
		wrong(v < 0, "speeds[%d] is %d; want 0 or more", i, v)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%w", err)
	}
	if o.Speeds == nil {
		for i := range o.Machines.Classes {
			o.Speeds = append(o.Speeds, o.Machines.Classes[i].Weight)
		}
	}
	r := &Sim{o: o, now: o.Start, wake: quantity.Never}
	return r, r.pull()
}

// breath is how many instants pass between two looks at the context and two words of progress.
const breath = 4096

// Now is the present virtual time, Events how many arrivals, starts and ends there were, Live how many jobs are not over.
func (r *Sim) Now() quantity.Instant { return r.now }

// Run goes on until the source is dry and its jobs are over, at most to limit, and says whether they are; if they are not,
// the time is limit, or the last event where nothing is left to happen. After an error, of the source or of the context,
// what the observer has heard is whole and in order.
func (r *Sim) Run(ctx context.Context, limit quantity.Instant) (bool, error) {
	for turn := 0; ; turn++ {
		if turn%breath == 0 {
			if err := ctx.Err(); err != nil {
				return false, errkind.Errorf(errkind.Unavailable, "simulation: stopped at %v: %w", r.now.Time(), err)
			}
			if r.o.Progress != nil {
				r.o.Progress(r.now, r.live)
			}
		}
		next := min(r.events.Next(), r.wake)
		if r.next != nil {
			next = min(next, r.next.job.Submit)
		}
		if r.next == nil && r.live == 0 || next == quantity.Never {
			return r.next == nil && r.live == 0, nil
		}
		if next > limit {
			r.now = max(r.now, limit)
			return false, nil
		}
		r.now = max(r.now, next)
		if err := r.instant(); err != nil {
			return false, err
		}
	}
}

// instant handles all that is due, ends first, and lets the planner decide once.
func (r *Sim) instant() error {
	for r.events.Next() <= r.now {
		e := r.events.Take()
		b := r.jobs[e.id]
		switch e.due {
		case due(overs, b.version):
			r.over(b)
		case due(returns, b.version):
			r.giveBack(b)
		case due(expires, b.life):
			r.expire(b)
		}
	}
	for r.next != nil && r.next.job.Submit <= r.now {
		if err := r.arrive(); err != nil {
			return err
		}
	}
	r.o.Actor.Step(r.now, cluster.Tick(), &r.out)
	for i := range r.out.Effects {
		e := &r.out.Effects[i]
		b := r.jobs[e.Task]
		switch e.Verb {
		case cluster.Start:
			r.start(b, e)
		case cluster.Preempt:
			r.preempt(b)
		case cluster.Never:
			if b.attempt > 0 { // it could once: what it truly uses is more than there is anywhere
				r.done(b, job.Failed)
			} else {
				r.done(b, job.Impossible)
			}
		}
	}
	r.out.Reset()
	r.wake = r.o.Actor.Wake(r.now)
	return nil
}

// pull asks the source for the next job.
func (r *Sim) pull() error {
	var b *block
	if n := len(r.free); n > 0 {
		b, r.free = r.free[n-1], r.free[:n-1]
	} else {
		b = &block{task: cluster.Task{ID: cluster.ID(len(r.jobs))}, planned: new([len(cluster.Task{}.Run)]time.Duration)}
		r.jobs = append(r.jobs, b)
	}
	more, err := r.o.Source.Next(&b.job)
	switch {
	case err != nil:
		return errkind.Errorf(errkind.Of(err), "simulation: the source of jobs: %w", err)
	case more:
		r.next = b
	default:
		r.next = nil
	}
	return nil
}

// arrive hands the next job to the planner.
func (r *Sim) arrive() error {
	b := r.next
	b.life++
	b.version++
	b.attempt, b.left, b.restores = 0, b.job.Work, false
	clear(b.planned[:len(r.o.Machines.Classes)])
	b.task = cluster.Task{ID: b.task.ID, Run: b.planned}
	if err := r.o.Task(&b.job, &b.task); err != nil {
		return errkind.Errorf(errkind.Of(err), "simulation: job %d of the source: %w", b.job.Number, err)
	}
	r.live++
	r.count++
	if r.o.Observer != nil {
		r.o.Observer.Arrived(r.now, measure.Slot(b.task.ID), &b.job)
	}
	if b.job.Deadline != 0 && b.job.Deadline != quantity.Never {
		r.schedule(max(r.now, b.job.Deadline), b, expires, b.life)
	}
	r.o.Actor.Step(r.now, cluster.Arrive(b.task), &r.out)
	return r.pull()
}

// done gives a job its final state and frees its slot.
func (r *Sim) done(b *block, state job.State) {
	b.version++
	b.life++
	r.live--
	r.free = append(r.free, b)
	if r.o.Observer != nil {
		r.o.Observer.Done(r.now, measure.Slot(b.task.ID), state)
	}
}

// speed is how fast a block truly runs on a class, in parts per thousand.
func (r *Sim) speed(b *block, class uint8) int64 {
	for i := range b.job.Speeds {
		if b.job.Speeds[i].Profile == r.o.Machines.Classes[class].Name {
			return b.job.Speeds[i].Permille
		}
	}
	return r.o.Speeds[class]
}

// takes is the time that some work takes at a speed; a speed of 0 is taken for the least there is.
func takes(work time.Duration, speed int64) time.Duration {
	if speed == 1000 {
		return work
	}
	return min(workload.Longest, time.Duration(quantity.MulDiv(int64(work), 1000, max(1, speed))))
}

// start begins a run: it is known now when and how it ends.
func (r *Sim) start(b *block, e *cluster.Effect) {
	s := &b.run
	*s = stint{class: e.Class, speed: r.speed(b, e.Class), begin: r.now, before: b.job.Before(b.restores), how: job.Done}
	if e.From < e.To {
		s.device = int32(r.out.Devices[e.From])
	}
	whole := takes(b.left, s.speed)
	last := s.before + whole
	s.from = b.unit(b.left)
	capacity := r.o.Machines.Classes[e.Class].Memory
	var reached int64
	s.peak, reached = b.job.Memory.Run(s.from, b.job.Units, b.attempt, capacity)
	if reached < b.job.Units {
		s.how = job.MemoryKilled
		last = s.before + time.Duration(quantity.MulDiv(int64(whole), reached-s.from, b.job.Units-s.from))
	}
	if b.job.Kind == job.Rigid && b.job.Declared > 0 {
		if most := s.before + takes(max(0, b.job.Declared-(b.job.Work-b.left)), s.speed); most < last {
			s.how, last = job.DeadlineKilled, most
		}
	}
	b.attempt++
	b.version++
	b.running = true
	r.count++
	r.schedule(r.now.Add(last), b, overs, b.version)
	if r.o.Observer != nil {
		r.o.Observer.Began(r.now, measure.Slot(b.task.ID), s.class, b.task.Devices)
	}
}

// unit is the first one of a block that is not done when so much work is left.
func (b *block) unit(left time.Duration) int64 {
	if left == b.job.Work {
		return 0
	}
	return b.job.Units - min(b.job.Units, quantity.MulDiv(b.job.Units, int64(left), int64(b.job.Work)))
}

// workedIn is the work that a run has done in the time ran.
func (b *block) workedIn(ran time.Duration) time.Duration {
	ran -= b.run.before
	if ran <= 0 {
		return 0
	}
	return min(b.left, time.Duration(quantity.MulDiv(int64(ran), max(1, b.run.speed), 1000)))
}

// over ends a run as it was to end.
func (r *Sim) over(b *block) {
	switch b.run.how {
	case job.MemoryKilled:
		r.leave(b, cluster.Failed, b.run.how, 0, 0)
		b.task.Classes &^= r.small(r.o.Machines.Classes[b.run.class].Memory)
		if b.task.Classes == 0 {
			r.done(b, job.Failed)
			return
		}
		r.o.Actor.Step(r.now, cluster.Arrive(b.task), &r.out)
	case job.DeadlineKilled:
		r.leave(b, cluster.Expired, b.run.how, 0, 0)
		r.done(b, job.Failed)
	default:
		r.leave(b, cluster.Finished, job.Done, b.left, 0)
		r.done(b, job.Finished)
	}
}

// leave ends a run that did some work for good and took a checkpoint's time at its end.
func (r *Sim) leave(b *block, how cluster.Outcome, outcome job.Outcome, work, checkpoint time.Duration) {
	r.o.Actor.Step(r.now, cluster.End(b.task.ID, how), &r.out)
	r.told(b, outcome, work, checkpoint)
}

// told ends a run to the observer.
func (r *Sim) told(b *block, outcome job.Outcome, work, checkpoint time.Duration) {
	b.running = false
	b.version++
	r.count++
	if r.o.Observer == nil {
		return
	}
	s, p := &b.run, &r.piece
	*p = measure.Piece{
		Slot: measure.Slot(b.task.ID), Class: s.class, First: s.device, Slices: b.task.Devices, Start: s.begin, End: r.now, Work: work,
		Outcome: outcome, Peak: s.peak, Excess: s.peak > r.o.Machines.Classes[s.class].Memory,
	}
	held := p.End.Sub(p.Start)
	if work > 0 {
		p.Useful = min(held, takes(work, s.speed))
	}
	p.Overhead = min(s.before+checkpoint, held-p.Useful)
	r.o.Observer.Ended(r.now, p)
}

// small are the classes with no more memory than this, as a set of bits.
func (r *Sim) small(memory quantity.Amount) (set uint32) {
	for i := range r.o.Machines.Classes {
		if r.o.Machines.Classes[i].Memory <= memory {
			set |= 1 << i
		}
	}
	return set
}

// preempt stops a run, which then takes its time to leave a checkpoint, unless it is over by then.
func (r *Sim) preempt(b *block) {
	left := takes(b.left-b.workedIn(r.now.Sub(b.run.begin)), b.run.speed)
	if b.run.how == job.Done && left <= b.job.Checkpoint {
		return
	}
	b.version++
	r.schedule(r.now.Add(b.job.Checkpoint), b, returns, b.version)
}

// giveBack is the end of the checkpoint of a preempted run: its rest is submitted again.
func (r *Sim) giveBack(b *block) {
	s := &b.run
	done := b.workedIn(r.now.Sub(s.begin) - b.job.Checkpoint)
	b.left -= done
	if unit := b.unit(b.left); unit < b.job.Units { // the peaks of later phases were never reached
		s.peak, _ = b.job.Memory.Run(s.from, unit+1, b.attempt-1, r.o.Machines.Classes[s.class].Memory)
	}
	r.told(b, job.Yielded, done, b.job.Checkpoint)
	b.restores = true
	if b.task.Run != nil {
		if b.spare == nil {
			b.spare = new([len(cluster.Task{}.Run)]time.Duration)
		}
		for c := range r.o.Machines.Classes {
			b.spare[c] = max(1, b.planned[c]-takes(done, r.speed(b, uint8(c))))
		}
		b.planned, b.spare = b.spare, b.planned
		b.task.Run = b.planned
	}
	r.o.Actor.Step(r.now, cluster.Return(b.task), &r.out)
}

// expire ends a job whose owner's deadline has passed.
func (r *Sim) expire(b *block) {
	r.o.Actor.Step(r.now, cluster.Cancel(b.task.ID), &r.out)
	if b.running {
		r.told(b, job.Stopped, 0, 0)
	}
	r.done(b, job.Expired)
}
