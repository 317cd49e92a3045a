// Package requests carries out what people ask to be changed: each request is sent to the actor that decides it, and answered once the
// decision is durable.
package requests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/wire"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/space"
	"sluice.dev/sluice/internal/host/trouble"
)

// Sender takes requests and sends them, as those of who calls (users.Of). Safe for concurrent use.
type Sender struct {
	to    caller
	space *space.Space
	nodes nodes.Directory
	store stored
}

// New returns a Sender for the actors of one process, and the nodes elsewhere that remote reaches; it may be nil, as may store.
func New(b *inbox.Inbox, c *Calls, t *trouble.State, s *space.Space, n nodes.Directory, remote *Remote, store Store) *Sender {
	to := caller{inbox: b, calls: c, trouble: t, local: n.Local}
	if remote != nil {
		to.remote = remote.call
	}
	return &Sender{to, s, n, stored{store}}
}

// Submit is SubmitAll of one job.
func (d *Sender) Submit(ctx context.Context, request string, spec *job.Spec, workdir []byte) (Receipt, error) {
	o := d.SubmitAll(ctx, []Submission{{Request: request, Spec: spec}}, workdir)
	return o[0].Receipt, o[0].Err
}

// submitTogether is how many jobs of one call are on their way at once.
const submitTogether = 64

// SubmitAll accepts jobs durably, in their order, and answers for each. workdir is a tar.gz of the work directory of all of them, or
// nil. The same request, or the same name with the same content, is the same job; Created is false then. An error of kind Unavailable
// or Exhausted: the job may still have been accepted, ask again with the same request. Jobs go together, so that they share a sync;
// after an error no more are sent, and those behind it that were not have an error of kind Unavailable.
func (d *Sender) SubmitAll(ctx context.Context, jobs []Submission, workdir []byte) []Outcome {
	out := make([]Outcome, len(jobs))
	fail := func(from int, err error) []Outcome {
		for i := from; i < len(jobs); i++ {
			out[i].Err = err
		}
		return out
	}
	err := d.to.trouble.Stopped()
	if err == nil {
		err = d.space.Refusal()
	}
	if err != nil { // before anything is stored
		return fail(0, err)
	}
	stored, err := d.store.put(jobs, workdir)
	if err != nil {
		return fail(0, err)
	}
	for from := 0; from < len(jobs); from += submitTogether {
		to := min(from+submitTogether, len(jobs))
		sent, failed := make([]*call, to-from), false
		for i := from; i < to; i++ {
			if sent[i-from], out[i].Err = d.submit(ctx, &jobs[i], stored); out[i].Err != nil {
				failed = true
			}
		}
		for i, c := range sent {
			if c != nil {
				var reply protocol.Message
				reply, out[from+i].Position, out[from+i].Err = d.to.answer(ctx, c)
				r := &out[from+i].Receipt
				if said, ok := reply.Body.(*protocol.Receipt); ok { // there is none of one that gave up waiting
					r.Name, r.Created, r.Generation, r.Verdict = reply.Job, said.Changed, reply.Generation, said.Verdict
				}
				failed = failed || out[from+i].Err != nil
			}
		}
		if failed {
			return fail(to, errkind.Errorf(errkind.Unavailable, "it was not submitted, since a job before it was refused"))
		}
	}
	return out
}

// submit sends one job to the gate. Whoever submits it is its owner; that is no part of its content, which is what it was before there
// were owners.
func (d *Sender) submit(ctx context.Context, j *Submission, stored executor.Workdir) (*call, error) {
	if err := Startable(j.Spec); err != nil {
		return nil, err
	}
	if j.Workdir != "" {
		var err error
		if stored, err = d.store.take(j); err != nil {
			return nil, err
		}
	}
	s := *j.Spec
	s.Launch.Workdir = stored.ID
	content := contentOf(&s) // without its size, which follows from the work directory: a retry is the same job to a later version
	s.Launch.Files, s.Launch.Bytes = stored.Files, stored.Bytes
	by := asker(ctx)
	s.Owner = by.Name
	return d.to.send(protocol.Message{Kind: protocol.Submit, To: gate(), Job: s.Name,
		Body: &protocol.Submission{Request: named(ctx, j.Request), Spec: &s, Digest: content, Replace: j.Replace, By: by}})
}

// Startable says what is wrong with a job that names nothing to start: no core looks into its command.
func Startable(s *job.Spec) error {
	if len(s.Launch.Command) == 0 || s.Launch.Command[0] == "" {
		return errkind.Errorf(errkind.Invalid, "job %q: spec.command: it names no program; write for example [sh, -c, ./count.sh]", s.Name)
	}
	return nil
}

