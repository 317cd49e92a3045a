// Package api serves people and programs over connect-go: JSON over plain HTTP/1.1 and gRPC from one .proto.
package api

import (
	"context"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/host"
)

// Service is what the API serves. The parts that a host.Host embeds implement it (SubmitAll is requests.Sender's), and what is served
// is a layer above that which refuses some calls: the daemon's tenants (face/cli/daemon), the operator's service (face/operator). Errors
// carry a kind (package errkind).
type Service interface {
	// SubmitAll accepts jobs durably, in their order, and answers for each. workdir is a tar.gz of their work directory, or nil. A
	// request identifies its job: the same request, or the same name with the same content, is the same job. Created is false then.
	SubmitAll(ctx context.Context, jobs []Submission, workdir []byte) []Outcome
	// Check says of each job what would keep it from being accepted, nil if nothing would or its name is taken, and changes nothing.
	Check(ctx context.Context, specs []*job.Spec) ([]error, error)
	// DryRun says what Submit would do and when the job would start, and changes nothing.
	DryRun(ctx context.Context, spec *job.Spec) (status.Explanation, error)
	// Cancel ends a job; one that is over is a Conflict.
	Cancel(ctx context.Context, request string, name job.ID) error
	// Requeue begins another life of a job that was cancelled, has failed or has expired. deadline 0: the one it has, Never:
	// none.
	Requeue(ctx context.Context, request string, name job.ID, deadline quantity.Instant) (job.Generation, error)
	// Delete forgets a job that is over and removes its files.
	Delete(ctx context.Context, request string, name job.ID) error
	// PauseJob stops new windows for a job (pause true) or lets it go on.
	PauseJob(ctx context.Context, request string, name job.ID, pause bool) error
	// Jobs lists the newest jobs before a key.
	Jobs(ctx context.Context, q status.JobQuery) (status.JobPage, error)
	Job(ctx context.Context, name job.ID) (status.Job, error)
	Explain(ctx context.Context, name job.ID) (status.Explanation, error)
	Slices(ctx context.Context) ([]status.Slice, error)
	// Wishes are the workloads outside Sluice that wait for devices that slices are cut from.
	Wishes(ctx context.Context) ([]status.Wish, error)
	Windows(ctx context.Context) ([]status.Window, error)
	Queues(ctx context.Context) ([]status.Queue, error)
	Zones(ctx context.Context) ([]status.Zone, error)
	// Airlocks are what each node makes of its host's memory, and did of late.
	Airlocks(ctx context.Context) ([]status.Airlock, error)
	// DrainZone makes a zone give its jobs to the others, for good.
	DrainZone(ctx context.Context, request string, zone job.ZoneID) error
	SetQueue(ctx context.Context, request string, q protocol.Queue) error
	// Reserve takes time on a slice (or on all: empty slice) off the market and returns what stands for it on each.
	Reserve(ctx context.Context, request string, r protocol.Reservation) ([]protocol.Made, error)
	// Cuts says what such a reservation would cost if it cuts running subjobs short, and changes nothing.
	Cuts(ctx context.Context, r protocol.Reservation) ([]status.Cut, error)
	Unreserve(ctx context.Context, request string, id uint64) error
	// Release lifts a quarantine, and says what was done.
	Release(ctx context.Context, request string, slice job.SliceID) (said string, err error)
	// Logs tells what a subjob wrote until now (stdout and stderr; token zero: the latest).
	Logs(ctx context.Context, name job.ID, token job.Token, tell func(host.LogPiece) error) error
	// Follow tells what the subjobs of a job write, from where a follower was, and returns nil when the job is over. tell must
	// not keep a piece's data.
	Follow(ctx context.Context, name job.ID, f host.LogFollow, tell func(host.LogPiece) error) error
	// Outputs lists what the committed subjobs have written in order of progress: each committed range once, also those without files.
	Outputs(ctx context.Context, name job.ID) ([]Output, error)
	// Standing is how jobs stand, without their histories, in the order of their names.
	Standing(ctx context.Context, names []job.ID) ([]status.Job, error)
	// Watch returns a channel that gets a signal when any of these jobs has changed since it was last read. stop ends that.
	Watch(names ...job.ID) (changed <-chan struct{}, stop func())
	// History is what each slice did in the recent past: leases, reservations and windows, for pictures.
	History(ctx context.Context, since quantity.Instant) (History, error)
	About(ctx context.Context) (About, error)
	// AgentKey is the credential of an external job's agent.
	AgentKey(ctx context.Context, name job.ID) (string, error)
	// Negotiate is one call of an external job's agent: it gives answers, then gets events or waits for them.
	Negotiate(ctx context.Context, n host.Negotiation) (host.Heard, error)
}

// What the service answers with is defined below this wing, so that the drivers can fill it.
type (
	// Submission is one job that somebody submits, Outcome what became of it.
	Submission = host.Submission
	Outcome    = host.Outcome
	// Output is what one committed subjob has written.
	Output = status.Output
	// History of all slices over a stretch of time.
	History = status.History
	// SliceHistory is what happened on one slice.
	SliceHistory = status.SliceHistory
	// Span is one stretch of a slice's time.
	Span = status.Span
	// About is what the daemon is and where it stands.
	About = status.About
)
