package measure

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// Gap is time in which the host leaves a slice to others.
type Gap struct {
	Slice    int32
	From, To quantity.Instant
}

// Usable is the part of a gap in which a filler could work that pays this much for beginning there and leaving.
func (g Gap) Usable(cost time.Duration) time.Duration { return max(0, g.To.Sub(g.From)-cost) }

// Leftover is the Observer of fillers' use of a host's gaps. Every run of a filler holds one slice.
type Leftover struct {
	window  Window
	weights []int64 // of a slice, by its number
	gaps    []Gap
	starts  [][]quantity.Instant
	cost    time.Duration

	useful, lost area
	delay        area
	running      []int32 // runs of the job in a slot
	waiting      int
	dry          time.Duration
	now          quantity.Instant
}

var _ Observer = (*Leftover)(nil)

// NewLeftover measures over a window with an end. weights are those of the slices by number, gaps the host's within the window,
// starts when it takes each slice, in order; cost is the least that a filler spends on starting, restoring and leaving a checkpoint.
func NewLeftover(w Window, weights []int64, gaps []Gap, starts [][]quantity.Instant, cost time.Duration) *Leftover {
	return &Leftover{window: w, weights: weights, gaps: gaps, starts: starts, cost: cost, now: w.From}
}

// advance counts the time in which nobody waited.
func (l *Leftover) advance(at quantity.Instant) {
	at = min(at, l.window.To)
	if at <= l.now {
		return
	}
	if l.waiting == 0 {
		l.dry += at.Sub(l.now)
	}
	l.now = at
}

// Arrived implements Observer.
func (l *Leftover) Arrived(at quantity.Instant, s Slot, _ *workload.Job) {
	l.advance(at)
	for int(s) >= len(l.running) {
		l.running = append(l.running, 0)
	}
	l.running[s] = 0
	l.waiting++
}

// Began implements Observer.
func (l *Leftover) Began(at quantity.Instant, s Slot, _ uint8, _ int32) {
	l.advance(at)
	if l.running[s] == 0 {
		l.waiting--
	}
	l.running[s]++
}

// Ended implements Observer.
func (l *Leftover) Ended(at quantity.Instant, p *Piece) {
	l.advance(at)
	if l.running[p.Slot]--; l.running[p.Slot] == 0 {
		l.waiting++
	}
	l.late(p)
	from, to := max(p.Start, l.window.From), min(p.End, l.window.To)
	if to <= from {
		return
	}
	whole, part := int64(p.End.Sub(p.Start)), int64(to.Sub(from))
	weight := l.weights[p.First]
	useful := quantity.MulDiv(int64(p.Useful), part, whole)
	overhead := quantity.MulDiv(int64(p.Overhead), part, whole)
	l.useful.add(weight, useful)
	l.lost.add(weight, max(0, part-useful-overhead)) // shares are rounded up
}

// late counts how long a run held its slice after the host was to have it.
func (l *Leftover) late(p *Piece) {
	starts := l.starts[p.First]
	i, _ := slices.BinarySearch(starts, p.Start+1)
	if i < len(starts) && starts[i] < p.End && starts[i] >= l.window.From && starts[i] < l.window.To {
		l.delay.add(1, int64(p.End.Sub(starts[i])))
	}
}

// Done implements Observer.
func (l *Leftover) Done(at quantity.Instant, _ Slot, _ job.State) {
	l.advance(at)
	l.waiting--
}

// Sent implements Observer.
func (l *Leftover) Sent(int) {}

// Set gives the metrics; the run is over.
func (l *Leftover) Set(values *Metrics) {
	l.advance(l.window.To)
	var usable, length area
	for _, g := range l.gaps {
		usable.add(l.weights[g.Slice], int64(g.Usable(l.cost)))
		length.add(1, int64(g.To.Sub(g.From)))
	}
	taken := 0
	for _, starts := range l.starts {
		for _, at := range starts {
			if at >= l.window.From && at < l.window.To {
				taken++
			}
		}
	}
	second := float64(time.Second)
	values.Set(LeftoverUseful, ratio(l.useful.float(), usable.float()))
	values.Set(LostWork, ratio(l.lost.float(), l.lost.float()+l.useful.float()))
	values.Set(HostDelayMean, ratio(l.delay.float()/second, float64(taken)))
	values.Set(GapMean, ratio(length.float()/second, float64(len(l.gaps))))
	values.Set(Gaps, float64(len(l.gaps)))
	values.Set(BacklogDry, ratio(float64(l.dry), float64(l.window.To.Sub(l.window.From))))
}

// Visits is what became of guests over the whole run: how many came, were served, and left since they had waited too long; and how long
// those who were served waited, together.
type Visits struct {
	Came, Served, Left int64
	Waited             time.Duration
}

// Set gives the metrics.
func (v *Visits) Set(m *Metrics) {
	m.Set(GuestsServed, float64(v.Served))
	m.Set(GuestsLeft, float64(v.Left))
	if v.Served > 0 {
		m.Set(GuestWaitMean, v.Waited.Seconds()/float64(v.Served))
	}
}
