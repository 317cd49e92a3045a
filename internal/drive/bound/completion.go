package bound

import (
	"cmp"
	"container/heap"
	"slices"
)

// completion is a lower bound on the mean time from submission to completion, in seconds, of all jobs that can run
// somewhere: the larger of
//
//   - the mean time that each takes alone on its best slices, and
//   - the mean under the shortest remaining time first on one machine that is as fast as all slices together, which is the
//     best schedule for one machine (Schrage, 1968). For weights v_c of the classes the machine has the speed sum of n_c v_c
//     and a job the size of its work times the least v_c/s_c: any schedule of the cluster is one of that machine too. The
//     bound holds for any weights; three are tried: all alike, the best and the mean speed of any job on the class.
func completion(classes []Class, jobs []Job) float64 {
	var alone float64
	var mean, top [MaxClasses]float64
	var all []Job
	for _, j := range jobs {
		least, runs := 0., len(j.Parts) > 0
		for _, p := range j.Parts {
			best := int64(0)
			for c, class := range classes {
				if class.Count > 0 {
					best = max(best, p.Speeds[c])
				}
			}
			if runs = runs && best > 0; runs {
				least += p.Work.Seconds() / (float64(max(j.Width, 1)) * speed(best))
			}
		}
		if !runs {
			continue
		}
		all = append(all, j)
		alone += least
		for _, p := range j.Parts {
			for c := range classes {
				top[c] = max(top[c], speed(p.Speeds[c]))
				mean[c] += speed(p.Speeds[c]) * p.Work.Seconds()
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.SortStableFunc(all, func(a, b Job) int { return cmp.Compare(a.Submit, b.Submit) })
	var alike [MaxClasses]float64
	for c := range alike {
		alike[c] = 1
	}
	best := alone
	for _, v := range [...]*[MaxClasses]float64{&alike, &top, &mean} {
		best = max(best, shortest(classes, all, v))
	}
	return best / float64(len(all))
}

// shortest is the sum of the times to completion on the one machine of weights v; jobs come in order of submission.
func shortest(classes []Class, jobs []Job, v *[MaxClasses]float64) float64 {
	rate := 0.
	for c, class := range classes {
		rate += float64(class.Count) * v[c]
	}
	if rate <= 0 {
		return 0
	}
	var queue sizes
	now, sum := 0., 0.
	for i := 0; i < len(jobs) || len(queue) > 0; {
		next := 0.
		if i < len(jobs) {
			next = jobs[i].Submit.Sub(jobs[0].Submit).Seconds()
		}
		if len(queue) == 0 {
			now = max(now, next)
		}
		if i < len(jobs) && next <= now {
			heap.Push(&queue, remaining{size(classes, &jobs[i], v) / rate, next})
			i++
			continue
		}
		if i < len(jobs) && now+queue[0].seconds > next {
			queue[0].seconds -= next - now
			now = next
			continue
		}
		done := heap.Pop(&queue).(remaining)
		now += done.seconds
		sum += now - done.submit
	}
	return sum
}

// size of a job on the one machine.
func size(classes []Class, j *Job, v *[MaxClasses]float64) float64 {
	sum := 0.
	for _, p := range j.Parts {
		least, any := 0., false
		for c, class := range classes {
			if class.Count == 0 || p.Speeds[c] == 0 {
				continue
			}
			if x := v[c] / speed(p.Speeds[c]); !any || x < least {
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
