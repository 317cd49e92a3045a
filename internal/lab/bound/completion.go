package bound

import (
	"container/heap"

	"sluice.dev/sluice/internal/core/quantity"
)

// completion bounds the mean time from submission to completion from below, for all jobs that can run somewhere. It is the
// larger of
//
//   - the mean time that each takes alone on its best slices, and
//   - the mean under the shortest remaining time first on one machine that is as fast as all slices together, which is the
//     best schedule for one machine (Schrage, 1968). For weights v_c of the classes the machine has the speed sum of n_c v_c
//     and a job the size of its work times the least v_c/s_c: any schedule of the cluster is one of that machine too. The
//     bound holds for any weights; three are tried: all alike, and the best and the mean speed of the first jobs on the class.
//
// Jobs come in the order of their submission, and only those that the machines have not finished are kept.
type completion struct {
	classes []Class
	first   []Job // until the weights are found
	begin   quantity.Instant
	begun   bool

	machines []machine
	jobs     int
	alone    float64
}

// weighed is how many jobs the weights are found from.
const weighed = 1000

func (c *completion) add(j *Job) {
	alone, runs := 0., len(j.Parts) > 0
	for i := range j.Parts {
		best := j.Parts[i].bestOf(c.classes)
		runs = runs && best > 0
		if runs {
			alone += j.Parts[i].Work.Seconds() / (float64(max(j.Width, 1)) * speed(best))
		}
	}
	if !runs {
		return
	}
	if !c.begun {
		c.begun, c.begin = true, j.Submit
	}
	c.jobs++
	c.alone += alone
	if c.machines != nil {
		c.offer(j)
		return
	}
	c.first = append(c.first, *j)
	if len(c.first) == weighed {
		c.weigh()
	}
}

// weigh makes the machines and gives them the first jobs.
func (c *completion) weigh() {
	var alike, top, mean [MaxClasses]float64
	for i := range alike {
		alike[i] = 1
	}
	for _, j := range c.first {
		for _, p := range j.Parts {
			for i := range c.classes {
				top[i] = max(top[i], speed(p.Speeds[i]))
				mean[i] += speed(p.Speeds[i]) * p.Work.Seconds()
			}
		}
	}
	for _, v := range [...][MaxClasses]float64{alike, top, mean} {
		m := machine{v: v}
		for i, class := range c.classes {
			m.rate += float64(class.Count) * v[i]
		}
		if m.rate > 0 {
			c.machines = append(c.machines, m)
		}
	}
	for i := range c.first {
		c.offer(&c.first[i])
	}
	c.first = nil
}

func (c *completion) offer(j *Job) {
	for i := range c.machines {
		c.machines[i].add(c.classes, j, j.Submit.Sub(c.begin).Seconds())
	}
}

// mean is the bound in seconds, 0 if no job runs. Nothing may be added afterwards.
func (c *completion) mean() float64 {
	if c.jobs == 0 {
		return 0
	}
	if c.machines == nil {
		c.weigh()
	}
	best := c.alone
	for i := range c.machines {
		best = max(best, c.machines[i].drain())
	}
	return best / float64(c.jobs)
}

// machine runs the shortest remaining time first.
type machine struct {
	v    [MaxClasses]float64
	rate float64
	// queue of what is not done, now in seconds, and the sum of the times to completion so far.
	queue    sizes
	now, sum float64
}

func (m *machine) add(classes []Class, j *Job, submit float64) {
	for len(m.queue) > 0 && m.now+m.queue[0].seconds <= submit {
		m.finish()
	}
	if len(m.queue) > 0 {
		m.queue[0].seconds -= submit - m.now
	}
	m.now = submit
	heap.Push(&m.queue, remaining{m.size(classes, j) / m.rate, submit})
}

func (m *machine) finish() {
	done := heap.Pop(&m.queue).(remaining)
	m.now += done.seconds
	m.sum += m.now - done.submit
}

func (m *machine) drain() float64 {
	for len(m.queue) > 0 {
		m.finish()
	}
	return m.sum
}

// size of a job: its work at the least weight for its speed.
func (m *machine) size(classes []Class, j *Job) float64 {
	sum := 0.
	for _, p := range j.Parts {
		least, any := 0., false
		for c, class := range classes {
			if class.Count == 0 || p.Speeds[c] == 0 {
				continue
			}
			if x := m.v[c] / speed(p.Speeds[c]); !any || x < least {
				least, any = x, true
			}
		}
		sum += p.Work.Seconds() * least
	}
	return sum
}

type remaining struct{ seconds, submit float64 }

// sizes is a heap with the least time on top.
type sizes []remaining

func (s sizes) Len() int           { return len(s) }
func (s sizes) Less(i, j int) bool { return s[i].seconds < s[j].seconds }
func (s sizes) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }

// Push is heap.Interface.
func (s *sizes) Push(x any) { *s = append(*s, x.(remaining)) }

// Pop is heap.Interface.
func (s *sizes) Pop() any {
	last := (*s)[len(*s)-1]
	*s = (*s)[:len(*s)-1]
	return last
}
