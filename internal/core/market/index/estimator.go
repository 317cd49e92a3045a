package index

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/starts"
)

// Estimator computes what a window or a class of slices is worth to a job, and what the policy sees of it. Invariant: it keeps no state of
// a job, so two questions about an unchanged job have one answer.
type Estimator struct {
	policy policy.Policy
	// indexer is the policy if it has an index, else nil.
	indexer policy.Indexer
	horizon time.Duration
	// corrects: plans of agents are multiplied by what their jobs have shown.
	corrects bool
	board    *window.Board
	starts   starts.Book
}

// NewEstimator is one for a policy and the classes of a board. Windows without a known end are offered as far as the horizon; corrects:
// plans of agents are multiplied by what their jobs have shown.
func NewEstimator(p policy.Policy, horizon time.Duration, corrects bool, board *window.Board) *Estimator {
	indexer, _ := p.(policy.Indexer)
	return &Estimator{policy: p, indexer: indexer, horizon: horizon, corrects: corrects, board: board}
}

// Policy orders jobs. HasIndex says whether it also gives each a number, by which jobs and gangs can be compared.
func (e *Estimator) Policy() policy.Policy { return e.policy }

// HasIndex says whether the policy gives each job a number.
func (e *Estimator) HasIndex() bool { return e.indexer != nil }

// Horizon is how far a window without a known end is offered.
func (e *Estimator) Horizon() time.Duration { return e.horizon }

// Fit asks the job's atomizer what it would do with [start, end) of a slice of a class, with the queue's bound on windows
// applied.
func (e *Estimator) Fit(j *Job, c *window.Class, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	if Wide(j.Spec()) {
		return atomizer.Piece{}, RefuseWide(j.Spec())
	}
	v, offered := j.View(), e.Window(j, c, start, end)
	p, r := atomizer.Fit(&v, offered)
	if r.Why == atomizer.TooShort && j.Spec().Divisible() && offered.End.Sub(offered.Start) >= e.Longest(j) {
		v.Hopeful = true
		return atomizer.Fit(&v, offered)
	}
	return p, r
}

// Wide reports whether a job needs several slices at once: no window holds it, and the floor's owner places it.
func Wide(spec *job.Spec) bool { return spec.Kind == job.Rigid && spec.Slices > 1 }

// RefuseWide is why a rigid job of several slices answers no window: it is placed.
func RefuseWide(spec *job.Spec) atomizer.Refusal {
	return atomizer.Refusal{Why: atomizer.TooShort, Need: spec.Walltime}
}

// Longest is the longest window a job can be offered.
func (e *Estimator) Longest(j *Job) time.Duration {
	if _, most := j.Queue(); most > 0 {
		return min(e.horizon, most)
	}
	return e.horizon
}

// Cut is what the job's atomizer cuts from [start, end) of a slice to be sold now.
func (e *Estimator) Cut(j *Job, s *window.Slice, start, end quantity.Instant) (atomizer.Piece, atomizer.Refusal) {
	if j.Spec().Divisible() {
		v := j.View()
		v.Start = e.startOn(j, s, &v)
		p, r := atomizer.Fit(&v, e.Within(j, s, start, end))
		if r.Why == atomizer.Interested {
			p.Resident = v.Start != nil && v.Start.Resident
			return p, r
		}
	}
	return e.Fit(j, s.Class(), start, end)
}

// unseen is what the beginning of a subjob in a program that is there is taken to cost until one was seen.
const unseen = 100 * time.Millisecond

// startOn is what a start of a job takes on a slice, where its program stays there or where the machine has taught it; nil: neither.
func (e *Estimator) startOn(j *Job, s *window.Slice, v *atomizer.View) *atomizer.Start {
	spec := j.Spec()
	if !spec.Resident {
		return nil
	}
	family := spec.Family(j.Name())
	if r := s.Resident(); r != nil && r.Number == j.Residence() {
		took, known := e.starts.Resident(family, s.Node())
		if !known {
			took = unseen
		}
		return &atomizer.Start{Prepare: took, Resident: true}
	}
	if took, known := e.starts.Cold(family, s.Node()); known {
		return &atomizer.Start{Prepare: v.Prepare(), Process: took}
	}
	return nil
}

// Started teaches how a subjob of a job began on a node.
func (e *Estimator) Started(j *Job, on job.NodeID, r *job.Result) {
	if spec := j.Spec(); spec.Resident {
		e.starts.Learn(spec.Family(j.Name()), on, r)
	}
}

