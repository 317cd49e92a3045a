package conservative

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// hold is what a task takes of a device (share) or of a host (cpu and memory), on [from, until).
type hold struct {
	id          planner.ID
	from, until quantity.Instant
	share       int32
	cpu, memory int64
}

// lane is what is taken of one device or host, in no order. It is short: the tasks of one device.
type lane []hold

// lanes is a plan by device: it serves gangs on one node, shares of devices, and hosts with limits.
type lanes struct {
	nodes   []lane
	limits  []planner.Node
	first   []int32 // device of a node; one more at the end
	class   []uint8
	devices []lane
	times   []quantity.Instant
	found   []planner.Device
}

func newLanes(c planner.Cluster) lanes {
	l := lanes{nodes: make([]lane, len(c.Nodes)), limits: c.Nodes}
	for _, n := range c.Nodes {
		l.first = append(l.first, int32(len(l.class)))
		l.class = append(l.class, n.Devices...)
	}
	l.first = append(l.first, int32(len(l.class)))
	l.devices = make([]lane, len(l.class))
	return l
}

func (l *lanes) clear(quantity.Instant) {
	for i := range l.nodes {
		l.nodes[i] = l.nodes[i][:0]
	}
	for i := range l.devices {
		l.devices[i] = l.devices[i][:0]
	}
}

// forward has nothing to do: who leaves takes its holds along.
func (l *lanes) forward(quantity.Instant) {}

func (l *lanes) take(e *book.Entry, s *slot, from quantity.Instant) {
	h := hold{id: e.Task.ID, from: from, until: s.until, share: e.Task.Share, cpu: e.Task.CPU, memory: e.Task.Memory}
	for _, d := range s.devices {
		l.devices[d] = append(l.devices[d], h)
	}
	if !e.Task.Spread {
		l.nodes[s.node] = append(l.nodes[s.node], h)
	}
}

func (l *lanes) give(e *book.Entry, s *slot, _ quantity.Instant) {
	for _, d := range s.devices {
		l.devices[d].remove(e.Task.ID)
	}
	if !e.Task.Spread {
		l.nodes[s.node].remove(e.Task.ID)
	}
}

func (l *lane) remove(id planner.ID) {
	i := slices.IndexFunc(*l, func(h hold) bool { return h.id == id })
	if i < 0 {
		invariant.Check(false, "conservative: task %d is to be taken out of the plan and is not in it", id)
	}
	*l = slices.Delete(*l, i, i+1)
}

// earliest tries now and every planned end: nowhere else does more become free.
func (l *lanes) earliest(now quantity.Instant, e *book.Entry, class int, s *slot) {
	s.class, s.start = class, quantity.Never
	s.devices = s.devices[:0]
	if e.Task.Spread {
		l.times = append(l.times[:0], now)
		for d := range l.devices {
			if int(l.class[d]) == class {
				l.times = l.devices[d].ends(now, l.times)
			}
		}
		l.try(e, class, 0, len(l.limits), s)
		return
	}
	for n := range l.limits {
		l.times = l.nodes[n].ends(now, append(l.times[:0], now))
		for d := l.first[n]; d < l.first[n+1]; d++ {
			l.times = l.devices[d].ends(now, l.times)
		}
		l.try(e, class, n, n+1, s)
	}
}

// try looks for the first of l.times before s.start at which a task fits on the nodes [from, to), and notes it in s.
func (l *lanes) try(e *book.Entry, class, from, to int, s *slot) {
	slices.Sort(l.times)
	run := max(e.Run(class), 1)
	for i, t := range l.times {
		if t >= s.start && len(s.devices) == int(e.Task.Devices) && s.start != quantity.Never {
			return
		}
		if i > 0 && t == l.times[i-1] {
			continue
		}
		if l.fits(e, class, from, to, t, t.Add(duration(run))) {
			s.start, s.node = t, int32(from)
			s.devices = append(s.devices[:0], l.found...)
			if len(l.found) > 0 {
				s.node = l.node(l.found[0])
			}
			return
		}
	}
}

func (l *lanes) node(d planner.Device) int32 {
	i, found := slices.BinarySearch(l.first, int32(d))
	for found && i+1 < len(l.first) && l.first[i+1] == int32(d) {
		i++ // nodes without devices begin where the next one does
	}
	if !found {
		i--
	}
	return int32(i)
}

// fits says whether a task fits on the nodes [from, to) all through [t, until), and leaves the devices in l.found.
func (l *lanes) fits(e *book.Entry, class, from, to int, t, until quantity.Instant) bool {
	l.found = l.found[:0]
	task := &e.Task
	if n := &l.limits[from]; !task.Spread && (n.CPU != 0 || n.Memory != 0) && !l.nodes[from].host(n, task, t, until) {
		return false
	}
	for d := l.first[from]; d < l.first[to] && len(l.found) < int(task.Devices); d++ {
		if int(l.class[d]) == class && l.devices[d].room(task.Share, t, until) {
			l.found = append(l.found, planner.Device(d))
		}
	}
	return len(l.found) == int(task.Devices)
}

// ends appends the instants after now at which something is over.
func (l lane) ends(now quantity.Instant, out []quantity.Instant) []quantity.Instant {
	for i := range l {
		if l[i].until > now && l[i].until != quantity.Never {
			out = append(out, l[i].until)
		}
	}
	return out
}

// room says whether a share is free all through [t, until). What is taken is most at t or where something begins.
func (l lane) room(share int32, t, until quantity.Instant) bool {
	for i := -1; i < len(l); i++ {
		at := t
		if i >= 0 {
			if at = l[i].from; at <= t || at >= until {
				continue
			}
		}
		taken := share
		for k := range l {
			if h := &l[k]; h.from <= at && at < h.until {
				taken += h.share
			}
		}
		if taken > planner.Whole {
			return false
		}
	}
	return true
}

// host says whether a node has the processors and memory of a task all through [t, until).
func (l lane) host(n *planner.Node, task *planner.Task, t, until quantity.Instant) bool {
	for i := -1; i < len(l); i++ {
		at := t
		if i >= 0 {
			if at = l[i].from; at <= t || at >= until {
				continue
			}
		}
		cpu, memory := task.CPU, task.Memory
		for k := range l {
			if h := &l[k]; h.from <= at && at < h.until {
				cpu, memory = cpu+h.cpu, memory+h.memory
			}
		}
		if cpu > n.CPU || memory > n.Memory {
			return false
		}
	}
	return true
}
