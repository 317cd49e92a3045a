package forecast

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// ledger books what runs of fillers came to on hours and devices of a stretch. It implements measure.Observer.
type ledger struct {
	host        hostwork.Log
	notice      time.Duration
	from, until quantity.Instant
	// byHour of the stretch and byDevice of its lot is useful time; lost and overhead are over all.
	byHour   []time.Duration
	byDevice []time.Duration
	useful   time.Duration
	lost     time.Duration
	overhead time.Duration
	// waited is how long the host's starts waited for their devices, longest the longest; met how many found a run that had to go.
	waited, longest time.Duration
	met             int64
}

var _ measure.Observer = (*ledger)(nil)

func newLedger(host hostwork.Log, notice time.Duration, from, until quantity.Instant) *ledger {
	return &ledger{host: host, notice: notice, from: from, until: until, byDevice: make([]time.Duration, len(host)),
		byHour: make([]time.Duration, int((until.Sub(from)+time.Hour-1)/time.Hour))}
}

// Arrived, Began, Done and Sent book nothing.
func (l *ledger) Arrived(quantity.Instant, measure.Slot, *workload.Job) {}

// Began books nothing.
func (l *ledger) Began(quantity.Instant, measure.Slot, uint8, int32) {}

// Done books nothing.
func (l *ledger) Done(quantity.Instant, measure.Slot, job.State) {}

// Sent books nothing.
func (l *ledger) Sent(int) {}

// Ended books a run: its parts are spread evenly over its time, of which what lies outside the stretch is left out.
func (l *ledger) Ended(_ quantity.Instant, p *measure.Piece) {
	l.delay(p)
	from, to := max(p.Start, l.from), min(p.End, l.until)
	if to <= from {
		return
	}
	whole := int64(p.End.Sub(p.Start))
	share := func(of time.Duration, part time.Duration) time.Duration {
		return time.Duration(quantity.MulDiv(int64(of), int64(part), whole))
	}
	held := to.Sub(from)
	useful, overhead := share(p.Useful, held), share(p.Overhead, held)
	l.useful += useful
	l.overhead += overhead
	l.lost += max(0, held-useful-overhead)
	l.byDevice[p.First] += useful
	for at := from; at < to; {
		hour := at.Sub(l.from) / time.Hour
		next := min(to, l.from.Add((hour+1)*time.Hour))
		l.byHour[hour] += share(p.Useful, next.Sub(at))
		at = next
	}
}

// delay books how long a run kept its device after the host had asked for it, which is a notice before the host has it here.
func (l *ledger) delay(p *measure.Piece) {
	stays := l.host[p.First]
	i, _ := slices.BinarySearchFunc(stays, p.Start, func(s hostwork.Stay, t quantity.Instant) int {
		if s.From <= t {
			return -1
		}
		return 1
	})
	if i == len(stays) || stays[i].From < l.from || stays[i].From >= l.until {
		return
	}
	if asked := max(p.Start, stays[i].From.Add(-l.notice)); p.End > asked {
		l.met++
		l.waited += p.End.Sub(asked)
		l.longest = max(l.longest, p.End.Sub(asked))
	}
}
