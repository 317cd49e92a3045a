// Package hostwork is the work of a host scheduler: what holds the slices that fillers only borrow, when it came and went, and what
// the host said of it before. The gaps between are what every mechanism of a scenario with a host is offered, and they are the
// same for all, because the host is played by itself first and never looks at fillers.
package hostwork

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
)

// Word is the host's announcement of a stay: made at At, that it will hold the slice over [From, To).
type Word struct {
	// At is when it is announced, From when the slice has to be empty. Invariant: From is at least the host's notice behind At.
	At, From quantity.Instant
	// To is by when the host means to give it back; quantity.Never if it does not know.
	To quantity.Instant
}

// Stay is host work on one slice over [From, To).
type Stay struct {
	From, To quantity.Instant
	// Words are in order of At, each taking the place of the one before. Invariant: there is one at least, and the last says when
	// the slice is really taken, or earlier.
	Words []Word
	// Source is whose it is, as the host says: user/template. Empty for the calendar.
	Source string
	// Calendar: it is a reservation of the scenario, which everybody knows from there.
	Calendar bool
}

// Log is what a host did: stays by slice of the cluster, in order, which never overlap and are never empty.
type Log [][]Stay

// Gaps are the idle stretches of all slices in [from, to), slice by slice, in order. Those at the edges are cut there.
func (l Log) Gaps(from, to quantity.Instant) (out []measure.Gap) {
	for i, stays := range l {
		at := from
		for _, s := range stays {
			if s.From > at && at < to {
				out = append(out, measure.Gap{Slice: int32(i), From: at, To: min(s.From, to)})
			}
			at = max(at, s.To)
		}
		if at < to {
			out = append(out, measure.Gap{Slice: int32(i), From: at, To: to})
		}
	}
	return out
}

// Starts are when the host takes each slice, in order.
func (l Log) Starts() [][]quantity.Instant {
	out := make([][]quantity.Instant, len(l))
	for i, stays := range l {
		for _, s := range stays {
			out[i] = append(out[i], s.From)
		}
	}
	return out
}

// join puts stays of one slice in order and makes one of those that overlap or touch in the calendar; stays of planned work never do.
func join(stays []Stay) []Stay {
	slices.SortStableFunc(stays, func(a, b Stay) int { return cmp.Compare(a.From, b.From) })
	out := stays[:0]
	for _, s := range stays {
		if n := len(out); n > 0 && s.From < out[n-1].To {
			out[n-1].To = max(out[n-1].To, s.To)
			continue
		}
		out = append(out, s)
	}
	return out
}
