package measure

import (
	"errors"
	"fmt"
	"math"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// MaxClasses bounds the classes of slices.
const MaxClasses = 64

// Bound is the least run time by which a slowdown is divided, so that jobs of no length do not decide the mean.
const Bound = 10 * time.Second

// Config says what is measured.
type Config struct {
	// Classes are the slices that there are, up to MaxClasses.
	Classes []Class
	Window  Window
	// Usable gives the classes on which a job could run as a whole, as a set of bits: its memory is safe there and its owner
	// allows it. It is what makes an idle slice a fragment, and has to be the same function for every mechanism compared.
	Usable func(*workload.Job) uint64
}

// kind of a job, to the typical tasks of FGD: where it could run, and on how many slices at once.
type kind struct {
	usable uint64
	slices int32
}

// queue is what its jobs got.
type queue struct {
	name    string
	n       int64
	stretch float64
}

// Collector is the Observer behind the metrics. Its memory grows with the number of slices, of live jobs, of queues and
// of kinds of jobs, and not with the length of the run; in steady state it does not allocate. It is deterministic: the
// same events give the same metrics. Not safe for concurrent use.
type Collector struct {
	config  Config
	from    quantity.Instant
	to      quantity.Instant
	now     quantity.Instant
	jobs    []live
	queues  []queue
	queueOf map[string]int32
	kinds   map[kind]int64
	groups  groups

	waiting     int64 // jobs that hold no slice
	stock       stock
	ends        ends
	spent       spent
	messages    int64
	first, last quantity.Instant
	done        bool
}

// ends is what became of the jobs that count. Invariant: every one of them that is settled is finished, failed, rejected or unfinished.
type ends struct {
	wait, completion                       *histogram
	slowdown, stretch                      float64 // sums
	longest                                time.Duration
	worst                                  float64 // of all stretches
	arrived, submitted, began              int64   // arrived counts all jobs, in the window or not
	finished, failed, rejected, unfinished int64
	runs                                   int64
	due, missed                            int64 // jobs with a deadline
}

// spent is what runs made of their slices in the window. Invariant: busy is useful, overhead and lost together, but for what is rounded.
type spent struct {
	pieces, excesses, theta                  int64
	busy, useful, overhead, lost, peak, work area
}

var _ Observer = (*Collector)(nil)

// New makes a collector. An error is of kind Invalid and lists every problem of the configuration.
func New(c Config) (*Collector, error) {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if n := len(c.Classes); n == 0 || n > MaxClasses {
		add("classes: %d given; want 1 to %d", n, MaxClasses)
	}
	for i, k := range c.Classes {
		if k.Count < 1 || k.Weight < 1 || k.Memory < 0 {
			add("class %d (%q): count %d, weight %d, memory %d; want at least 1, 1 and 0", i, k.Name, k.Count, k.Weight, k.Memory)
		}
	}
	if c.Window.To != 0 && c.Window.To <= c.Window.From {
		add("window: it ends at %d and begins at %d; want an end after its beginning, or 0 for the end of the run", c.Window.To,
			c.Window.From)
	}
	if c.Usable == nil {
		add("usable: no function given; fragmentation needs to know where a job could run")
	}
	if len(problems) > 0 {
		return nil, errkind.Errorf(errkind.Invalid, "metrics: %w", errors.Join(problems...))
	}
	m := &Collector{
		config: c, from: c.Window.From, to: c.Window.To, queueOf: map[string]int32{}, kinds: map[kind]int64{},
		ends: ends{wait: newHistogram(), completion: newHistogram()}, first: quantity.Never, stock: newStock(c.Classes),
		now: math.MinInt64 / 2, // before everything, and no difference to it overflows
	}
	if m.to == 0 {
		m.to = quantity.Never
	}
	return m, nil
}

// within is how much of the window has passed at t.
func (m *Collector) within(t quantity.Instant) time.Duration {
	return max(0, min(t, m.to).Sub(m.from))
}

// advance goes to the time of an event.
func (m *Collector) advance(at quantity.Instant) {
	if at == m.now {
		return
	}
	if at < m.now || m.done {
		invariant.Check(false, "metrics: told of an event at %d after %d (finished: %t)", at, m.now, m.done)
	}
	if m.waiting > 0 {
		m.stock.unsold.add(m.stock.weight, int64(m.within(at)-m.within(m.now)))
	}
	m.now = at
}

// job is the live job in a slot.
func (m *Collector) job(s Slot) *live {
	if s < 0 || int(s) >= len(m.jobs) || !m.jobs[s].known {
		invariant.Check(false, "metrics: slot %d holds no job", s)
	}
	return &m.jobs[s]
}

// Arrived counts a job among those that wait.
func (m *Collector) Arrived(at quantity.Instant, s Slot, j *workload.Job) {
	m.advance(at)
	for int(s) >= len(m.jobs) {
		m.jobs = append(m.jobs, live{})
	}
	if m.jobs[s].known {
		invariant.Check(false, "metrics: slot %d is given to job %d before its last one is done", s, j.Number)
	}
	counted := at >= m.from && at < m.to
	m.jobs[s] = live{known: true, counted: counted, queue: m.queue(j.Queue), group: m.groups.number(j.Group), submit: at, work: j.Work,
		theta: j.Theta}
	if j.Deadline != quantity.Never {
		m.jobs[s].deadline = j.Deadline
	}
	m.first = min(m.first, at)
	m.waiting++
	m.ends.arrived++
	if counted {
		if g := m.groups.of(&m.jobs[s]); g != nil {
			g.jobs++
		}
		m.ends.submitted++
		m.kinds[kind{usable: m.config.Usable(j), slices: int32(max(j.Slices, 1))}]++
	}
}

// queue numbers a queue by its name.
func (m *Collector) queue(name string) int32 {
	q, ok := m.queueOf[name]
	if !ok {
		q = int32(len(m.queues))
		m.queueOf[name] = q
		m.queues = append(m.queues, queue{name: name})
	}
	return q
}

// Began ends a job's wait and takes its slices from the idle ones.
func (m *Collector) Began(at quantity.Instant, s Slot, class uint8, n int32) {
	m.advance(at)
	j := m.job(s)
	if !j.began {
		j.began = true
		if j.counted {
			m.ends.began++
			m.waited(at, j)
		}
	}
	if j.running == 0 {
		j.since = at
		m.waiting--
	}
	j.running++
	j.runs++
	m.stock.take(m.within(at), class, n)
}

// Ended counts what a run did; its time is shared out evenly over its length where only part of it is in the window.
func (m *Collector) Ended(at quantity.Instant, p *Piece) {
	m.advance(at)
	j := m.job(p.Slot)
	j.running--
	if j.running < 0 {
		invariant.Check(false, "metrics: a run of slot %d ended that never began", p.Slot)
	}
	if j.running == 0 {
		j.held += at.Sub(j.since)
		m.waiting++
	}
	m.stock.take(m.within(at), p.Class, -p.Slices)
	m.last = max(m.last, at)

	if p.Start >= m.from && p.Start < m.to {
		m.spent.pieces++
		m.spent.theta += j.theta
		if p.Excess {
			m.spent.excesses++
		}
	}
	whole, part := int64(p.End.Sub(p.Start)), int64(m.within(p.End)-m.within(p.Start))
	if part <= 0 {
		return
	}
	share := func(d time.Duration) int64 {
		if part == whole {
			return int64(d)
		}
		return quantity.MulDiv(int64(d), part, whole)
	}
	class := &m.config.Classes[p.Class]
	n, weight := int64(p.Slices), int64(p.Slices)*class.Weight
	m.spent.busy.add(weight, part)
	useful, overhead := share(p.Useful), share(p.Overhead)
	m.spent.useful.add(weight, useful)
	m.spent.overhead.add(weight, overhead)
	m.spent.lost.add(weight, max(0, part-useful-overhead)) // shares are rounded up
	m.spent.peak.add(n*int64(min(p.Peak, class.Memory)), part)
	m.spent.work.add(n, share(p.Work))
	if g := m.groups.of(j); g != nil {
		g.work.add(n, share(p.Work))
		g.held.add(weight, part)
	}
}

// waited counts the wait of a job that begins, or comes to an end without.
func (m *Collector) waited(at quantity.Instant, j *live) {
	d := at.Sub(j.submit)
	m.ends.wait.add(d)
	if g := m.groups.of(j); g != nil {
		g.waits++
		g.wait.add(1, int64(d))
	}
}

// Done settles a job and forgets it.
func (m *Collector) Done(at quantity.Instant, s Slot, state job.State) {
	m.advance(at)
	j := m.job(s)
	if j.running != 0 {
		invariant.Check(false, "metrics: slot %d is done while %d of its runs hold slices", s, j.running)
	}
	m.waiting--
	if j.counted {
		m.settle(at, j, state)
	}
	m.last = max(m.last, at)
	j.known = false
}

// settle counts a job that has come to its end, or to the end of the run.
func (m *Collector) settle(at quantity.Instant, j *live, state job.State) {
	m.ends.runs += int64(j.runs)
	if state == job.Impossible {
		m.ends.rejected++
		return
	}
	if !j.began {
		m.waited(at, j)
	}
	if j.deadline != 0 && (state != job.Waiting || j.deadline <= at) { // what may still keep it is not counted
		m.ends.due++
		if state != job.Finished || at > j.deadline {
			m.ends.missed++
		}
	}
	took := at.Sub(j.submit)
	switch {
	case state == job.Finished:
		m.ends.finished++
		m.ends.slowdown += max(1, float64(took)/float64(max(j.held, Bound)))
	case state.Final():
		m.ends.failed++
		return
	default:
		m.ends.unfinished++
	}
	m.ends.completion.add(took)
	stretch := float64(took) / float64(max(j.work, Bound))
	m.ends.stretch += stretch
	m.ends.longest, m.ends.worst = max(m.ends.longest, took), max(m.ends.worst, stretch)
	q := &m.queues[j.queue]
	q.n++
	q.stretch += stretch
	if g := m.groups.of(j); g != nil {
		g.completed++
		g.completion.add(1, int64(took))
		g.stretch += stretch
		if state != job.Finished {
			g.unfinished++
		}
	}
}

// Sent counts messages.
func (m *Collector) Sent(n int) { m.messages += int64(n) }

// Messages is how many were sent so far.
func (m *Collector) Messages() int64 { return m.messages }