// Within is what a job sees of [start, end) of a slice for a piece that is to be sold: its Window, and, of a gap that may end sooner where
// the job would lose its work, no more than is likely to last; but never less than its shortest useful piece, so that learned ends shorten
// pieces and never make a job ineligible.
func (e *Estimator) Within(j *Job, s *window.Slice, start, end quantity.Instant) atomizer.Window {
	w := e.Window(j, s.Class(), start, end)
	if safe := s.Safe(start); safe < w.End && j.Spec().Divisible() && j.Loses() {
		if safe = max(safe, start.Add(e.least(j, s.Class()))); safe < w.End {
			w.End, w.Open = safe, true
		}
	}
	return w
}

// least is the shortest window of a class that a job can use, by its atomizer: the same whether the index has it or not, or what a job is
// cut would depend on what the index happened to know. Where no window that a job can be offered is long enough it is the longest.
func (e *Estimator) least(j *Job, c *window.Class) time.Duration {
	if need, ok := j.need(c); ok {
		return need
	}
	v, longest := j.View(), e.Longest(j)
	yes := func(d time.Duration) bool {
		_, r := atomizer.Fit(&v, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), End: quantity.Instant(d)})
		return r.Why == atomizer.Interested
	}
	guess := atomizer.LeastWindow(&v, max(1, c.SpeedOf(j.Spec())))
	if guess > longest || !yes(guess) {
		guess = 0
	}
	if guess == 0 && !yes(longest) {
		return longest
	}
	return leastLength(yes, guess, longest)
}

// Window is what a job sees of [start, end): bounded by its queue's maxWindow and, where no end is known, the horizon.
func (e *Estimator) Window(j *Job, c *window.Class, start, end quantity.Instant) atomizer.Window {
	known := end
	rigid := j.Spec().Kind == job.Rigid
	if end == quantity.Never && !rigid {
		end = start.Add(e.horizon)
	}
	if _, most := j.Queue(); most > 0 && !rigid {
		end = min(end, start.Add(most))
	}
	return atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec()), Start: start, End: end, Open: end < known}
}

// Candidate is what the policy sees of a job that could use [now, end) of a slice of a class.
func (e *Estimator) Candidate(now quantity.Instant, j *Job, c *window.Class, end quantity.Instant, p *atomizer.Piece) policy.Candidate {
	own, queue, weight := j.Use(now)
	offered := e.Window(j, c, now, end)
	return policy.Candidate{
		Job: j.Name(), Priority: j.Spec().Priority, Submitted: j.Submitted(), Attained: own, QueueAttained: queue,
		Weight: weight, Laxity: e.Laxity(j, c, now), Index: e.Index(j, c),
		Used:    policy.MiB(p.Demand) * p.Wall.Milliseconds(),
		Offered: policy.MiB(c.Capacity) * max(1, offered.End.Sub(offered.Start).Milliseconds()),
	}
}

// Contends is what the policy sees of a job that waits for slices of a class.
func (e *Estimator) Contends(now quantity.Instant, j *Job, c *window.Class) (policy.Candidate, bool) {
	if j.Ineligible(now) != explain.Eligible {
		return policy.Candidate{}, false
	}
	end := now.Add(e.horizon)
	if j.Spec().Kind == job.Rigid {
		end = quantity.Never
	}
	p, refusal := e.Fit(j, c, now, end)
	if refusal.Why != atomizer.Interested {
		return policy.Candidate{}, false
	}
	return e.Candidate(now, j, c, end, &p), true
}

// Laxity is the time to the owner's deadline less the run time still needed on a class; the longest time without one.
func (e *Estimator) Laxity(j *Job, c *window.Class, now quantity.Instant) time.Duration {
	d, speed := j.Deadline(), c.SpeedOf(j.Spec())
	if d == quantity.Never || speed == 0 {
		return time.Duration(math.MaxInt64)
	}
	return d.Sub(now) - runTime(j, speed)
}

// Finish is when a job would end if it went on without a pause on slices of a class, from now on.
func (e *Estimator) Finish(j *Job, c *window.Class, now quantity.Instant) quantity.Instant {
	speed := c.SpeedOf(j.Spec())
	if speed == 0 {
		return quantity.Never
	}
	return now.Add(runTime(j, speed))
}

// runTime is what the work of a job that is not done takes at a speed above 0.
func runTime(j *Job, speed int64) time.Duration {
	if j.Spec().Kind == job.Rigid {
		return j.Spec().WalltimeAt(speed)
	}
	v := j.View()
	return v.RunTime(v.Ahead(), speed)
}

// Index is what the policy makes of a job on a class of slices, 0 if it can't run there or the policy has no index: what it costs to
// find is then not spent.
func (e *Estimator) Index(j *Job, c *window.Class) int64 {
	if e.indexer == nil {
		return 0
	}
	if o, runs := e.outlook(j, c); runs {
		return e.indexer.Index(o)
	}
	return 0
}

