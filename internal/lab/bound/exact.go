package bound

import "slices"

// The most jobs and slices that are enumerated.
const (
	exactJobs   = 8
	exactSlices = 2
)

// exact is the most useful work that can be completed in the window, and how many subsets of whole jobs were tried. It tries
// every subset as those that are finished; the others do nothing. For a subset it solves the linear program over the
// intervals between submissions, in which a job is on at most Width slices at a time. For jobs of width 1 such a program
// is a schedule with preemption (Lawler and Labetoulle, "On preemptive scheduling of unrelated parallel processors by
// linear programming", JACM 1978), so that the value is that of the best schedule; for wider ones it is a bound.
func exact(classes []Class, jobs []Job, w Window) (float64, int) {
	var could []Job
	for _, j := range jobs {
		if counted, ok := j.counts(classes, w); ok {
			could = append(could, counted)
		}
	}
	// Divisible jobs first: the subsets are those of the rest.
	slices.SortStableFunc(could, func(a, b Job) int { return rank(a.Whole) - rank(b.Whole) })
	divisible := 0
	for divisible < len(could) && !could[divisible].Whole {
		divisible++
	}
	best, subsets := 0., 0
	for set := range 1 << (len(could) - divisible) {
		chosen := slices.Clone(could[:divisible])
		for i := divisible; i < len(could); i++ {
			if set>>(i-divisible)&1 == 1 {
				chosen = append(chosen, could[i])
			}
		}
		subsets++
		best = max(best, finishing(classes, chosen, w))
	}
	return best, subsets
}

func rank(whole bool) int {
	if whole {
		return 1
	}
	return 0
}

// finishing is the most work with every whole job finished, 0 if that can not be.
func finishing(classes []Class, jobs []Job, w Window) float64 {
	starts := []float64{0}
	release := make([]float64, len(jobs))
	for i, j := range jobs {
		release[i] = max(0, j.Submit.Sub(w.From).Seconds())
		starts = append(starts, release[i])
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	end := append(starts[1:len(starts):len(starts)], w.length())

	type variable struct{ job, part, class, interval int }
	var vars []variable
	parts, first := 0, make([]int, len(jobs)) // rows of parts
	whole := 0.
	for i, j := range jobs {
		first[i] = parts
		parts += len(j.Parts)
		for p, part := range j.Parts {
			if j.Whole {
				whole += part.Work.Seconds()
			}
			for c := range classes {
				for e := range starts {
					if part.Speeds[c] > 0 && classes[c].Count > 0 && starts[e] >= release[i] {
						vars = append(vars, variable{i, p, c, e})
					}
				}
			}
		}
	}
	intervals := len(starts)
	// The first objective is the work of whole jobs, which must reach all of it; the second is all work.
	t := newTableau(len(vars), parts+intervals*(len(classes)+len(jobs)), 2)
	capacity := func(c, e int) []float64 { return t.constraint(parts + e*len(classes) + c) }
	breadth := func(i, e int) []float64 { return t.constraint(parts + intervals*len(classes) + e*len(jobs) + i) }
	length := w.length()
	for k, v := range vars {
		s := speed(jobs[v.job].Parts[v.part].Speeds[v.class])
		if jobs[v.job].Whole {
			t.objective(0)[k] = -s
		}
		t.objective(1)[k] = -s
		t.constraint(first[v.job] + v.part)[k] = s
		capacity(v.class, v.interval)[k] = 1
		breadth(v.job, v.interval)[k] = 1
	}
	for i, j := range jobs {
		for p, part := range j.Parts {
			t.constraint(first[i] + p)[t.columns] = part.Work.Seconds() / length
		}
	}
	for e := range starts {
		share := (end[e] - starts[e]) / length
		for c, class := range classes {
			capacity(c, e)[t.columns] = float64(class.Count) * share
		}
		for i, j := range jobs {
			breadth(i, e)[t.columns] = float64(j.Width) * share
		}
	}
	t.solve(pivotLimit(t))
	if t.value(0)*length < whole*(1-1e-7) {
		return 0
	}
	return t.value(1) * length
}
