package home

import (
	"sluice.dev/sluice/internal/core/home/backoff"
	"sluice.dev/sluice/internal/core/home/claims"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
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

// Silent is the reason given for a node that does not answer.
const Silent = backoff.Silent
