package ends

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// Kind of jobs that lose alike when their gap ends unforeseen.
type Kind struct {
	Queue, Template string
	Kind            job.Kind
}

// toll is what the latest subjobs of a kind that were cut short had worked, and what of that was saved.
type toll struct {
	worked, saved time.Duration
	seen          int
}

// halved is after how many of them the past counts half.
const halved = 32

// tolls are kept of the MostKinds kinds that paid last.
type tolls struct {
	of   map[Kind]*toll
	paid []Kind
}

func newTolls() tolls { return tolls{of: map[Kind]*toll{}} }

// Paid takes in that a subjob was cut short after it had worked for so long, of which so much was saved.
func (l *Learner) Paid(kind Kind, worked, saved time.Duration) {
	t := &l.tolls
	o := t.of[kind]
	if o == nil {
		o = &toll{}
		t.of[kind] = o
	}
	o.worked, o.saved = o.worked+max(0, worked), o.saved+min(max(0, saved), max(0, worked))
	if o.seen++; o.seen == halved {
		o.worked, o.saved, o.seen = o.worked/2, o.saved/2, halved/2
	}
	if at := slices.Index(t.paid, kind); at >= 0 {
		t.paid = slices.Delete(t.paid, at, at+1)
	}
	if t.paid = append(t.paid, kind); len(t.paid) > MostKinds {
		delete(t.of, t.paid[0])
		t.paid = slices.Delete(t.paid, 0, 1)
	}
}

// Loses says whether most of what subjobs of a kind have worked is lost when they are cut short, as far as is known. Those whose
// programs save on their way, heed a warning, or work on units of their own may as well go on as long as they like.
func (l *Learner) Loses(kind Kind) bool {
	o := l.tolls.of[kind]
	return o == nil || o.saved < o.worked/2
}
