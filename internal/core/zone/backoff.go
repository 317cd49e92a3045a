package zone

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// refusedOften is how many refusals in a row make a job pause altogether: until then it only avoids the slices that refused
	// it, since it may be their nodes that are at fault.
	refusedOften = 3
	// mostPause bounds a job's pause after refusals, which begins with Config.Retry and doubles; mostSilence where nodes said nothing:
	// they may have been out of reach, and are to be found soon when they are back.
	mostPause, mostSilence = time.Minute, 15 * time.Second
	// doubtedOften is how many different jobs in a row must have been refused on one view of a slice before it is offered to
	// nobody for a while. So no job alone takes a slice off the market, and a view that is wrong costs few messages.
	doubtedOften = 3
)

// silent is what is said of a node that says nothing.
const silent = "its node does not answer"

// trouble is what nodes had with a job lately: refusals, and subjobs that they could not run. Few jobs have any.
type trouble struct {
	backoff backoff
	ailed   ailed
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
	slice *slice
	until quantity.Instant
}

// backOff notes that a job got no place that it asked for; ask is 0 if that was before the zone came up. It avoids the slices it
// was refused on, none if what it was refused for is no longer on offer.
func (z *Zone) backOff(now quantity.Instant, j *Job, on []*slice, ask uint64, text string) {
	z.changed(j)
	if j.alive == 0 {
		return
	}
	b := &j.troubled().backoff
	if now.Sub(b.last) > 2*mostPause {
		b.refusals = 0
	}
	if b.refusals == 0 || ask > b.newest {
		b.refusals++
		b.last, b.newest = now, z.nextAsk
	}
	b.text = text
	pause := min(mostPause, z.cfg.Retry<<min(b.refusals-1, 10))
	if text == silent {
		pause = min(pause, mostSilence)
	}
	entryOf(j).floor.Count(market.TurnedDown, now)
	for _, sl := range on {
		z.avoid(j, sl, now.Add(pause))
		z.doubt(now, sl, j)
	}
	if b.refusals >= refusedOften {
		b.until = now.Add(pause)
		if j.met().notBefore < b.until {
			z.rest(now, j, b.until.Sub(now))
		}
	}
}

// avoid leaves a slice to other jobs until then.
func (z *Zone) avoid(j *Job, sl *slice, until quantity.Instant) {
	b := &j.troubled().backoff
	if i := slices.IndexFunc(b.avoided, func(a avoided) bool { return a.slice == sl }); i >= 0 {
		b.avoided[i].until = max(b.avoided[i].until, until)
	} else {
		b.avoided = append(b.avoided, avoided{sl, until})
	}
	z.avoidedAnew(j)
}

// avoidedAnew sets the job's alarm for when it avoids a slice less, and has its place looked for anew if it is rigid.
func (z *Zone) avoidedAnew(j *Job) {
	next := quantity.Never
	for i := range j.met().backoff.avoided {
		next = min(next, j.met().backoff.avoided[i].until)
	}
	z.avoiding.Set(&j.troubled().slots.avoiding, j, next)
	entryOf(j).rigid.LookAnew()
	z.changed(j)
}

// forgive ends what a job avoids for as long as it was to.
func (z *Zone) forgive(now quantity.Instant, j *Job) {
	j.troubled().backoff.avoided = slices.DeleteFunc(j.met().backoff.avoided, func(a avoided) bool { return a.until <= now })
	z.avoidedAnew(j)
}

// avoids says whether the job leaves the slice to others.
func (j *Job) avoids(sl *slice) bool {
	for i := range j.met().backoff.avoided {
		if j.met().backoff.avoided[i].slice == sl {
			return true
		}
	}
	return false
}

// doubt counts the different jobs in a row that a slice's node refused on its present view, and leaves the slice alone for
// AskTTL when they are many: what was refused to all of them is not asked again and again of the same view.
func (z *Zone) doubt(now quantity.Instant, sl *slice, j *Job) {
	if sl.doubter == j {
		return
	}
	sl.doubter = j
	if sl.doubts++; sl.doubts >= doubtedOften {
		z.setStale(sl, now.Add(z.cfg.AskTTL))
	}
}

// looksAnother: a slice's view says something else than before, so what was refused may be had now. A job that was refused
// often does not go by that: on a busy slice every view is another.
func (z *Zone) looksAnother(sl *slice) {
	sl.trust()
	if sl.stale != 0 {
		z.setStale(sl, 0)
	}
	if z.avoiding.Len() == 0 {
		return
	}
	for _, j := range z.avoiding.All() {
		if j.met().backoff.refusals < refusedOften && j.avoids(sl) {
			j.troubled().backoff.avoided = slices.DeleteFunc(j.met().backoff.avoided, func(a avoided) bool { return a.slice == sl })
			z.avoidedAnew(j)
		}
	}
}

// taken: a node took what the zone sold it, so neither the job nor the slice is to be doubted.
func (z *Zone) taken(j *Job, t job.Token) {
	if j.trouble != nil {
		j.trouble.backoff.refusals, j.trouble.backoff.text = 0, ""
	}
	c := &j.work().claims[j.claim(t)]
	z.site(c.Slice).trust()
	for _, id := range c.Also {
		z.site(id).trust()
	}
}

func (s *slice) trust() { s.doubter, s.doubts = nil, 0 }

// sitesOf are the slices of an ask or a claim.
func (z *Zone) sitesOf(id job.SliceID, also []job.SliceID) []*slice {
	out := append(make([]*slice, 0, 1+len(also)), z.site(id))
	for _, id := range also {
		out = append(out, z.site(id))
	}
	return out
}
