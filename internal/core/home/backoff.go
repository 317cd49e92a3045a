package home

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// refusedOften is how many refusals in a row make a job pause altogether: until then it only avoids the slices that refused
	// it, since it may be their nodes that are at fault.
	refusedOften = 3
	// mostPause bounds a job's pause after refusals, which begins with Config.Retry and doubles; mostSilence where nodes said nothing:
	// they may have been out of reach, and are to be found soon when they are back.
	mostPause, mostSilence = time.Minute, 15 * time.Second
)

// Silent is what is said of a node that says nothing.
const Silent = "its node does not answer"

// trouble is what nodes had with a job lately: refusals, and subjobs that they could not run. Few jobs have any.
type trouble struct {
	backoff backoff
	ailed   ailed
	// outlived are the subjobs in a row whose processes outlived their lease.
	outlived int
	// notBefore pauses the job after a subjob without progress, or refusals.
	notBefore quantity.Instant
	slots     struct{ resting, avoiding int }
}

// troubled makes room for a job's trouble.
func (j *Job) troubled() *trouble {
	if j.trouble == nil {
		j.trouble = &trouble{}
	}
	return j.trouble
}

// met is the trouble that a job has met, for reading.
func (j *Job) met() *trouble {
	if j.trouble == nil {
		return &untroubled
	}
	return j.trouble
}

// untroubled is that of most jobs; it is never written to.
var untroubled trouble //nolint:gochecknoglobals // read-only by use

// backoff delays the next ask of a job that nodes refuse, or do not answer: 1 s, doubling to 1 min. A job that can never be
// served for a reason that only its node knows would win the same window for ever, and nobody else would get it. Soft.
type backoff struct {
	// refusals in a row: since a node last took it, each asked for after the one before was known. last is when the latest was
	// counted, and newest the newest ask then.
	refusals int
	last     quantity.Instant
	newest   uint64
	// text is what the node said last.
	text string
	// until the job pauses altogether, 0 if it never did.
	until quantity.Instant
	// avoided are the slices it does not ask for the time being, each once.
	avoided []avoided
}

// avoided is a slice that a job leaves to others until then, or until the slice's view is another.
type avoided struct {
	slice job.SliceID
	until quantity.Instant
}

// BackOff notes that a job got no place that it asked for; ask is 0 if that was before the ledger came up. It avoids the slices it
// was refused on, none if what it was refused for is no longer on offer.
func (h *Ledger) BackOff(now quantity.Instant, j *Job, on []job.SliceID, ask uint64, text string) {
	h.changed(j)
	if j.alive == 0 {
		return
	}
	b := &j.troubled().backoff
	if now.Sub(b.last) > 2*mostPause {
		b.refusals = 0
	}
	if b.refusals == 0 || ask > b.newest {
		b.refusals++
		b.last, b.newest = now, h.nextAsk
	}
	b.text = text
	pause := min(mostPause, h.cfg.Retry<<min(b.refusals-1, 10))
	if text == Silent {
		pause = min(pause, mostSilence)
	}
	for _, id := range on {
		h.avoid(j, id, now.Add(pause))
	}
	h.watch.TurnedDown(now, j, on)
	if b.refusals >= refusedOften {
		b.until = now.Add(pause)
		if j.met().notBefore < b.until {
			h.rest(now, j, b.until.Sub(now))
		}
	}
}

// avoid leaves a slice to other jobs until then.
func (h *Ledger) avoid(j *Job, id job.SliceID, until quantity.Instant) {
	b := &j.troubled().backoff
	if i := slices.IndexFunc(b.avoided, func(a avoided) bool { return a.slice == id }); i >= 0 {
		b.avoided[i].until = max(b.avoided[i].until, until)
	} else {
		b.avoided = append(b.avoided, avoided{id, until})
	}
	h.avoidedAnew(j)
}

// avoidedAnew sets the job's alarm for when it avoids a slice less, and has its place looked for anew if it is rigid.
func (h *Ledger) avoidedAnew(j *Job) {
	next := quantity.Never
	for i := range j.met().backoff.avoided {
		next = min(next, j.met().backoff.avoided[i].until)
	}
	h.avoiding.Set(&j.troubled().slots.avoiding, j, next)
	h.watch.Moved(j)
	h.changed(j)
}

// forgive ends what a job avoids for as long as it was to.
func (h *Ledger) forgive(now quantity.Instant, j *Job) {
	j.troubled().backoff.avoided = slices.DeleteFunc(j.met().backoff.avoided, func(a avoided) bool { return a.until <= now })
	h.avoidedAnew(j)
}

// Avoids says whether the job leaves the slice to others.
func (j *Job) Avoids(id job.SliceID) bool {
	for i := range j.met().backoff.avoided {
		if j.met().backoff.avoided[i].slice == id {
			return true
		}
	}
	return false
}

// Avoided are the slices that the job leaves to others.
func (j *Job) Avoided() (all []job.SliceID) {
	for i := range j.met().backoff.avoided {
		all = append(all, j.met().backoff.avoided[i].slice)
	}
	return all
}

// Avoiding says whether any job leaves a slice to others.
func (h *Ledger) Avoiding() bool { return h.avoiding.Len() > 0 }

// LooksAnother: what is on offer of a slice is something else than before, so what was refused may be had now. A job that was
// refused often does not go by that: on a busy slice every view is another.
func (h *Ledger) LooksAnother(id job.SliceID) {
	for _, j := range h.avoiding.All() {
		if j.met().backoff.refusals < refusedOften && j.Avoids(id) {
			j.troubled().backoff.avoided = slices.DeleteFunc(j.met().backoff.avoided, func(a avoided) bool { return a.slice == id })
			h.avoidedAnew(j)
		}
	}
}

// taken: a node took what was sold of it, so neither the job nor the slice is to be doubted.
func (h *Ledger) taken(j *Job, t job.Token) {
	if j.trouble != nil {
		j.trouble.backoff.refusals, j.trouble.backoff.text = 0, ""
	}
	h.watch.Taken(j, &j.work().claims[j.claim(t)])
}

// rest pauses a job for d.
func (h *Ledger) rest(now quantity.Instant, j *Job, d time.Duration) {
	t := j.troubled()
	t.notBefore = now.Add(d)
	h.resting.Set(&t.slots.resting, j, t.notBefore)
	h.watch.Rests(j)
	h.touch(j)
}
