package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// Panel is one history with what it is called. Panels of one picture are aligned at their histories' From and share the
// scale of the longest.
type Panel struct {
	Title   string
	History status.History
	// Measure is how much of the history, from its beginning, the shares are taken over: two ways of doing the same work
	// can be compared only while both have work left. 0, or more than the history: all of it. A line marks where it ends.
	Measure time.Duration
}

// measured is where the shares end.
func (p Panel) measured() quantity.Instant {
	if p.Measure <= 0 {
		return p.History.To
	}
	return min(p.History.From.Add(p.Measure), p.History.To)
}

// cut says whether the shares end before the history does.
func (p Panel) cut() bool { return p.measured() < p.History.To }

// Share is how much of the available time of all the panel's slices was used, over the part of the history that is measured.
func (p Panel) Share() Share {
	h := p.History
	h.To = p.measured()
	return Total(h)
}

// reach is the length of the longest panel, at least a second.
func reach(panels []Panel) time.Duration {
	longest := time.Second
	for _, p := range panels {
		longest = max(longest, p.History.To.Sub(p.History.From))
	}
	return longest
}

// jobs of all panels, sorted, so that a job has the same color in each.
func jobs(panels []Panel) []job.ID {
	set := map[job.ID]bool{}
	for _, p := range panels {
		for _, s := range p.History.Slices {
			for _, span := range s.Spans {
				if span.Job != "" {
					set[span.Job] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// reserved kinds that occur, apart from leases and windows, in the order of their constants.
func reserved(panels []Panel) []protocol.ReservationKind {
	set := map[protocol.ReservationKind]bool{}
	for _, p := range panels {
		for _, s := range p.History.Slices {
			for _, span := range s.Spans {
				if span.Kind != 0 && span.Kind != protocol.ForLease {
					set[span.Kind] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// layers orders a slice's spans for drawing: windows, then reservations, then leases on top; within each by start.
func layers(s status.SliceHistory) []status.Span {
	rank := func(k protocol.ReservationKind) int {
		switch k {
		case 0:
			return 0
		case protocol.ForLease:
			return 2
		default:
			return 1
		}
	}
	return slices.SortedStableFunc(slices.Values(s.Spans), func(a, b status.Span) int {
		return cmp.Or(cmp.Compare(rank(a.Kind), rank(b.Kind)), cmp.Compare(a.Start, b.Start))
	})
}

// bad says whether a subjob's outcome is none that was planned.
func bad(outcome string) bool {
	switch outcome {
	case "", job.Done.String(), job.Yielded.String(), job.Stopped.String():
		return false
	}
	return true
}

// step of the time axis: the least of 1, 2, 5, 10, 15, 30 of a unit that leaves at most n ticks.
func step(length time.Duration, n int) time.Duration {
	for _, unit := range []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		for _, k := range []time.Duration{1, 2, 5, 10, 15, 30} {
			if length/(k*unit) <= time.Duration(n) {
				return k * unit
			}
		}
	}
	return length / time.Duration(n)
}

// elapsed is a tick's label: 0, 30s, 1m30s, 2h.
func elapsed(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := d.Round(time.Second).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// percent is a share for people; "-" where nothing was available.
func percent(s Share) string {
	if s.Available <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.0f%%", 100*s.Ratio())
}

// summary is a panel's total in words.
func summary(p Panel) string {
	t, in := p.Share(), "in "
	if p.cut() {
		in = "in the first "
	}
	return fmt.Sprintf("filled %s: %.1f of %.1f slice-seconds %s%s", percent(t), t.Used.Seconds(), t.Available.Seconds(), in,
		elapsed(p.measured().Sub(p.History.From)))
}

// about says what a slice is: its id, and its size where it is known.
func about(s protocol.Slice) string {
	text := string(s.ID)
	switch n := float64(s.Capacity[trp.Memory]); {
	case n >= 1<<30:
		text += fmt.Sprintf(", %.3g GiB", n/(1<<30))
	case n > 0:
		text += fmt.Sprintf(", %.3g MiB", n/(1<<20))
	}
	return text
}

// hint says all of a span, for the mouse.
func hint(h status.History, s status.Span) string {
	at := fmt.Sprintf("%s to %s", elapsedExact(s.Start.Sub(h.From)), elapsedExact(s.End.Sub(h.From)))
	switch s.Kind {
	case 0:
		if s.Until == 0 {
			return "open window, " + at
		}
		return fmt.Sprintf("window until %s, %s", s.Until, at)
	case protocol.ForLease:
		text := fmt.Sprintf("%s %s, lease %s, %s", s.Job, s.Range, s.Token, at)
		if s.Outcome != "" {
			text += ", " + s.Outcome
		}
		if !s.Committed.Empty() {
			text += ", committed " + s.Committed.String()
		}
		return text
	default:
		text := fmt.Sprintf("reserved: %s, %s", s.Kind, at)
		if s.Job != "" {
			text += ", for " + string(s.Job)
		}
		if s.Outcome != "" {
			text += ", " + s.Outcome
		}
		return text
	}
}

// elapsedExact is a time in the hint; an end that is not known says so.
func elapsedExact(d time.Duration) string {
	if d > 10*365*24*time.Hour {
		return "an unknown end"
	}
	return d.Round(10 * time.Millisecond).String()
}

// Trim moves From to the first that is known within the history, so that a picture does not begin with nothing.
func Trim(h status.History) status.History {
	first := h.To
	for _, s := range h.Slices {
		for _, span := range s.Spans {
			first = min(first, span.Start)
		}
	}
	h.From = max(h.From, first)
	return h
}
