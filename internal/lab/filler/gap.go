package filler

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// heard is what a discipline knows of the host, in order of time: the host's plans if it looks at them; if it leaves checkpoints or looks
// at nothing, the preemption itself.
func heard(stays []hostwork.Stay, o Options) (out []word) {
	for i, s := range stays {
		if d := o.Discipline; d.Fits == Whole || d.Fits == Part {
			for _, w := range s.Words {
				out = append(out, word{at: w.At, from: w.From, stay: i})
			}
		}
		out = append(out, word{at: max(0, s.From.Add(-o.Notice)), from: s.From, stay: i, wanted: true})
	}
	slices.SortStableFunc(out, func(a, b word) int { return cmp.Compare(a.at, b.at) })
	return out
}

// word is what is announced of a stay at an instant; wanted: what runs there is preempted for it.
type word struct {
	at, from quantity.Instant
	stay     int
	wanted   bool
}

// slice is one slice as its fillers see it.
type slice struct {
	number int32
	class  uint8
	stays  []hostwork.Stay // from the present or next one on are those from at
	at     int
	host   bool // holds it
	words  []word
	told   map[int]quantity.Instant // when stays to come begin, as last announced
	run    *stint
	job    *filling // that runs
	worker bool     // a worker holds the slice until the host takes it
	alarm  int
}

// filling is one job of the source from its arrival to its end.
type filling struct {
	job     workload.Job
	slot    measure.Slot
	usable  uint64
	kept    int64 // units that are done for good
	began   bool
	attempt int64
}

// known is the first announced end of the present gap, Never if there is none.
func (s *slice) known() quantity.Instant {
	end := quantity.Never
	for stay, from := range s.told {
		if stay >= s.at {
			end = min(end, from)
		}
	}
	return end
}

// pass is when the host next looks at the gap at or after an instant; Never if no walltime is short enough by then.
func (o *Options) pass(s *slice, at quantity.Instant) quantity.Instant {
	end := s.known()
	if o.Discipline.Pass == 0 || end == quantity.Never {
		return at
	}
	every := quantity.Instant(o.Discipline.Pass)
	if next := (at + every - 1) / every * every; next < end {
		return next
	}
	return quantity.Never
}

// worth is the work of the units before n: differences add up to the job's exactly.
func worth(j *workload.Job, n int64) time.Duration {
	return time.Duration(quantity.MulDiv(int64(j.Work), n, j.Units))
}

// before is what passes before a run's first unit.
func (f *filling) before() time.Duration {
	if f.kept > 0 {
		return f.job.Start() + f.job.Restore
	}
	return f.job.Start()
}
