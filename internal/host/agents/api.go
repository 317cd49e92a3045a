package agents

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host/inbox"
)

// Jobs looks jobs up.
type Jobs interface {
	Job(ctx context.Context, name job.ID) (status.Job, error)
}

// API is what agents, and those who start them, call. Safe for concurrent use.
type API struct {
	agents *Agents
	jobs   Jobs
	inbox  *inbox.Inbox
}

// NewAPI returns the calls to these agents.
func NewAPI(a *Agents, jobs Jobs, b *inbox.Inbox) *API { return &API{a, jobs, b} }

// AgentKey returns the credential of an external job's agent. Errors: NotFound, Invalid for a job that is not external.
func (c *API) AgentKey(ctx context.Context, name job.ID) (string, error) {
	c.agents.mu.Lock()
	at := c.agents.jobs[name]
	c.agents.mu.Unlock()
	if at == nil {
		if _, err := c.jobs.Job(ctx, name); err != nil {
			return "", err
		}
		if accepted := c.agents.recall(name); accepted != nil {
			return c.agents.keys.key(name, identityOf(accepted))
		}
		return "", errkind.Errorf(errkind.Invalid, "job %s is not external: Sluice proposes its subjobs, and it has no agent", name)
	}
	return c.agents.keys.key(name, at.identity)
}

// Negotiate is one call of an external job's agent: it hands in answers and waits for events. Errors: Denied for a wrong key,
// Conflict for an agent that another has replaced, NotFound for a session that is gone, Exhausted for one that asks too often.
func (c *API) Negotiate(ctx context.Context, n Negotiation) (Heard, error) {
	s, turn, err := c.agents.enter(&n, time.Now())
	if err != nil {
		return Heard{}, err
	}
	defer c.agents.leave(n.Job, s)
	notes, err := c.agents.answer(n.Job, s, n.Answers)
	if err != nil {
		return Heard{}, err
	}
	if len(notes) > 0 {
		n.Wait = 0 // an agent that sent something invalid gets its answer at once
	}
	limit := time.NewTimer(min(n.Wait, MaxWait))
	defer limit.Stop()
	for last := n.Wait <= 0; ; {
		heard, changed, err := c.agents.hear(s, turn, last)
		if err != nil || changed == nil {
			heard.Notes = notes
			return heard, err
		}
		select {
		case <-changed:
		case <-limit.C:
			last = true
		case <-ctx.Done():
			return Heard{}, errkind.Errorf(errkind.Unavailable, "the agent has hung up: %w", context.Cause(ctx))
		case <-c.inbox.Done():
			return Heard{}, inbox.ErrStopping()
		}
	}
}
