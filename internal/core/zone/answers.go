package zone

import (
	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// What people ask is answered by the zone's view (view.View), which changes nothing.

// Page lists jobs, the newest before a key.
func (z *Zone) Page(now quantity.Instant, q status.JobQuery) status.JobPage {
	return z.view.Page(now, q)
}

// Job is one job with its subjobs.
func (z *Zone) Job(now quantity.Instant, id job.ID) (status.Job, bool) { return z.view.Job(now, id) }

// Brief is one job without its subjobs.
func (z *Zone) Brief(now quantity.Instant, id job.ID) (status.Job, bool) {
	return z.view.Brief(now, id)
}

// Windows are those that are open now.
func (z *Zone) Windows(now quantity.Instant) []status.Window { return z.view.Windows(now) }

// Queues are what the zone knows of queues.
func (z *Zone) Queues(now quantity.Instant) []status.Queue { return z.view.Queues(now) }

// Explain says why a job waits.
func (z *Zone) Explain(now quantity.Instant, id job.ID) (status.Explanation, bool) {
	return z.view.Explain(now, id)
}

// ExplainFiled explains a job in the archive, from the record it filed.
func (z *Zone) ExplainFiled(now quantity.Instant, r *protocol.Record) status.Explanation {
	return z.view.ExplainFiled(now, r)
}

// DryRun explains a job that is not submitted.
func (z *Zone) DryRun(now quantity.Instant, spec *job.Spec) status.Explanation {
	return z.view.DryRun(now, spec)
}

// Costs completes what a node says of the subjobs that a reservation would cut.
func (z *Zone) Costs(cuts []status.Cut) []status.Cut { return z.view.Costs(cuts) }

// Negotiation counts what the market has done.
func (z *Zone) Negotiation() status.Negotiation { return z.view.Negotiation() }

// Learned is how right the zone was: about waits, and about the ends of gaps.
func (z *Zone) Learned() (status.Foresight, ends.Stats) { return z.view.Foresight(), z.bets.Stats() }

// Survey shows the slices that nodes have offered, as they told last, and all subjobs of large jobs.
func (z *Zone) Survey() actor.Survey { return z.view }
