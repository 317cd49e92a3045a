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
	// weights of the devices, in thousandths of a whole GPU: times count by them.
	weights []int64
	// waits is how long each stay of the host waited for its device, 0 if nothing was on it.
	waits [][]time.Duration
	book
}

var _ measure.Observer = (*ledger)(nil)

func newLedger(host hostwork.Log, weights []int64, notice time.Duration, from, until quantity.Instant) *ledger {
	hours := int((until.Sub(from) + time.Hour - 1) / time.Hour)
	l := &ledger{host: host, weights: weights, notice: notice, from: from, until: until, waits: make([][]time.Duration, len(host)),
		book: book{ByHour: make([]time.Duration, hours), GapByHour: make([]time.Duration, hours),
			ByDevice: make([]time.Duration, len(host)), GapByDevice: make([]time.Duration, len(host))}}
	for i := range host {
		l.waits[i] = make([]time.Duration, len(host[i]))
	}
	return l
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
		return l.weighed(p.First, time.Duration(quantity.MulDiv(int64(of), int64(part), whole)))
	}
	held := to.Sub(from)
	useful, overhead := share(p.Useful, held), share(p.Overhead, held)
	l.Useful += useful
	l.Overhead += overhead
	l.Lost += max(0, l.weighed(p.First, held)-useful-overhead)
	l.ByDevice[p.First] += useful
	for at := from; at < to; {
		hour := at.Sub(l.from) / time.Hour
		next := min(to, l.from.Add((hour+1)*time.Hour))
		l.ByHour[hour] += share(p.Useful, next.Sub(at))
		at = next
	}
}

// weighed is a time on a device as time of a whole GPU.
func (l *ledger) weighed(device int32, long time.Duration) time.Duration {
	return time.Duration(quantity.MulDiv(int64(long), l.weights[device], wholeGPU))
}

// delay books how long a run kept its device after the host had asked for it, which is a notice before the host has it here. A stay waits
// for the last of several runs that were there within its notice. Who closes a device for maintenance is no user.
func (l *ledger) delay(p *measure.Piece) {
	stays := l.host[p.First]
	i, _ := slices.BinarySearchFunc(stays, p.Start, func(s hostwork.Stay, t quantity.Instant) int {
		if s.From <= t {
			return -1
		}
		return 1
	})
	if i == len(stays) || stays[i].Source == closed || stays[i].From < l.from || stays[i].From >= l.until {
		return
	}
	asked := stays[i].From.Add(-l.notice)
	if i > 0 {
		asked = max(asked, stays[i-1].To)
	}
	was := &l.waits[p.First][i]
	if wait := p.End.Sub(asked); wait > *was {
		if *was == 0 {
			l.Met++
		}
		l.Waited += wait - *was
		l.Longest = max(l.Longest, wait)
		*was = wait
	}
}

// free books the gaps that a run had.
func (l *ledger) free() {
	for _, g := range l.host.Gaps(l.from, l.until) {
		l.GapByDevice[g.Slice] += l.weighed(g.Slice, g.To.Sub(g.From))
		for at := g.From; at < g.To; {
			hour := at.Sub(l.from) / time.Hour
			next := min(g.To, l.from.Add((hour+1)*time.Hour))
			l.GapByHour[hour] += l.weighed(g.Slice, next.Sub(at))
			at = next
		}
	}
	for _, stays := range l.host {
		for _, s := range stays {
			if s.Source != closed && s.From >= l.from && s.From < l.until {
				l.Starts++
			}
		}
	}
}
