package view

import (
	"time"

	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Config of a view.
type Config struct {
	// Policy is the name of the objective.
	Policy string
	// Horizon is how far an open gap is offered.
	Horizon time.Duration
	// Trust is how bids are believed, where jobs negotiate; nil: they signal interest.
	Trust *trust.Settings
}

// Parts are what a view reads.
type Parts struct {
	Ledger  *home.Ledger
	Floor   Floor
	Planner Planner
	Slices  Slices
	Waits   Waits
	// Tickets is nil where windows are offered.
	Tickets Tickets
	Loans   Loans
}

// View answers what people ask.
type View struct {
	cfg     Config
	home    *home.Ledger
	floor   Floor
	planner Planner
	slices  Slices
	waits   Waits
	tickets Tickets
	loans   Loans
}

// New makes a view of these.
func New(cfg Config, of Parts) *View {
	return &View{cfg: cfg, home: of.Ledger, floor: of.Floor, planner: of.Planner, slices: of.Slices, waits: of.Waits, tickets: of.Tickets,
		loans: of.Loans}
}

// Windows lists what is advertised now, by slice, then start.
func (v *View) Windows(now quantity.Instant) []status.Window {
	out := make([]status.Window, 0, len(v.floor.Slices()))
	look := v.floor.Look(now)
	for _, s := range v.floor.Slices() {
		out = look.Windows(s, out)
		for _, a := range v.slices.Asks(s) {
			if a.Slice == s.Name() {
				out = append(out, status.Window{ID: a.Plan.Window, Slice: a.Slice, Start: a.Start, End: a.End, State: "pending", Answers: 1,
					Asked: 1})
			}
		}
	}
	return out
}

// Queues lists the queues with their use, by name.
func (v *View) Queues(now quantity.Instant) []status.Queue {
	var out []status.Queue
	for _, q := range v.home.Book().Queues() {
		shown := status.Queue{Queue: q.Queue.Queue, Held: q.Held(), Attained: float64(q.Attained()) / 1024 / 1000}
		if v.cfg.Trust != nil {
			shown.Trust, shown.Credits = v.trusted(q.Trust()), v.home.Credits(now, q)
		}
		shown.Pending, shown.Running = q.Count(job.Waiting)+q.Count(job.Paused), q.Count(job.Running)
		out = append(out, shown)
	}
	return out
}

// Negotiation is what the market has done since it came up; zero for one that does not negotiate.
func (v *View) Negotiation() status.Negotiation { return v.floor.Stats() }

// trusted is a record for people.
func (v *View) trusted(t *protocol.Trust) status.Trust {
	return status.Trust{Trust: *t, Believed: v.cfg.Trust.Rho(t)}
}
