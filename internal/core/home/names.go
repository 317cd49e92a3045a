package home

import (
	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/claims"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// What others name of the parts of a ledger.
type (
	// Job is one job, Queue the queue that it is in, ClaimState what is known of a claim of it.
	Job        = record.Job
	Queue      = record.Queue
	ClaimState = standing.ClaimState
	// Ask is an ask that is not answered, Basis what it asks of one node of a gang.
	Ask   = claims.Ask
	Basis = claims.Basis
	// Watcher is how a ledger notifies its owner.
	Watcher = record.Watcher
)

// Holder is the node that has what a token of a job names: a claim that stands or was settled, a member of a gang's, or output that is to
// be published. Empty if the token names nothing.
func Holder(j *Job, t job.Token) job.NodeID {
	if c := j.ClaimSet().Claim(t); c != nil {
		return c.Node
	}
	if _, c, i := j.ClaimSet().Member(t); c != nil {
		return c.Members[i].Node
	}
	if i, found := j.Output().Find(t); found {
		return j.Output().List()[i].Node
	}
	p := j.History().Of(t)
	switch {
	case p == nil:
		return ""
	case p.Token == t:
		return p.Node
	}
	return p.Members[protocol.MemberOf(p.Members, t)].Node
}

// Silent is the reason given for a node that does not answer.
const Silent = backoff.Silent
