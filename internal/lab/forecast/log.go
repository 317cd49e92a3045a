// Package forecast says before anything is installed what a cluster's idle time is worth: which gaps its scheduler left, by its own record,
// how much of them becomes kept work under Sluice and under what costs nothing, and what users would wait for it. A forecast is a pure
// function of the log, the backlog and the options: no clock, no file, no global random number.
package forecast

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/hostwork"
)

// Day is the block that figures are drawn by.
const Day = 24 * time.Hour

// Log is what a cluster's scheduler did with its devices over [From, To), since 1970.
type Log struct {
	From, To quantity.Instant
	// Zone is whose hours of day are shown; nil: UTC.
	Zone *time.Location
	// Devices are in order of their names, each once.
	Devices []Device
	// Said is what was taken for true in reading it: sentences. Odd is what was found that is not as it should be.
	Said []string
	Odd  []Odd
}

// Odd is something of a log that is not as it should be, so many times, and what was done about it.
type Odd struct {
	Says  string `json:"says"`
	Count int64  `json:"count"`
	Done  string `json:"done"`
	// Places are up to three examples: lines of files, jobs or stretches of time.
	Places []string `json:"places,omitempty"`
}

// Device is a GPU, or a part of one, that is given out as a whole.
type Device struct {
	Name string
	// Partition that its jobs come from most, Kind of device; empty where the record says nothing.
	Partition, Kind string
	// Weight is the part of a whole GPU that it is, in thousandths; 0: a whole one. Memory is what it has; 0: not known.
	Weight int64
	Memory quantity.Amount
	// Busy is when it can't be filled: ordered and disjoint. What holds it at the log's begin or end may go on there.
	Busy []Span
	// measured is what was measured of it; nil where nothing was.
	measured *gauge
}

// gauge is what was measured of a device: when at all, and when it was idle while a job held it.
type gauge struct{ covered, idle history.Spans }

// Span is time in which a device is held.
type Span struct {
	From, To quantity.Instant
	// Asked is when its job could have started (Slurm's Eligible); From or later where it is not known.
	Asked quantity.Instant
	Why   Why
}

// Why says what holds a device.
type Why uint8

// What may hold one: a job; a reservation, which is known before; or nothing that is known before, as it is down or drained.
const (
	Job Why = iota
	Reserved
	Away
	// Used: it was measured busy while no job held it.
	Used
)

// gaps calls with each free interval of a device within [from, to), in order, cut at the edges.
func (d *Device) gaps(from, to quantity.Instant, each func(from, to quantity.Instant)) {
	at := from
	for _, s := range d.during(from, to) {
		if s.From > at {
			each(at, s.From)
		}
		at = max(at, s.To)
	}
	if at < to {
		each(at, to)
	}
}

// during are the spans that have a part of [from, to), or end where it begins.
func (d *Device) during(from, to quantity.Instant) []Span {
	first, _ := slices.BinarySearchFunc(d.Busy, from, func(s Span, t quantity.Instant) int { return cmp.Compare(s.To, t) })
	rest := d.Busy[first:]
	end, _ := slices.BinarySearchFunc(rest, to, func(s Span, t quantity.Instant) int { return cmp.Compare(s.From, t) })
	return rest[:end]
}

// Days of the log that are whole.
func (l *Log) Days() int { return int(l.To.Sub(l.From) / Day) }

// Between is the part of a log from day from to day to, counted from its begin; to is at most its last whole day. The Devices slice is the
// log's own, uncut: a span that holds a device may reach beyond either end.
func (l *Log) Between(from, to int) *Log {
	out := *l
	out.From, out.To = l.From.Add(time.Duration(from)*Day), l.From.Add(time.Duration(min(to, l.Days()))*Day)
	return &out
}

// last is the part of a log that counts: so many of its last whole days, or all of it if it has no more.
func (l *Log) last(days int) *Log {
	all := l.Days()
	if all <= days {
		return l
	}
	out := l.Between(all-days, all)
	which := "counts"
	if days > 1 {
		which = fmt.Sprintf("%d count", days)
	}
	out.Said = append(slices.Clone(l.Said), fmt.Sprintf(
		"Of its %d days the last %s, for what comes next is like what was last.", all, which))
	return out
}

// closed is the source of a stay that is no job's.
const closed = "closed"

// wholeGPU in thousandths.
const wholeGPU = 1000

// host is what the host of a scenario does on some devices over a stretch of the log that begins at from and lasts long: at 0 in virtual
// time. From until on it takes all of them for good, so that every run ends. A job is announced a notice ahead, or, where plans are
// foretold, when it was asked for.
func (l *Log) host(devices []int, from quantity.Instant, until quantity.Instant, notice time.Duration, foretold bool) hostwork.Log {
	out := make(hostwork.Log, len(devices))
	least := quantity.Instant(max(notice, time.Second))
	for i, n := range devices {
		d := &l.Devices[n]
		add := func(s Span) {
			a, b := max(s.From-from, least), min(s.To-from, until)
			if s.To == quantity.Never {
				b = quantity.Never
			}
			if k := len(out[i]); k > 0 {
				a = max(a, out[i][k-1].To)
			}
			if a >= b {
				return
			}
			at := max(0, a-quantity.Instant(notice))
			if foretold {
				at = min(at, max(0, s.Asked-from))
			}
			source := cmp.Or(d.Partition, "host") + "/job"
			if s.Why != Job {
				source = closed
			}
			if s.Why == Reserved { // which is known long before
				at = max(0, min(at, a-quantity.Instant(12*time.Hour)))
			}
			out[i] = append(out[i], hostwork.Stay{From: a, To: b, Source: source,
				Words: []hostwork.Word{{At: at, From: a, To: quantity.Never}}})
		}
		for _, s := range d.during(from, from+until) {
			add(s)
		}
		add(Span{From: from + until, To: quantity.Never, Asked: from + until, Why: Away})
	}
	return out
}
