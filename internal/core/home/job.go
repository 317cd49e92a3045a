package home

import (
	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Job is one job, as most are: accepted, and waiting. What came of it is in records of their own (record.go).
type Job struct {
	accepted
	// Beside is what whoever made room for it keeps of it beside this.
	Beside any
	// q is its queue.
	q *Queue

	capture.Mark
	// sum of the record, and of its spec.
	sum, specSum uint64
	// sold, lessons and sealed are read by work, learned and fate; nil where there is nothing.
	sold    *work
	lessons *lessons
	sealed  *fate
	// trouble is what nodes had with it lately, read by met; nil if there is none.
	trouble *trouble
	// enrolledIn is its roster in the queue.
	enrolledIn *roster

	// alive is 1 + its place among the live jobs; the slots are its places among the alarms and crowds that they name.
	alive int
	slots struct{ deadline int }
	// stirred: it is in the list of that name.
	stirred dirty.Mark
	// unbegun: it is in its template's list of that name.
	unbegun bool
}

// accepted is what every job has: durable, as protocol.Record has it.
type accepted struct {
	ID         job.ID
	Spec       *job.Spec
	Submitted  quantity.Instant
	Epoch      uint32
	Generation job.Generation
	Held       bool
}

// Lease is what the ledger has heard of one claim since it came up.
type Lease struct {
	token job.Token
	// known: the node has confirmed it. sent: when Redeem, Stop or Extend was last sent.
	known bool
	sent  quantity.Instant
	// running since, 0 if not heard of; progress last reported.
	running  quantity.Instant
	progress int64
	// storing is when its node said last that it has ended and what it left is being stored; 0: it has not.
	storing quantity.Instant
	// remains is when its node said last that processes of it are there though they should be gone; 0: it has not.
	remains quantity.Instant
	// tried is the end of the lease for which a continuation or extension was last considered.
	tried quantity.Instant
	// ask is an extension that is not answered yet, before what the claim was without it.
	ask    uint64
	before struct {
		rng  job.Range
		end  quantity.Instant
		peak trp.Peak
	}
	// won is the ask that it came of, 0 if that was before the ledger came up.
	won uint64
	// course of a gang over several nodes; nil until something is heard of it, and of what runs on one.
	course *gang.Course
	// withdrawn: the node is asked to give it up, if it has not begun, for something better.
	withdrawn bool
}

// claim finds a standing claim; -1 if there is none under this token.
func (j *Job) claim(t job.Token) int {
	claims := j.work().claims
	for i := range claims { // there are few, and they are large
		if claims[i].Token == t {
			return i
		}
	}
	return -1
}

// Lease finds what is known of a standing claim.
func (j *Job) Lease(t job.Token) *Lease {
	for i := range j.work().leases {
		if j.work().leases[i].token == t {
			return &j.work().leases[i]
		}
	}
	return nil
}

// deadline is the owner's, Never if none was given.
func (j *Job) deadline() quantity.Instant {
	if j.Spec.Deadline == 0 {
		return quantity.Never
	}
	return j.Spec.Deadline
}

// Reported is the unit up to which a running subjob says it is complete. What it says of units beyond its claim is not
// shown.
func (l *Lease) Reported(c *protocol.Claim) int64 {
	return max(c.Range.From, min(l.progress, c.Range.To))
}

// Phase is the state people see.
func (j *Job) Phase() job.State {
	switch {
	case j.fate().verdict.State.Final():
		return j.fate().verdict.State
	case len(j.work().claims) > 0 || j.Complete():
		return job.Running
	case j.Held:
		return job.Paused
	}
	return job.Waiting
}

// View is what the atomizer may know. Ranges that a node was asked for count as claimed.
func (j *Job) View() atomizer.View {
	v := atomizer.View{
		Spec: j.Spec, Committed: j.work().committed, Claimed: j.work().claimed, Running: len(j.work().claims), Learned: j.Learned(), Resume: j.work().resume,
		Skipped: j.work().skipped.Len(),
	}
	if planted.In(planted.SellTwice) {
		v.Claimed = nil
		return v
	}
	if len(j.work().asked) > 0 {
		v.Claimed = nil
		for _, r := range j.work().claimed {
			v.Claimed = v.Claimed.Add(r)
		}
		for _, r := range j.work().asked {
			v.Claimed = v.Claimed.Add(r)
		}
		v.Running += j.work().asking
	}
	return v
}

// Width is how many slices one subjob of the job holds.
func (j *Job) Width() int { return max(1, j.Spec.Slices) }

// Job of a name; nil if it is not here.
func (h *Ledger) Job(id job.ID) *Job {
	if h.sought != id {
		h.sought, h.found = id, h.jobs[id]
	}
	return h.found
}

// Kept is how many jobs it has a record of.
func (h *Ledger) Kept() int { return len(h.jobs) }

// Waiting is how many jobs wait for their first start or their next window.
func (h *Ledger) Waiting() int { return len(h.live) - (len(h.busy) - h.parting) }

// Active says whether a job has no verdict, and something of it is left to sell.
func (j *Job) Active() bool { return j.alive > 0 }
