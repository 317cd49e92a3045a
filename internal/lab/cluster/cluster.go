// Package cluster is the actor that runs rigid work under one planner: it hands arrivals and ends to the planner, checks
// every decision against what it knows of the devices, and says what is to be started. It is lean and pure: inputs and
// effects are values, a step allocates nothing once its tables have grown, and what it decides is a function of its inputs.
//
// # How a driver calls it
//
//		c := cluster.New(machines, p)            // p: what a planner.Kind's New made for the same machines
//		for each instant at which something happens, in order of time:
//			for each input of that instant:       c.Step(now, cluster.Arrive(task), &out)   // or End, Return, Cancel
//			once, when all of them are in:        c.Step(now, cluster.Tick(), &out)
//			carry out out.Effects, then out.Reset()
//
//	  - Only Tick decides, so only Tick writes effects. All inputs of one instant come before its one Tick. Where carrying out
//	    the effects makes more inputs of the same instant (a task that runs for no time), feed them and Tick again, same now.
//	  - Ends and cancels of one instant may come in any order: the result is the same. Arrivals and returns join the queue in
//	    the order they are fed; a driver sorts those of one instant by something of its own, such as the job's number. An id
//	    that is used again within an instant ends before it arrives.
//	  - Effect Start: the task runs from now on out.Devices[From:To]. When it is over, say End(id, outcome); the devices are
//	    free from that instant. End in the effect is the planned end, an upper bound that nobody enforces: a driver that kills
//	    at the walltime says End(id, Expired) then.
//	  - Effect Preempt (only planners marked Preempts): begin to checkpoint the task. It holds its devices until, a checkpoint
//	    later, Return(task) says that it gave them back, with the same id and in Run what is left of it, without the cost of a
//	    restore; it joins the queue's end. The real run of its next start is what is left and the restore. A task that ends
//	    before its checkpoint is complete just ends.
//	  - Effect Never: the task can't run on these machines. It is forgotten; its id is free.
//	  - Wake() after a Tick is the next instant at which the planner wants a Tick though nothing happens; quantity.Never for
//	    all but planners that preempt.
package cluster

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Cluster is the actor. Make it with New.
type Cluster struct {
	planner planner.Planner
	waker   planner.Waker // nil where the planner is none
	plan    planner.Out
	ground  ground
	tasks   []task
	now     quantity.Instant
	digest  uint64
	counts  tally
}

// New is the actor for machines whose devices are all free, run by p, which was made for the same machines.
func New(machines Machines, p planner.Planner) *Cluster {
	c := &Cluster{planner: p, now: -1 << 63, ground: newGround(machines)}
	c.waker, _ = p.(planner.Waker)
	for i := range c.ground.devices {
		c.counts.Devices[c.ground.devices[i].class]++
	}
	return c
}

// Step takes one input. now never goes back. Effects are appended to out.
func (c *Cluster) Step(now quantity.Instant, in Input, out *Out) {
	if now < c.now {
		invariant.Check(false, "cluster: time went back from %d to %d", c.now, now)
	}
	c.now = now
	switch in.Kind {
	case Arrived:
		c.arrive(now, in.Task)
	case Ended:
		k := c.known(in.Task.ID, "ended")
		if k.state == waiting {
			invariant.Check(false, "cluster: task %d ended and does not run", k.ID)
		}
		c.leave(now, k)
		c.counts.Ended[in.Outcome]++
	case Returned:
		c.comeBack(now, in.Task)
	case Cancelled:
		c.leave(now, c.known(in.Task.ID, "was cancelled"))
		c.counts.Cancelled++
	case Ticked:
		c.tick(now, out)
	default:
		invariant.Check(false, "cluster: an input of kind %d", in.Kind)
	}
}

// known finds a task that is there.
func (c *Cluster) known(id ID, what string) *task {
	if id < 0 || int(id) >= len(c.tasks) || c.tasks[id].state == absent {
		invariant.Check(false, "cluster: task %d %s and is not known", id, what)
	}
	return &c.tasks[id]
}

func (c *Cluster) arrive(now quantity.Instant, t Task) {
	if t.ID < 0 || t.Devices < 0 || t.Share < 1 || t.Share > planner.Whole || t.Devices != 1 && t.Share != planner.Whole {
		invariant.Check(false, "cluster: task %d wants %d devices with %d thousandths of each", t.ID, t.Devices, t.Share)
	}
	for int(t.ID) >= len(c.tasks) {
		c.tasks = append(c.tasks, task{})
	}
	k := &c.tasks[t.ID]
	if k.state != absent {
		invariant.Check(false, "cluster: task %d arrives and is there already", t.ID)
	}
	k.Task = t
	c.wait(now, k)
	c.counts.Arrived++
	c.planner.Arrive(now, t)
}

