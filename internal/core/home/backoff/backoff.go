// Package backoff delays the next ask of a job that nodes refuse, do not answer, or can not run. It knows no nodes: it is given their
// answers.
package backoff

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// often is how many refusals in a row make a job pause altogether: until then it only avoids the slices that refused it, since it may
	// be their nodes that are at fault.
	often = 3
	// Most bounds a job's pause after refusals, which begins with retry and doubles; mostSilence where nodes said nothing: they may have
	// been out of reach, and are to be found soon when they are back.
	Most, mostSilence = time.Minute, 15 * time.Second
)

// Silent is the reason given for a node that does not answer.
const Silent = "its node does not answer"

// State is one job's recent trouble with nodes: refusals, subjobs that they could not run, processes that outlived their lease. A job that
// can never be served for a reason that only its node knows would win the same window for ever, and nobody else would get it. Invariant:
// each count is of failures in a row, where simultaneous asks count once, and each slice is avoided at most once. Soft: after a crash the
// job tries once more. Its reading methods may be called on nil, of a job that had no trouble.
type State struct {
	// refusals in a row: since a node last took it, each asked for after the one before was known. last is when the latest was
	// counted, and newest the newest ask then. text is what the node said last.
	refusals int
	last     quantity.Instant
	newest   uint64
	text     string
	// until the job pauses altogether for them, 0 if it never did.
	until quantity.Instant
	// avoided are the slices it does not ask for the time being.
	avoided []avoided
	// failures are the subjobs in a row that nodes could not start for a trouble of their own.
	failures Pause
	// outlived are the subjobs in a row whose processes outlived their lease.
	outlived int
	// rests until then, after a subjob without progress, or refusals.
	rests quantity.Instant
	// awaits is the slice on which a program ends for it, which is why it rests; empty: another reason.
	awaits job.SliceID
}

// avoided is a slice that a job leaves to others until then, or until the slice's view is another.
type avoided struct {
	slice job.SliceID
	until quantity.Instant
}

// Pause is why a job pauses: the number of failures in a row, and the last reason given. Until is its end.
type Pause struct {
	Times int
	Text  string
	Until quantity.Instant
}

// Refused counts that a node refused what was asked under a number, the newest ask now being that, and returns for how long the job is to
// avoid the slices.
func (s *State) Refused(now quantity.Instant, ask, newest uint64, retry time.Duration, text string) time.Duration {
	if now.Sub(s.last) > 2*Most {
		s.refusals = 0
	}
	if s.refusals == 0 || ask > s.newest {
		s.refusals++
		s.last, s.newest = now, newest
	}
	s.text = text
	pause := min(Most, retry<<min(s.refusals-1, 10))
	if text == Silent {
		pause = min(pause, mostSilence)
	}
	return pause
}

// Often has the job pause altogether until then if it was refused often, and says whether it does and did not rest as long anyway.
func (s *State) Often(until quantity.Instant) bool {
	if s.refusals < often {
		return false
	}
	s.until = until
	return s.rests < until
}

// Taken: a node took what was sold of the job, so it is not to be doubted.
func (s *State) Taken() {
	if s != nil {
		s.refusals, s.text = 0, ""
	}
}

// Avoid leaves a slice to other jobs until then.
func (s *State) Avoid(id job.SliceID, until quantity.Instant) {
	if i := slices.IndexFunc(s.avoided, func(a avoided) bool { return a.slice == id }); i >= 0 {
		s.avoided[i].until = max(s.avoided[i].until, until)
	} else {
		s.avoided = append(s.avoided, avoided{id, until})
	}
}

// LooksAnother: what is offered of a slice is something else than before, so what was refused may be had now. It is false for a job that
// does not avoid it; and one that was refused often does not go by that: on a busy slice every view is another.
func (s *State) LooksAnother(id job.SliceID) bool {
	return s.refusals < often && s.Removed(id)
}

// Removed: a slice is there no more; another of its name is none that it was refused on. It is false for a job that does not avoid it.
func (s *State) Removed(id job.SliceID) bool {
	if !s.Avoids(id) {
		return false
	}
	s.avoided = slices.DeleteFunc(s.avoided, func(a avoided) bool { return a.slice == id })
	return true
}

// Expire ends what it avoids for as long as it was to.
func (s *State) Expire(now quantity.Instant) {
	s.avoided = slices.DeleteFunc(s.avoided, func(a avoided) bool { return a.until <= now })
}

// Expires is when a slice is avoided no more next; Never if none is.
func (s *State) Expires() quantity.Instant {
	next := quantity.Never
	if s != nil {
		for i := range s.avoided {
			next = min(next, s.avoided[i].until)
		}
	}
	return next
}

// Avoids says whether the job leaves the slice to others.
func (s *State) Avoids(id job.SliceID) bool {
	return s != nil && slices.ContainsFunc(s.avoided, func(a avoided) bool { return a.slice == id })
}

// Avoiding says whether it leaves any slice to others.
func (s *State) Avoiding() bool { return s != nil && len(s.avoided) > 0 }

// Avoided are the slices that it leaves to others.
func (s *State) Avoided() (all []job.SliceID) {
	if s != nil {
		for i := range s.avoided {
			all = append(all, s.avoided[i].slice)
		}
	}
	return all
}

// Forgive drops the record of refusals: the job is over.
func (s *State) Forgive() {
	s.refusals, s.last, s.newest, s.text, s.until, s.avoided = 0, 0, 0, "", 0, nil
}

// NodeFailed counts a subjob that its node could not start. It never ends a job, of which nothing has run: it delays the next try, so that
// one whose work directory fits on no disk takes nothing from others. It is false for one that was started beside the last.
func (s *State) NodeFailed(now quantity.Instant, detail string, first time.Duration) bool {
	f := &s.failures
	if now < f.Until {
		return false
	}
	f.Times++
	f.Text = detail
	f.Until = now.Add(min(Most, first<<min(f.Times-1, 10)))
	return true
}

// NodeWorks: a subjob has begun, or ended for any other cause.
func (s *State) NodeWorks() {
	if s != nil {
		s.failures = Pause{}
	}
}

// Outlives counts whether processes of a subjob outlived its lease.
func (s *State) Outlives(did bool) {
	if did {
		s.outlived++
	} else if s != nil {
		s.outlived = 0
	}
}

// Rest makes the job ask for nothing until then.
func (s *State) Rest(until quantity.Instant) { s.rests, s.awaits = until, "" }

// Await notes that it rests for a slice on which a program ends for it; Awaits is that slice, empty: it does not.
func (s *State) Await(slice job.SliceID) { s.awaits = slice }

// Awaits see Await.
func (s *State) Awaits() job.SliceID {
	if s == nil {
		return ""
	}
	return s.awaits
}

// Reopen begins another life of the job.
func (s *State) Reopen() { s.failures, s.outlived, s.rests, s.awaits = Pause{}, 0, 0, "" }

// Rests is until when it pauses; 0 if it never did.
func (s *State) Rests() quantity.Instant {
	if s == nil {
		return 0
	}
	return s.rests
}

// Refusals are the places in a row that it had won and did not get.
func (s *State) Refusals() Pause {
	if s == nil {
		return Pause{}
	}
	return Pause{s.refusals, s.text, s.until}
}

// NodeFailures are the subjobs in a row that its nodes could not start.
func (s *State) NodeFailures() Pause {
	if s == nil {
		return Pause{}
	}
	return s.failures
}

// Outlived is how many subjobs in a row had processes that outlived their lease.
func (s *State) Outlived() int {
	if s == nil {
		return 0
	}
	return s.outlived
}
