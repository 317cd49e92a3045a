package market

import (
	"slices"

	"sluice.dev/sluice/internal/core/digest"
)

// Jobs that are alike answer alike, as long as nothing was sold to them: their answers are one list, which nobody writes to. A job that
// runs or has run answers by what is left of it, and has a list of its own.

// mostAlike lists are held for jobs to share. When there are more it begins anew: lists live as long as jobs that have them.
const mostAlike = 4096

// alike holds the lists that jobs share, by their hash. The zero value is empty.
type alike map[uint64][]answer

// share is a list that says the same, for jobs that share theirs.
func (a *alike) share(list []answer) []answer {
	h := digest.New()
	for i := range list {
		x := &list[i]
		h = h.Int(int64(x.need), int64(x.refusal.Why), int64(x.refusal.Least), int64(x.refusal.Need), int64(x.laxity), x.index)
	}
	sum := h.Sum()
	if known := (*a)[sum]; slices.Equal(known, list) {
		return known
	}
	if *a == nil || len(*a) >= mostAlike {
		*a = alike{}
	}
	own := slices.Clip(slices.Clone(list))
	(*a)[sum] = own
	return own
}

// unsold says whether nothing was ever sold to a job.
func (j *Job) unsold() bool { return j.Busy() == 0 && j.Attained() == 0 && j.Demand.Served() == 0 }

// adopt makes an entry that was examined that of a job. The room that it was examined in is good for the next one.
func (f *Floor) adopt(j *Job, is *entry) {
	was := j.entry
	j.entry = *is
	switch {
	case j.unsold():
		j.answers, j.shares = f.alike.share(is.answers), true
	case was.shares:
		is.answers = nil
	default:
		is.answers = was.answers
	}
}

// addAnswer completes a job's answers by that for a new class.
func (f *Floor) addAnswer(j *Job, a answer) {
	if !j.shares {
		j.answers = append(j.answers, a)
		return
	}
	f.examined.answers = append(append(f.examined.answers[:0], j.answers...), a)
	j.answers = f.alike.share(f.examined.answers)
}
