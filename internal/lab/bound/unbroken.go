package bound

import "math"

// unbroken is the least sum of times from submission to completion, in seconds, of jobs that all are Whole and on one slice
// each and that nobody may interrupt, and whether the jobs are such. It tries all orders on all slices, in the order of the
// starts: there is a best schedule in which every job starts as soon as it has come and its slice is free.
func unbroken(classes []Class, jobs []Job) (float64, bool) {
	s := search{jobs: jobs, best: math.Inf(1)}
	for c, class := range classes {
		for range class.Count {
			s.class = append(s.class, c)
		}
	}
	for i := range jobs {
		j := &jobs[i]
		if !j.Whole || j.Width > 1 || len(j.Parts) != 1 || j.Parts[0].bestOf(classes) == 0 {
			return 0, false
		}
		s.submit = append(s.submit, j.Submit.Sub(jobs[0].Submit).Seconds())
		s.shortest = append(s.shortest, j.Parts[0].Work.Seconds()/speed(j.Parts[0].bestOf(classes)))
	}
	s.free = make([]float64, len(s.class))
	s.try(0, 0, math.Inf(-1))
	return s.best, len(jobs) > 0
}

type search struct {
	jobs             []Job
	submit, shortest []float64
	class            []int // of every slice
	free             []float64
	best             float64
}

// try continues from a set of placed jobs with a sum of times, the last of which started at last.
func (s *search) try(placed uint, sum, last float64) {
	least := sum
	for i := range s.jobs {
		if placed>>i&1 == 0 {
			least += max(0, last-s.submit[i]) + s.shortest[i]
		}
	}
	if least >= s.best {
		return
	}
	if placed == 1<<len(s.jobs)-1 {
		s.best = sum
		return
	}
	for i := range s.jobs {
		if placed>>i&1 == 1 {
			continue
		}
		for k, c := range s.class {
			v := s.jobs[i].Parts[0].Speeds[c]
			start := max(s.free[k], s.submit[i])
			if v == 0 || start < last {
				continue
			}
			end, before := start+s.jobs[i].Parts[0].Work.Seconds()/speed(v), s.free[k]
			s.free[k] = end
			s.try(placed|1<<i, sum+end-s.submit[i], start)
			s.free[k] = before
		}
	}
}
