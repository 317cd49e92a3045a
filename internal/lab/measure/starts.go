package measure

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// Starts is the Observer of what starting programs takes where some stay between subjobs: of jobs that may be cut, whose runs hold one
// slice each.
type Starts struct {
	window Window
	// gaps of a host by slice, in order; empty: there is no host.
	gaps [][]startsIn
	// cold starts, with their time, and runs that went on in a program that was there.
	cold, resident int64
	time           time.Duration
}

// startsIn is a gap with the time of the first cold start in it, if there was any.
type startsIn struct {
	Gap
	used  bool
	first time.Duration
}

var _ Observer = (*Starts)(nil)

// NewStarts measures starts within a window. gaps are those that a host leaves there; none: nobody owns the slices.
func NewStarts(w Window, slices int, gaps []Gap) *Starts {
	s := &Starts{window: w, gaps: make([][]startsIn, slices)}
	for _, g := range gaps {
		s.gaps[g.Slice] = append(s.gaps[g.Slice], startsIn{Gap: g})
	}
	return s
}

// Arrived implements Observer.
func (s *Starts) Arrived(quantity.Instant, Slot, *workload.Job) {}

// Began implements Observer.
func (s *Starts) Began(quantity.Instant, Slot, uint8, int32) {}

// Ended implements Observer.
func (s *Starts) Ended(_ quantity.Instant, p *Piece) {
	if p.Units.Len() == 0 || p.Start < s.window.From || s.window.To != 0 && p.Start >= s.window.To {
		return // a rigid job's program does its only subjob
	}
	if p.Stayed {
		s.resident++
		return
	}
	s.cold++
	s.time += p.Startup
	if g := s.gap(p); g != nil && !g.used {
		g.used, g.first = true, p.Startup
	}
}

// gap is the host's gap in which a run began; nil if none.
func (s *Starts) gap(p *Piece) *startsIn {
	list := s.gaps[p.First]
	i, found := slices.BinarySearchFunc(list, p.Start, func(g startsIn, at quantity.Instant) int { return cmp.Compare(g.From, at) })
	if !found {
		i--
	}
	if i < 0 || p.Start >= list[i].To {
		return nil
	}
	return &list[i]
}

// Done implements Observer.
func (s *Starts) Done(quantity.Instant, Slot, job.State) {}

// Sent implements Observer.
func (s *Starts) Sent(int) {}

// Set gives the metrics; the run is over. One start is needed in every gap that is used: the host's return has ended what was there.
func (s *Starts) Set(values *Metrics) {
	values.Set(ColdStarts, float64(s.cold))
	values.Set(ResidentStarts, float64(s.resident))
	values.Set(StartTime, s.time.Seconds())
	used, needed, hosted := 0, time.Duration(0), false
	for _, list := range s.gaps {
		for i := range list {
			hosted = true
			if list[i].used {
				used++
				needed += list[i].first
			}
		}
	}
	if hosted {
		values.Set(GapsUsed, float64(used))
		values.Set(StartOverhead, (s.time - needed).Seconds())
	}
}

// Names of the metrics of a scenario with programs that stay, given beside those of Table. docs/metrics.md defines each.
const (
	ColdStarts     = "coldStarts"
	ResidentStarts = "residentStarts"
	StartTime      = "startTime"
	GapsUsed       = "gapsUsed"
	StartOverhead  = "startOverhead"
)

var startsTable = []Info{
	{ColdStarts, "Programs started", Plain, Lower},
	{ResidentStarts, "Subjobs in a program that stayed", Plain, Higher},
	{StartTime, "Time of starting", Seconds, Lower},
	{GapsUsed, "Gaps used", Plain, Neither},
	{StartOverhead, "Time of starting beyond one in each gap", Seconds, Lower},
}

// StartsTable lists the metrics that only a scenario with programs that stay has, in the order in which they are given.
func StartsTable() []Info { return append([]Info(nil), startsTable...) }