// GangIndex is the policy's index of one slice of a gang, on a class, where the gang runs at a speed, in parts per thousand: each slice has
// its part of the worth of finishing the gang. So gangs and jobs that windows are for are in one order (adr 0031). 0 without an index or a
// speed.
func (e *Estimator) GangIndex(spec *job.Spec, c *window.Class, speed int64) int64 {
	if e.indexer == nil || speed == 0 {
		return 0
	}
	return e.indexer.Index(policy.Outlook{
		Worth: worth(spec) / int64(max(1, spec.Slices)), Left: e.rigidLeft(spec, speed),
		Advantage: quantity.MulDiv(speed, 1_000_000, max(1, c.Speed)), Best: e.bestAdvantage(spec),
	})
}

// outlook of a job on a class that it can run on. It changes with the job alone.
func (e *Estimator) outlook(j *Job, c *window.Class) (o policy.Outlook, runs bool) {
	spec := j.Spec()
	speed := c.SpeedOf(spec)
	if speed == 0 {
		return policy.Outlook{}, false
	}
	return policy.Outlook{Worth: worth(spec), Left: e.left(j, speed), Advantage: advantage(c, spec), Best: e.bestAdvantage(spec)}, true
}

// left is the time that what is unsold of a job takes at a speed above 0.
func (e *Estimator) left(j *Job, speed int64) time.Duration {
	spec := j.Spec()
	if spec.Kind == job.Rigid {
		return e.rigidLeft(spec, speed)
	}
	v := j.View()
	return time.Duration(quantity.MulDiv(int64(v.RunTime(v.Left(), speed)), e.Slowdown(j, &v), 1000))
}

// rigidLeft is the same of a rigid job.
func (e *Estimator) rigidLeft(spec *job.Spec, speed int64) time.Duration {
	if spec.Walltime == 0 {
		return e.horizon // nobody knows: neither before all others nor for ever behind them
	}
	return spec.WalltimeAt(speed)
}

const (
	// leastPaced is how many subjobs must have been observed before an agent's run times are corrected.
	leastPaced = 3
	// mostSlowdown bounds the correction, in parts per thousand.
	mostSlowdown = 4000
)

// Slowdown is what a plan of a job is multiplied by, in parts per thousand: that of an agent's job by how much longer its subjobs have
// taken than planned so far. Built-in kinds plan with what they have learned already.
func (e *Estimator) Slowdown(j *Job, v *atomizer.View) int64 {
	p := &v.Learned.Trust
	if !e.corrects || !j.Spec().External || p.Seen < leastPaced {
		return 1000
	}
	return min(max(p.Pace, 1000), mostSlowdown)
}

// advantage of a job on a class is its speed there over the class's own, in millionths: how well it uses the slice.
func advantage(c *window.Class, spec *job.Spec) int64 {
	return quantity.MulDiv(c.SpeedOf(spec), 1_000_000, max(1, c.Speed))
}

// bestAdvantage is the advantage of a job on its best class, at least 1.
func (e *Estimator) bestAdvantage(spec *job.Spec) int64 {
	best := int64(1)
	if len(spec.Speeds) == 0 {
		return 1_000_000 // it runs at each slice's own speed
	}
	for _, c := range e.board.Classes() {
		best = max(best, advantage(c, spec))
	}
	return best
}

// outdoes says whether a job has a greater advantage on the newest class than on all others: its index on those is another now.
func (e *Estimator) outdoes(spec *job.Spec, newest *window.Class) bool {
	classes := e.board.Classes()
	if e.indexer == nil || len(classes) == 1 {
		return false
	}
	best := int64(math.MinInt64)
	for _, c := range classes {
		if c != newest {
			best = max(best, advantage(c, spec))
		}
	}
	return advantage(newest, spec) > best
}

// job1 is what having a job of priority 0 over is worth: so much that the densities of jobs of a year differ still, and those of a
// millisecond and the highest priority stay within 63 bits.
const job1 = 1 << 50

// worth of having a job over, which its priority decides.
func worth(spec *job.Spec) int64 {
	return quantity.MulDiv(job1, Precedence(spec.Priority), Precedence(0))
}

// MostPrecedence bounds the priority that counts, so that sums of weights stay within 62 bits.
const MostPrecedence = 500

// Precedence is what a priority multiplies a bid by, in parts per 1024: a hundred points double it.
func Precedence(priority int32) int64 {
	p := min(max(int64(priority), -MostPrecedence), MostPrecedence) + MostPrecedence
	return (1024 * (100 + p%100) / 100) << (p / 100) >> (MostPrecedence / 100)
}
