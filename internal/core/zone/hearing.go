package zone

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/trp"
)

// Lengths of windows and needs of jobs.
const (
	// open is the length of a window without a known end.
	open = time.Duration(math.MaxInt64 - 1)
	// never is the need of a job that can use no window of a class.
	never = time.Duration(math.MaxInt64)
)

// maxClasses bounds the classes that answers are kept for; with more of them every job is asked each time.
const maxClasses = 64

// class is slices that are alike to every job.
type class struct {
	at       int
	capacity trp.Vector
	profile  string
	// pace is the speed of the slices, in parts per thousand.
	pace int64
	// slices there are of it, and usable ones among them.
	slices, usable int
	// before is the policy's order on this class.
	before ranking.Order[*state]
	// given are the latest windows that somebody got, a ring; gifts counts them.
	given [mostGiven]given
	gifts int
}

// speed is how fast a job runs on slices of the class, in parts per thousand; 0 if it can not.
func (c *class) speed(spec *job.Spec) int64 { return spec.SpeedOn(c.profile, c.pace) }

// classOf finds or makes the class of a slice. Of a new one no job has an answer yet.
func (z *Zone) classOf(s *protocol.Slice) *class {
	for _, c := range z.classes {
		if c.capacity == s.Capacity && c.pace == s.Speed && c.profile == s.Profile {
			return c
		}
	}
	c := &class{at: len(z.classes), capacity: s.Capacity, profile: s.Profile, pace: s.Speed}
	c.before = func(a, b *state) int {
		a.key.Laxity, b.key.Laxity = a.answers[c.at].laxity, b.answers[c.at].laxity
		return z.cfg.Policy.Compare(&a.key, &b.key)
	}
	z.classes = append(z.classes, c)
	if i, known := slices.BinarySearchFunc(z.paces, c.pace, func(a, b int64) int { return cmp.Compare(b, a) }); !known {
		z.paces = slices.Insert(z.paces, i, c.pace)
	}
	for _, s := range z.live {
		z.touch(s)
	}
	return c
}

// classify notes of which class a slice is.
func (z *Zone) classify(s *slice, c *class) {
	if s.class == c {
		return
	}
	if s.class != nil {
		s.class.slices--
	}
	s.class = c
	c.slices++
}

// hearing is how a job answers windows, as far as that is kept from round to round.
type hearing struct {
	// touched: what is kept may no longer be true. lined: it is in the line of rigid jobs.
	touched, lined bool
	// indexed jobs answer from what is kept; the others, at loud - 1 in that list, are asked each time.
	indexed bool
	loud    int
	// ranked jobs are in the rankings of their group, with key as what they are compared by.
	ranked bool
	group  *group
	key    policy.Candidate
	// deaf is why an indexed job does not answer at all, interested if it does.
	deaf reason
	// answers by class.
	answers []answer
	// bids: it is interested in the window of the present round.
	bids bool
	// counted is the round up to which its counts are complete.
	counted uint64
}

// answer is what a job says to windows of one class: it is interested from a length on, and to shorter ones it always says
// the same.
type answer struct {
	need    time.Duration
	refusal atomizer.Refusal
	// laxity is that of the present instant plus the instant; the longest time without a deadline.
	laxity time.Duration
	// wall and demand bound every piece of it on this class.
	wall   time.Duration
	demand trp.Vector
}

// group is the ranked jobs of one queue, or of all where queues make no difference to the policy, by class.
type group struct{ rankings []ranking.List[*state] }

func (z *Zone) groupOf(q *queue) *group {
	of := &z.everybody
	if z.cfg.Policy.Motion() == policy.WithinQueue {
		of = &q.group
	}
	if *of == nil {
		*of = &group{}
		z.groups = append(z.groups, *of)
	}
	return *of
}

// listen brings what is kept of the touched jobs up to date.
func (z *Zone) listen(now quantity.Instant) {
	for i := 0; i < len(z.touched); i++ {
		s := z.touched[i]
		z.count(s)
		z.unrank(s)
		if s.loud > 0 {
			z.hush(s)
		}
		s.touched, s.indexed = false, false
		if s.alive > 0 {
			z.hear(now, s)
		}
		if s.Spec.Kind == job.Rigid {
			z.queueUp(s)
		}
		s.counted = z.tally.end()
	}
	clear(z.touched)
	z.touched = z.touched[:0]
}

