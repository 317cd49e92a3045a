package search

import (
	"time"

	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Demand is what a search asks the owner of a job.
type Demand interface {
	Name() job.ID
	// Life that it is in now, and the Home's epoch for it.
	Life() job.Generation
	HomeEpoch() uint32
	// Wants is what it looks for now; ok is false if it looks for nothing.
	Wants(now quantity.Instant) (w Want, ok bool)
	// Claim takes a place that was found, as far as a piece of the job fits it; else it says why none does.
	Claim(now quantity.Instant, p *protocol.Place, out *protocol.Out) (why string, ok bool)
	// Parked says that its ticket waits for room from now on.
	Parked()
	// Expire ends it: its search is over, and it is worth nothing later.
	Expire(now quantity.Instant, why flow.Why, out *protocol.Out)
}

// Want is a place that a job looks for.
type Want struct {
	// Demand of memory, of Class.
	Demand   quantity.Amount
	Class    flow.Class
	Priority int16
	Kind     flow.Kind
	// Born is when it began to wait, Deadline when it gives up; 0: never.
	Born, Deadline quantity.Instant
	// Least and Most is the time that it could use (protocol.Errand).
	Least, Most time.Duration
}

// State of a job's ticket at home.
type State uint8

const (
	// Idle: it has none, and needs none.
	Idle State = iota
	// Away: its ticket searches, here or in another zone.
	Away
	// Parked: it waits here for room.
	Parked
	// Landed: a place is claimed, and its node has not confirmed that.
	Landed
)

// StateNames are the names of the states, in order.
var StateNames = []string{"idle", "searching", "parked", "landed"}

// String is the state's name.
func (s State) String() string { return StateNames[s] }

// Job is what a home keeps of the search for one job. The owner of the job holds it. All of it is soft state.
type Job struct {
	Demand
	state  State
	ticket flow.Ticket
	want   Want
	// turn counts its tickets. New: it came in this life of the home, so nobody has seen a ticket of it.
	turn uint64
	New  bool
	// token of the claim that it has landed with; lost: that came to nothing.
	token job.Token
	lost  bool
	// slot of its alarm: its ticket is missed, or its deadline is over.
	slot  int
	stale dirty.Mark
	trail Trail
}

// State of its ticket.
func (j *Job) State() State { return j.state }

// Ticket is the one that it has, as its home saw it last. Idle ones have had it.
func (j *Job) Ticket() flow.Ticket { return j.ticket }

// Wanted is how much memory it looked for last.
func (j *Job) Wanted() quantity.Amount { return j.want.Demand }

// Trail is what its tickets have met so far, for people.
type Trail struct {
	// Tickets that were made for it, Searches that were begun, with what they took in draws and hops. Missed tickets never came back.
	Tickets, Searches, Draws, Hops, Missed int
	// Lost grants came to nothing, Refusal is why the last one did.
	Lost    int
	Refusal string
	// Zones that it was in last, the latest at the end.
	Zones []flow.ZoneID
}

// mostZones bounds the zones that a trail names.
const mostZones = 8

// Trail of its searches.
func (j *Job) Trail() Trail { return j.trail }

// came records a ticket that is back: its hops and draws.
func (j *Job) came(t *flow.Ticket) {
	tr := &j.trail
	if t.Episode == j.ticket.Episode {
		tr.Hops += max(0, int(t.Hops)-int(j.ticket.Hops))
		tr.Draws += max(0, int(t.Draws)-int(j.ticket.Draws))
	}
	if n := len(tr.Zones); t.Draws > 0 && (n == 0 || tr.Zones[n-1] != t.Zone) {
		if n == mostZones {
			tr.Zones = append(tr.Zones[:0], tr.Zones[1:]...)
		}
		tr.Zones = append(tr.Zones, t.Zone)
	}
	j.ticket = *t
}
