package daemon

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/membership"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/host"
)

// outpost is the service of a machine that has joined a cluster: it answers for its slices, and sends who asks for jobs to the head.
type outpost struct {
	*host.Member
	membership *membership.Membership
}

var (
	_ api.Service  = outpost{}
	_ api.Machines = outpost{}
)

func (o outpost) elsewhere() error {
	return errkind.Errorf(errkind.Unsupported, "this machine is %s of a cluster: its head, which it calls at %s, answers for jobs, "+
		"queues and machines: run this on the head's machine", o.membership.Name(), o.membership.Head())
}

// SubmitAll implements api.Service.
func (o outpost) SubmitAll(_ context.Context, jobs []api.Submission, _ []byte) []api.Outcome {
	out := make([]api.Outcome, len(jobs))
	for i := range out {
		out[i].Err = o.elsewhere()
	}
	return out
}

// Check implements api.Service, as do all below.
func (o outpost) Check(context.Context, []*job.Spec) ([]error, error) { return nil, o.elsewhere() }

// DryRun see Check.
func (o outpost) DryRun(context.Context, *job.Spec) (e status.Explanation, err error) {
	return e, o.elsewhere()
}

// Cancel see Check.
func (o outpost) Cancel(context.Context, string, job.ID) error { return o.elsewhere() }

// Requeue see Check.
func (o outpost) Requeue(context.Context, string, job.ID, quantity.Instant) (job.Generation, error) {
	return 0, o.elsewhere()
}

// Delete see Check.
func (o outpost) Delete(context.Context, string, job.ID) error { return o.elsewhere() }

// PauseJob see Check.
func (o outpost) PauseJob(context.Context, string, job.ID, bool) error { return o.elsewhere() }

// Jobs see Check.
func (o outpost) Jobs(context.Context, status.JobQuery) (p status.JobPage, err error) {
	return p, o.elsewhere()
}

// Job see Check.
func (o outpost) Job(context.Context, job.ID) (j status.Job, err error) { return j, o.elsewhere() }

// Explain see Check.
func (o outpost) Explain(context.Context, job.ID) (e status.Explanation, err error) {
	return e, o.elsewhere()
}

// Windows see Check.
func (o outpost) Windows(context.Context) ([]status.Window, error) { return nil, o.elsewhere() }

// Queues see Check.
func (o outpost) Queues(context.Context) ([]status.Queue, error) { return nil, o.elsewhere() }

// Zones see Check.
func (o outpost) Zones(context.Context) ([]status.Zone, error) { return nil, o.elsewhere() }

// DrainZone see Check.
func (o outpost) DrainZone(context.Context, string, job.ZoneID) error { return o.elsewhere() }

// SetQueue see Check.
func (o outpost) SetQueue(context.Context, string, protocol.Queue) error { return o.elsewhere() }

// Logs see Check.
func (o outpost) Logs(context.Context, job.ID, job.Token, func(host.LogPiece) error) error {
	return o.elsewhere()
}

// Follow see Check.
func (o outpost) Follow(context.Context, job.ID, host.LogFollow, func(host.LogPiece) error) error {
	return o.elsewhere()
}

// Outputs see Check.
func (o outpost) Outputs(context.Context, job.ID) ([]api.Output, error) { return nil, o.elsewhere() }

// Standing see Check.
func (o outpost) Standing(context.Context, []job.ID) ([]status.Job, error) { return nil, o.elsewhere() }

// Watch see Check: nothing changes here.
func (o outpost) Watch(...job.ID) (changed <-chan struct{}, stop func()) {
	return make(chan struct{}), func() {}
}

// AgentKey see Check.
func (o outpost) AgentKey(context.Context, job.ID) (string, error) { return "", o.elsewhere() }

// Negotiate see Check.
func (o outpost) Negotiate(context.Context, host.Negotiation) (h host.Heard, err error) {
	return h, o.elsewhere()
}

// Cluster implements api.Machines: none have joined here.
func (o outpost) Cluster() (c status.Cluster) { return c }

// CreateToken implements api.Machines.
func (o outpost) CreateToken(job.NodeID, time.Duration) (token, head string, err error) {
	return "", "", o.elsewhere()
}

// RemoveMachine implements api.Machines.
func (o outpost) RemoveMachine(context.Context, job.NodeID) error { return o.elsewhere() }

// Bring implements api.Machines: no machine leaves anything here.
func (o outpost) Bring(context.Context, ...job.ID) {}
