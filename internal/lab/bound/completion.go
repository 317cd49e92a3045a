package bound

import (
	"math"

	"sluice.dev/sluice/internal/core/quantity"
)

// completion bounds the mean time from submission to completion from below, for all jobs that can run somewhere. It is the
// largest of three bounds on the sum over jobs j of C_j, the time from submission r_j to completion.
//
// Alone: each job takes at least alone_j, its parts one after the other on its best slices with nobody else there.
//
// The other two look at one machine. For any weights v_c >= 0 of the classes, let a second of a slice of class c give v_c units,
// and let part p of job j have the size z_p = work_p min_c v_c/s_pc over the classes that it runs on. A slice of class c does
// at most v_c units of size in a second, so all slices together do at most V = sum of n_c v_c: whatever the cluster does can be
// done by one machine of V units a second that works on any number of jobs at once, without a job's being done later.
//
//   - Shortest remaining first on that machine is its best schedule (Schrage, 1968): the sum of its completions.
//   - Let F_j(t) be the share of the size of j that is done by t, and M_j = integral of t dF_j(t) its mean busy time. The sum of
//     M_j is the integral of t times the sum of dF_j: units of size z_j each count 1/z_j. So it is least on the machine if at each
//     instant a job of those that have come and are not done with the greatest 1/z_j is worked on: shortest size first, with
//     preemption (Goemans, SODA 1997). And C_j - M_j = integral of (C_j - t) dF_j, which no cluster makes smaller than D_j: in the last s
//     seconds of j at most the share G_j(s) of its size is done, where G_j fills the seconds with the part that is quickest
//     in size first, at its best speed on all Width slices, so the integral is at least D_j = integral of 1 - G_j(s) ds. For a job
//     of one part D_j = alone_j / 2. Hence sum C_j >= sum of the least M_j - r_j + sum D_j, on m alike slices with everybody
//     there the bound of Eastman, Even and Isaacs (Management Science 1964). A job without a size, on classes of weight 0,
//     is left to itself, and counts alone_j.
//
// They hold for any weights. Four are tried, found from the first jobs: all alike, the best and the mean speed on each class, and
// the prices at which the classes are scarce (Mix.Prices).
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
	alone := j.alone(c.classes)
	if len(j.Parts) == 0 || math.IsInf(alone, 1) {
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

// alone is the time in seconds that a job takes with the whole cluster for itself; infinite if a part runs nowhere.
func (j *Job) alone(classes []Class) float64 {
	sum := 0.
	for i := range j.Parts {
		best := j.Parts[i].bestOf(classes)
		if best == 0 {
			return math.Inf(1)
		}
		sum += j.Parts[i].Work.Seconds() / (float64(max(j.Width, 1)) * speed(best))
	}
	return sum
}

// weigh makes the machines and gives them the first jobs.
func (c *completion) weigh() {
	var alike, top, mean [MaxClasses]float64
	for i := range alike {
		alike[i] = 1
	}
	mix := NewMix(c.classes, Window{}, Options{})
	for i := range c.first {
		j := &c.first[i]
		mix.Add(j)
		for _, p := range j.Parts {
			for i := range c.classes {
				top[i] = max(top[i], speed(p.Speeds[i]))
				mean[i] += speed(p.Speeds[i]) * p.Work.Seconds()
			}
		}
	}
	for _, v := range [...][MaxClasses]float64{alike, top, mean, mix.Prices()} {
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
		best = max(best, c.machines[i].sum())
	}
	return best / float64(c.jobs)
}