// hear takes down what a job answers to windows of every class. Jobs whose answers or order move by themselves are asked
// each time: in a queue with a cap, running with room for more, or too long for the longest window there usually is.
func (z *Zone) hear(now quantity.Instant, s *state) {
	s.deaf = z.deafness(now, s)
	if len(z.classes) > maxClasses || s.Spec.External || s.q.Cap > 0 || s.q.kept != nil || len(s.backoff.avoided) > 0 {
		z.cry(s)
		return
	}
	s.indexed = true
	if s.deaf != interested {
		return
	}
	s.answers = slices.Grow(s.answers[:0], len(z.classes))[:len(z.classes)]
	useful := false
	for i, c := range z.classes {
		a, ok := z.answer(s, c)
		if !ok || a.need != never && len(s.Claims)+s.asking > 0 {
			s.indexed = false
			z.cry(s)
			return
		}
		s.answers[i] = a
		useful = useful || a.need != never
	}
	if !useful {
		return
	}
	s.key = policy.Candidate{
		Job: s.Job, Priority: s.Spec.Priority, Submitted: s.Submitted, Attained: s.Attained, Weight: 1,
	}
	s.group, s.ranked = z.groupOf(s.q), true
	for len(s.group.rankings) < len(z.classes) {
		s.group.rankings = append(s.group.rankings, ranking.List[*state]{})
	}
	for i, c := range z.classes {
		if s.answers[i].need != never {
			s.group.rankings[i].Insert(c.before, s.answers[i].need, s)
		}
	}
}

func (z *Zone) unrank(s *state) {
	if !s.ranked {
		return
	}
	for i := range s.answers {
		if s.answers[i].need != never {
			s.group.rankings[i].Remove(z.classes[i].before, s)
		}
	}
	s.ranked = false
}

// cry makes a job one that is asked each time, hush ends that.
func (z *Zone) cry(s *state) {
	z.loud = append(z.loud, s)
	s.loud = len(z.loud)
}

func (z *Zone) hush(s *state) {
	last := z.loud[len(z.loud)-1]
	z.loud[s.loud-1], last.loud = last, s.loud
	z.loud[len(z.loud)-1] = nil
	z.loud = z.loud[:len(z.loud)-1]
	s.loud = 0
}

// answer finds what a job says to windows of a class; ok is false if that is not simple enough to keep. What it needs is
// not computed but found by asking the atomizer itself, with windows of different length: its answer is monotone in the
// length, and grid, checkpoint and the end of the work make a formula wrong in a few cases of a hundred.
func (z *Zone) answer(s *state, c *class) (a answer, ok bool) {
	a = answer{need: never, laxity: z.laxity(s, c, 0)}
	v := s.view()
	ask := func(d time.Duration) (atomizer.Piece, atomizer.Refusal) {
		end := quantity.Instant(d)
		if d == open {
			end = quantity.Never
		}
		return atomizer.Fit(&v, atomizer.Window{Capacity: c.capacity, Speed: c.speed(s.Spec), End: end})
	}
	switch {
	case gang(s.Spec):
		a.refusal = placed(s.Spec)
		return a, true
	case s.Spec.Kind == job.Rigid:
		p, r := ask(open)
		if r.Why != atomizer.Interested {
			a.refusal = r
			return a, true
		}
		_, a.refusal = ask(0)
		a.need, a.wall, a.demand = p.Length, p.Wall, p.Demand
		if s.Spec.Walltime == 0 {
			a.need = open
		}
		return a, true
	}
	// What no window is long enough for is refused as unsafe, barred or out of work in every window.
	yes := func(d time.Duration) bool { _, r := ask(d); return r.Why == atomizer.Interested }
	if _, a.refusal = ask(0); a.refusal.Why != atomizer.TooShort {
		return a, true
	}
	longest, guess := z.longest(s), a.refusal.Need
	if guess > longest || !yes(guess) {
		if !yes(longest) {
			return a, false
		}
		guess = 0
	}
	a.need = leastLength(yes, guess, longest)
	if z.cfg.Policy.Motion() == policy.ByUse {
		p, _ := ask(open - 1)
		a.wall, a.demand = p.Wall, p.Demand
		if s.Spec.Kind == job.Items {
			a.demand = c.capacity // a shorter piece may lie elsewhere, where more is needed
		}
	}
	return a, true
}

// leastLength is the least length that is accepted; most is, 0 is not, and so is a guess other than 0, which if it is right
// is confirmed by one question.
func leastLength(yes func(time.Duration) bool, guess, most time.Duration) time.Duration {
	low, high := time.Duration(0), most // low is refused, high accepted
	if guess > 0 {
		if high = guess; !yes(guess - 1) {
			return guess
		}
		high--
	}
	for low+1 < high {
		if middle := low + (high-low)/2; yes(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