// contentOf returns a digest of everything a person submitted: two specs have the same one only if they are the same.
func contentOf(s *job.Spec) string {
	sum := sha256.Sum256(wire.AppendContent(nil, s))
	return hex.EncodeToString(sum[:])
}

// Cancel ends a job. One that is over is left as it is, with an error of kind Conflict that says how it ended.
func (d *Sender) Cancel(ctx context.Context, request string, name job.ID) error {
	_, err := d.to.tell(ctx, protocol.Cancel, name, &protocol.Cancellation{Request: named(ctx, request), By: asker(ctx)})
	return err
}

// Requeue begins another life of a job that was cancelled, has failed or has expired; what it has committed stays. deadline
// is a new one, 0 for the one it has, Never for none. Errors: NotFound, Conflict (it is not over, or it is complete), Invalid.
func (d *Sender) Requeue(ctx context.Context, request string, name job.ID, deadline quantity.Instant) (job.Generation, error) {
	reply, err := d.to.tell(ctx, protocol.Requeue, name, &protocol.Requeueing{Request: named(ctx, request), Deadline: deadline,
		By: asker(ctx)})
	return reply.Generation, err
}

// Delete forgets a job that is over and removes its files. Errors: NotFound, Conflict (it is not over).
func (d *Sender) Delete(ctx context.Context, request string, name job.ID) error {
	_, err := d.to.tell(ctx, protocol.Delete, name, &protocol.Deletion{Request: named(ctx, request), By: asker(ctx)})
	return err
}

// PauseJob stops new windows for a job (pause true) or lets it go on.
func (d *Sender) PauseJob(ctx context.Context, request string, name job.ID, pause bool) error {
	_, err := d.to.tell(ctx, protocol.PauseJob, name, &protocol.Pause{Request: named(ctx, request), Paused: pause, By: asker(ctx)})
	return err
}

// SetQueue creates or changes a queue.
func (d *Sender) SetQueue(ctx context.Context, request string, q protocol.Queue) error {
	_, err := d.to.tell(ctx, protocol.SetQueue, "", &protocol.QueueSetting{Request: named(ctx, request), Queue: &q})
	return err
}

// DrainZone makes a zone give its jobs to others, for good.
func (d *Sender) DrainZone(ctx context.Context, request string, zone job.ZoneID) error {
	_, err := d.to.tell(ctx, protocol.DrainZone, "", &protocol.Draining{Request: named(ctx, request), Zone: zone})
	return err
}

// Forsake has gates and zones let go of a machine that has left for good, whose link is gone.
func (d *Sender) Forsake(zones []job.ZoneID, machine job.NodeID) {
	from := protocol.Address{Role: protocol.Person}
	to := []protocol.Address{gate()}
	for _, z := range zones {
		to = append(to, protocol.Address{Role: protocol.Zone, ID: string(z)})
	}
	for _, at := range to {
		d.to.inbox.Put(protocol.Message{Kind: protocol.Removed, From: from, To: at, Body: &protocol.Removal{Node: machine}})
	}
}

// Reserve takes time on a slice, or on all (empty slice), off the market and returns what stands for it on each.
func (d *Sender) Reserve(ctx context.Context, request string, r protocol.Reservation) ([]protocol.Made, error) {
	request = named(ctx, request)
	at, err := d.nodes.OfSlice(r.Slice)
	if err != nil {
		return nil, err
	}
	var made []protocol.Made
	for _, to := range at { // if one refuses, those before it stand, and the same request finds them again
		reply, err := d.to.call(ctx, protocol.Message{Kind: protocol.Reserve, To: to,
			Body: &protocol.Booking{Request: request, Reservation: &r}})
		if err != nil {
			return made, err
		}
		made = append(made, reply.Body.(*protocol.Receipt).Made...)
	}
	return made, nil
}

// Unreserve withdraws a reservation.
func (d *Sender) Unreserve(ctx context.Context, request string, id uint64) error {
	at, err := d.nodes.OfReservation(id)
	if err != nil {
		return err
	}
	_, err = d.to.call(ctx, protocol.Message{Kind: protocol.Unreserve, To: at,
		Body: &protocol.Booking{Request: named(ctx, request), Reservation: &protocol.Reservation{ID: id}}})
	return err
}

// Release lifts a quarantine after a person has looked, and reports whether there was one.
func (d *Sender) Release(ctx context.Context, request string, slice job.SliceID) (said string, err error) {
	at, err := d.nodes.OfSlice(slice)
	if err != nil {
		return "", err
	}
	reply, err := d.to.call(ctx, protocol.Message{Kind: protocol.Unquarantine, To: at[0],
		Body: &protocol.Clearance{Request: named(ctx, request), Slice: slice}})
	if err != nil {
		return "", err
	}
	return reply.Body.(*protocol.Receipt).Text, nil
}
