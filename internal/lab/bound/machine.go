package bound

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// machine is one machine that is as fast as all slices together, under both orders. See completion.
type machine struct {
	v    [MaxClasses]float64
	rate float64 // units of size a second
	// remaining and size are the machine under the shortest remaining time and the shortest size first; rest is the sum of the
	// latter's D_j, in seconds.
	remaining, size line
	rest            float64
}

// add adds a job that can run, submitted submit seconds after the first.
func (m *machine) add(classes []Class, j *Job, submit float64) {
	size, rest := m.measure(classes, j)
	m.rest += rest
	t := task{key: size / m.rate, whole: size / m.rate, left: size / m.rate, submit: submit}
	m.remaining.come(t, true)
	if size > 0 {
		m.size.come(t, false)
	}
}

// sum of the times to completion, in seconds, that no schedule of the cluster betters. Nothing may be added afterwards.
func (m *machine) sum() float64 {
	m.remaining.work(math.Inf(1), true)
	m.size.work(math.Inf(1), false)
	return max(m.remaining.ended, m.size.busy+m.rest)
}

// measure is a job's size at these weights, and D_j, the least time from its mean busy time to its end: its whole time alone if it
// has no size.
func (m *machine) measure(classes []Class, j *Job) (size, rest float64) {
	type filling struct{ size, seconds float64 }
	var few [8]filling
	fill := few[:0]
	alone := 0.
	for i := range j.Parts {
		p := &j.Parts[i]
		if p.Work <= 0 {
			continue
		}
		least, any := 0., false
		for c, class := range classes {
			if class.Count == 0 || p.Speeds[c] == 0 {
				continue
			}
			if x := m.v[c] / speed(p.Speeds[c]); !any || x < least {
				least, any = x, true
			}
		}
		f := filling{p.Work.Seconds() * least, p.Work.Seconds() / (float64(max(j.Width, 1)) * speed(p.bestOf(classes)))}
		size, alone = size+f.size, alone+f.seconds
		fill = append(fill, f)
	}
	if size == 0 {
		return 0, alone
	}
	// From the end back: what gives most size in a second comes last.
	slices.SortFunc(fill, func(a, b filling) int { return cmp.Compare(b.size*a.seconds, a.size*b.seconds) })
	left := 1.
	for _, f := range fill {
		share := f.size / size
		rest += f.seconds * (left - share/2)
		left -= share
	}
	return size, rest
}

// line is a machine that works on the task of the least key. The zero value is empty, at 0 seconds.
type line struct {
	tasks tasks
	now   float64
	// ended is the sum of the times from submission to completion, busy of those to the mean busy time, of what is done.
	ended, busy float64
}

// come works until a task comes, and adds it. shrinks: keys are the remaining work.
func (l *line) come(t task, shrinks bool) {
	l.work(t.submit, shrinks)
	l.now = t.submit
	l.busy -= t.submit
	heap.Push(&l.tasks, t)
}

// work goes on until an instant, or until nothing is left.
func (l *line) work(until float64, shrinks bool) {
	for len(l.tasks) > 0 && l.now < until {
		t := &l.tasks[0]
		d := min(t.left, until-l.now)
		if d > 0 {
			l.busy += (l.now + d/2) * d / t.whole
		}
		l.now += d
		t.left -= d
		if shrinks {
			t.key = t.left // still the least
		}
		if t.left <= 0 {
			l.ended += l.now - t.submit
			heap.Pop(&l.tasks)
		}
	}
}

// task is a job on a machine, in seconds of it.
type task struct{ key, whole, left, submit float64 }

// tasks is a heap with the least key on top.
type tasks []task

func (s tasks) Len() int           { return len(s) }
func (s tasks) Less(i, j int) bool { return s[i].key < s[j].key }
func (s tasks) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// Push is heap.Interface.
func (s *tasks) Push(x any) { *s = append(*s, x.(task)) }

// Pop is heap.Interface.
func (s *tasks) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