// wait puts a task into the queue.
func (c *Cluster) wait(now quantity.Instant, k *task) {
	k.first, k.node = none, none
	k.since, k.state = now, waiting
	c.counts.Waiting++
	c.rehash(k)
}

// leave ends a task, wherever it stands.
func (c *Cluster) leave(now quantity.Instant, k *task) {
	c.drop(now, k)
	c.planner.Leave(now, k.ID)
}

// drop takes a task out of the tables.
func (c *Cluster) drop(now quantity.Instant, k *task) {
	if k.state == waiting {
		c.counts.Waiting--
	} else {
		c.counts.Running--
		c.ground.release(k)
		c.counts.use(now, k.class, -int64(k.Devices)*int64(k.Share))
	}
	k.state = absent
	c.digest -= k.hash
	k.hash = 0
}

// comeBack takes the devices of a preempted task and queues what is left of it.
func (c *Cluster) comeBack(now quantity.Instant, t Task) {
	k := c.known(t.ID, "returned")
	if k.state != leaving {
		invariant.Check(false, "cluster: task %d returned and was not told to", t.ID)
	}
	if k.Devices != t.Devices || k.Share != t.Share || k.Spread != t.Spread {
		invariant.Check(false, "cluster: task %d returned with another size", t.ID)
	}
	c.leave(now, k)
	k.Task = t
	c.wait(now, k)
	c.counts.Returned++
	c.planner.Arrive(now, t)
}

// tick asks the planner and checks what it says.
func (c *Cluster) tick(now quantity.Instant, out *Out) {
	c.counts.Ticks++
	c.plan.Decisions, c.plan.Devices = c.plan.Decisions[:0], out.Devices
	c.planner.Plan(now, &c.plan)
	out.Devices = c.plan.Devices
	for i := range c.plan.Decisions {
		d := &c.plan.Decisions[i]
		k := c.known(d.Task, "was decided on")
		e := Effect{Verb: d.Verb, Task: d.Task, Class: d.Class, Node: d.Node, From: d.From, To: d.To, End: quantity.Never}
		switch d.Verb {
		case Start:
			c.start(now, k, d, out.Devices)
			if k.Run != nil {
				e.End = now.Add(k.Run[d.Class])
			}
		case Preempt:
			if k.state != running {
				invariant.Check(false, "cluster: task %d is to be preempted and does not run", d.Task)
			}
			k.state = leaving
			c.counts.Preempted++
			c.rehash(k)
		case Never:
			if k.state != waiting {
				invariant.Check(false, "cluster: task %d can never run and does", d.Task)
			}
			c.drop(now, k)
			c.counts.Never++
		}
		out.Effects = append(out.Effects, e)
	}
}

// start puts a waiting task on its devices.
func (c *Cluster) start(now quantity.Instant, k *task, d *planner.Decision, all []Device) {
	if k.state != waiting {
		invariant.Check(false, "cluster: task %d is to be started and does not wait", k.ID)
	}
	c.counts.Waits[min(bits.Len64(uint64(now-k.since)/uint64(time.Millisecond)), len(c.counts.Waits)-1)]++
	c.counts.Started++
	c.counts.Waiting--
	c.counts.Running++
	k.since, k.state, k.class, k.node = now, running, d.Class, d.Node
	c.ground.hold(k, all[d.From:d.To])
	c.counts.use(now, k.class, int64(k.Devices)*int64(k.Share))
	c.rehash(k)
}

// rehash renews a task's term of the digest.
func (c *Cluster) rehash(k *task) {
	c.digest -= k.hash
	k.hash = k.term()
	c.digest += k.hash
}

// Wake is the next instant at which the planner wants a Tick though nothing happens, or quantity.Never.
func (c *Cluster) Wake(now quantity.Instant) quantity.Instant {
	if c.waker == nil {
		return quantity.Never
	}
	return c.waker.Wake(now)
}

// Digest is a hash of the tasks, where they stand and since when. It costs nothing to ask for.
func (c *Cluster) Digest() uint64 { return c.digest }

// Reservations appends what the planner keeps for waiting tasks, in queue order.
func (c *Cluster) Reservations(now quantity.Instant, out []Reservation) []Reservation {
	return c.planner.Reservations(now, out)
}

// Counts of everything so far.
func (c *Cluster) Counts() *Counts { return &c.counts.Counts }

// Area is the device time used of a class up to now, in thousandths of a device times seconds, rounded down.
func (c *Cluster) Area(now quantity.Instant, class uint8) int64 { return c.counts.used(now, class) }
