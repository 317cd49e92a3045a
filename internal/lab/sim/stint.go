package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/measure"
)

// speed is how fast a block truly runs on a class, in parts per thousand.
func (r *Rigid) speed(b *block, class uint8) int64 {
	for i := range b.Speeds {
		if b.Speeds[i].Profile == r.o.Machines.Classes[class].Name {
			return b.Speeds[i].Permille
		}
	}
	return r.o.Speeds[class]
}

// takes is the time that some work takes at a speed; a speed of 0 is taken for the least there is.
func takes(work time.Duration, speed int64) time.Duration {
	if speed == 1000 {
		return work
	}
	return min(longest, time.Duration(quantity.MulDiv(int64(work), 1000, max(1, speed))))
}

// start begins a run: it is known now when and how it ends.
func (r *Rigid) start(b *block, e *cluster.Effect) {
	s := &b.run
	*s = stint{class: e.Class, speed: r.speed(b, e.Class), begin: r.now, before: before(&b.Job, b.restores), how: job.Done}
	if e.From < e.To {
		s.device = int32(r.out.Devices[e.From])
	}
	whole := takes(b.left, s.speed)
	last := s.before + whole
	s.from = b.unit(b.left)
	capacity := r.o.Machines.Classes[e.Class].Memory
	var reached int64
	s.peak, reached = b.Memory.Run(s.from, b.Units, b.attempt, capacity)
	if reached < b.Units {
		s.how = job.MemoryKilled
		last = s.before + time.Duration(quantity.MulDiv(int64(whole), reached-s.from, b.Units-s.from))
	}
	if b.Kind == job.Rigid && b.Declared > 0 {
		if most := s.before + takes(max(0, b.Declared-(b.Work-b.left)), s.speed); most < last {
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
	if left == b.Work {
		return 0
	}
	return b.Units - min(b.Units, quantity.MulDiv(b.Units, int64(left), int64(b.Work)))
}

// workedIn is the work that a run has done when it has gone on for so long.
func (b *block) workedIn(ran time.Duration) time.Duration {
	ran -= b.run.before
	if ran <= 0 {
		return 0
	}
	return min(b.left, time.Duration(quantity.MulDiv(int64(ran), max(1, b.run.speed), 1000)))
}

// over ends a run as it was to end.
func (r *Rigid) over(b *block) {
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
func (r *Rigid) leave(b *block, how cluster.Outcome, outcome job.Outcome, work, checkpoint time.Duration) {
	r.o.Actor.Step(r.now, cluster.End(b.task.ID, how), &r.out)
	r.told(b, outcome, work, checkpoint)
}

// told ends a run to the observer.
func (r *Rigid) told(b *block, outcome job.Outcome, work, checkpoint time.Duration) {
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
func (r *Rigid) small(memory quantity.Amount) (set uint32) {
	for i := range r.o.Machines.Classes {
		if r.o.Machines.Classes[i].Memory <= memory {
			set |= 1 << i
		}
	}
	return set
}

// preempt stops a run, which then takes its time to leave a checkpoint, unless it is over by then.
func (r *Rigid) preempt(b *block) {
	left := takes(b.left-b.workedIn(r.now.Sub(b.run.begin)), b.run.speed)
	if b.run.how == job.Done && left <= b.Checkpoint {
		return
	}
	b.version++
	r.schedule(r.now.Add(b.Checkpoint), b, returns, b.version)
}

// giveBack is the end of the checkpoint of a preempted run: the rest of it comes again.
func (r *Rigid) giveBack(b *block) {
	s := &b.run
	done := b.workedIn(r.now.Sub(s.begin) - b.Checkpoint)
	b.left -= done
	if unit := b.unit(b.left); unit < b.Units { // the peaks of later phases were never reached
		s.peak, _ = b.Memory.Run(s.from, unit+1, b.attempt-1, r.o.Machines.Classes[s.class].Memory)
	}
	r.told(b, job.Yielded, done, b.Checkpoint)
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
func (r *Rigid) expire(b *block) {
	r.o.Actor.Step(r.now, cluster.Cancel(b.task.ID), &r.out)
	if b.running {
		r.told(b, job.Stopped, 0, 0)
	}
	r.done(b, job.Expired)
}
