package forecast

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// Measured sets beside the record of who held devices what was measured of them. Sluice runs in time that nobody holds: what is held and
// idle is not filled, and what is free and busy is not free.
type Measured struct {
	// Devices that were measured, and the share of all time of all devices that samples cover.
	Devices int     `json:"devices"`
	Covered float64 `json:"covered"`
	// Held is GPU-hours in which a job held a device that was measured. Idle is what of it was idle, by the least length of a stretch.
	Held float64    `json:"heldGPUHours"`
	Idle []HeldIdle `json:"heldIdle"`
	// Free is GPU-hours in which no job held a measured device. Used is what of it was busy for a minute or more: it is taken out of the
	// gaps.
	Free float64 `json:"freeGPUHours"`
	Used float64 `json:"freeBusyGPUHours"`
}

// HeldIdle is held and idle time in stretches of at least a length.
type HeldIdle struct {
	AtLeast   string  `json:"atLeast"`
	Stretches int64   `json:"stretches"`
	GPUHours  float64 `json:"gpuHours"`
	// Share of the held time that was measured.
	Share float64 `json:"share"`
}

// leastIdle are the lengths from which on idle time of a held device is counted, leastUsed the one from which on a free device that is busy
// is not free: clocks of nodes and schedulers differ by seconds, and an end of a job takes some.
func leastIdle() [3]time.Duration { return [3]time.Duration{time.Minute, 10 * time.Minute, time.Hour} }

const leastUsed = time.Minute

// measured sets a history's measurements beside its log, whose devices stand in the order of the history, and takes the time out of gaps
// in which a device was used. Which of a node's devices of a kind a job held is not known. So at no time more are taken as held and idle
// than are idle beyond those that nobody holds, and no more as free and used than are busy beyond those that are held: that is so
// whichever held what.
func measured(h *history.History, l *Log) {
	if h.Used == nil {
		return
	}
	for first := 0; first < len(h.Devices); {
		last := first
		for last < len(h.Devices) && h.Devices[last] == h.Devices[first] {
			last++
		}
		devices, used := l.Devices[first:last], h.Used[first:last]
		first = last
		if !slices.ContainsFunc(used, func(u *history.Use) bool { return u != nil }) {
			continue
		}
		w := watch{states: make([]state, len(devices)), idle: make([]history.Spans, len(devices)), used: make([]history.Spans,
			len(devices))}
		w.look(devices, used, l.From, l.To)
		for i, u := range used {
			if u == nil {
				continue
			}
			d := &devices[i]
			d.measured = &gauge{u.Covered, w.idle[i]}
			for _, x := range w.used[i] {
				if x.To.Sub(x.From) >= leastUsed {
					d.Busy = append(d.Busy, Span{x.From, x.To, x.From, Used})
				}
			}
			slices.SortFunc(d.Busy, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
		}
	}
}

// measured sums up what was measured of a log's devices; nil if nothing was.
func (l *Log) measured() *Measured {
	m := &Measured{}
	var all, covered, held, free, used deviceTime
	var idle [3]deviceTime
	for _, name := range []string{"1 min", "10 min", "1 h"} {
		m.Idle = append(m.Idle, HeldIdle{AtLeast: name})
	}
	for i := range l.Devices {
		d := &l.Devices[i]
		all += d.over(l.To.Sub(l.From))
		g := d.measured
		if g == nil {
			continue
		}
		m.Devices++
		covered += d.over(g.covered.Overlap(l.From, l.To))
		for _, s := range d.Busy {
			a, b := max(s.From, l.From), min(s.To, l.To)
			switch {
			case a >= b:
			case s.Why == Used:
				free += d.over(g.covered.Overlap(a, b))
				used += d.over(b.Sub(a))
			case s.Why == Job:
				held += d.over(g.covered.Overlap(a, b))
				for x := range g.idle.Within(a, b) {
					for k, least := range leastIdle() {
						if long := x.To.Sub(x.From); long >= least {
							idle[k] += d.over(long)
							m.Idle[k].Stretches++
						}
					}
				}
			}
		}
		d.gaps(l.From, l.To, func(a, b quantity.Instant) { free += d.over(g.covered.Overlap(a, b)) })
	}
	if m.Devices == 0 {
		return nil
	}
	m.Covered = ratio(float64(covered), float64(all))
	m.Held, m.Free, m.Used = held.hours(), free.hours(), used.hours()
	for i := range m.Idle {
		m.Idle[i].GPUHours, m.Idle[i].Share = idle[i].hours(), ratio(float64(idle[i]), float64(held))
	}
	return m
}

// state of a device at an instant: what the record says of it, and what was measured.
type state struct{ held, away, idle, busy bool }

// watch goes through the time of some devices, and writes down when they were held and idle, or free and used.
type watch struct {
	states     []state
	idle, used []history.Spans
}

// turn is when a state changes.
type turn struct {
	at     quantity.Instant
	device int
	apply  func(*state, bool)
	to     bool
}

func (w *watch) look(devices []Device, used []*history.Use, from, to quantity.Instant) {
	var all []turn
	note := func(device int, a, b quantity.Instant, apply func(*state, bool)) {
		if a, b = max(a, from), min(b, to); a < b {
			all = append(all, turn{a, device, apply, true}, turn{b, device, apply, false})
		}
	}
	for i := range devices {
		for _, s := range devices[i].Busy {
			if s.Why == Job {
				note(i, s.From, s.To, func(x *state, to bool) { x.held = to })
			} else {
				note(i, s.From, s.To, func(x *state, to bool) { x.away = to })
			}
		}
		if used[i] == nil {
			continue
		}
		for _, x := range used[i].Idle {
			note(i, x.From, x.To, func(x *state, to bool) { x.idle = to })
		}
		for _, x := range used[i].Busy {
			note(i, x.From, x.To, func(x *state, to bool) { x.busy = to })
		}
	}
	// Of one instant what ends goes first: the next may begin there.
	slices.SortStableFunc(all, func(x, y turn) int {
		if c := cmp.Compare(x.at, y.at); c != 0 || x.to == y.to {
			return c
		}
		if x.to {
			return 1
		}
		return -1
	})
	for i, c := range all {
		c.apply(&w.states[c.device], c.to)
		if i+1 < len(all) && all[i+1].at > c.at {
			w.over(c.at, all[i+1].at)
		}
	}
}

// over books a time in which nothing changes.
func (w *watch) over(from, to quantity.Instant) {
	idle, used := 0, 0
	for _, s := range w.states {
		if s.away {
			continue
		}
		if s.idle {
			idle++
		}
		if s.busy {
			used++
		}
		if s.held {
			used--
		} else {
			idle--
		}
	}
	share(w.idle, w.states, from, to, idle, func(s state) bool { return s.held && s.idle })
	share(w.used, w.states, from, to, used, func(s state) bool { return !s.held && !s.away && s.busy })
}

// share gives a time to at most so many of the devices that it may be of, first to those that had the time before it: stretches are whole.
func share(spans []history.Spans, states []state, from, to quantity.Instant, most int, may func(state) bool) {
	for _, goOn := range []bool{true, false} {
		for i := range states {
			n := len(spans[i])
			on := n > 0 && spans[i][n-1].To == from
			if done := n > 0 && spans[i][n-1].To == to; most <= 0 || done || on != goOn || !may(states[i]) {
				continue
			}
			spans[i] = spans[i].With(from, to)
			most--
		}
	}
}
