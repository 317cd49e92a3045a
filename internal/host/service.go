package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"runtime"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/wire"
)

// Submit is SubmitAll of one job.
func (h *Host) Submit(ctx context.Context, request string, spec *job.Spec, snapshot []byte) (Receipt, error) {
	o := h.SubmitAll(ctx, []Submission{{Request: request, Spec: spec}}, snapshot)
	return o[0].Receipt, o[0].Err
}

// submitTogether is how many jobs of one call are on their way at once.
const submitTogether = 64

// SubmitAll accepts jobs durably, in their order, and answers for each. snapshot is a tar.gz of the work directory of all of them, or
// nil. The same request, or the same name with the same content, is the same job; Created is false then. An error of kind Unavailable
// or Exhausted: the job may still have been accepted, ask again with the same request. Jobs go together, so that they share a sync;
// after an error no more are sent, and those behind it that were not have an error of kind Unavailable.
func (h *Host) SubmitAll(ctx context.Context, jobs []Submission, snapshot []byte) []Outcome {
	out := make([]Outcome, len(jobs))
	fail := func(from int, err error) []Outcome {
		for i := from; i < len(jobs); i++ {
			out[i].Err = err
		}
		return out
	}
	if err := h.refusal(); err != nil { // before anything is stored
		return fail(0, err)
	}
	stored, err := h.store(jobs, snapshot)
	if err != nil {
		return fail(0, err)
	}
	for from := 0; from < len(jobs); from += submitTogether {
		to := min(from+submitTogether, len(jobs))
		sent, failed := make([]*call, to-from), false
		for i := from; i < to; i++ {
			if sent[i-from], out[i].Err = h.submit(&jobs[i], stored); out[i].Err != nil {
				failed = true
			}
		}
		for i, c := range sent {
			if c != nil {
				var reply protocol.Message
				reply, out[from+i].Position, out[from+i].Err = h.answer(ctx, c)
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

// store keeps the work directory of the jobs; nothing, if there is none.
func (h *Host) store(jobs []Submission, snapshot []byte) (executor.Snapshot, error) {
	if len(snapshot) == 0 || len(jobs) == 0 {
		return executor.Snapshot{}, nil
	}
	name := jobs[0].Spec.Name
	if h.files == nil {
		return executor.Snapshot{}, errkind.Errorf(errkind.Unsupported, "job %s: this daemon stores no work directories: submit it without one", name)
	}
	stored, err := h.files.PutSnapshot(snapshot)
	if err != nil {
		return executor.Snapshot{}, errkind.Errorf(errkind.Of(err), "job %s: store the work directory: %w", name, err)
	}
	return stored, nil
}

// take keeps a work directory that is in the store already for a job.
func (h *Host) take(j *Submission) (executor.Snapshot, error) {
	if h.files == nil {
		return executor.Snapshot{}, errkind.Errorf(errkind.Unsupported, "job %s: this daemon stores no work directories: submit it without one", j.Spec.Name)
	}
	stored, err := h.files.TakeSnapshot(j.Workdir)
	if err != nil {
		return stored, errkind.Errorf(errkind.Of(err), "job %s: spec.workdir: %w", j.Spec.Name, err)
	}
	return stored, nil
}

// submit sends one job to the gate.
func (h *Host) submit(j *Submission, stored executor.Snapshot) (*call, error) {
	if err := startable(j.Spec); err != nil {
		return nil, err
	}
	if j.Workdir != "" {
		var err error
		if stored, err = h.take(j); err != nil {
			return nil, err
		}
	}
	s := *j.Spec
	s.Launch.Snapshot = stored.ID
	content := contentOf(&s) // without its size, which follows from the snapshot: a retry is the same job to a later version
	s.Launch.Files, s.Launch.Bytes = stored.Files, stored.Bytes
	return h.send(protocol.Message{Kind: protocol.Submit, To: h.gateAddress(), Body: &protocol.Submission{Request: named(j.Request), Spec: &s, Digest: content, Replace: j.Replace}, Job: s.Name})
}

// startable says what is wrong with a job that names nothing to start: no core looks into its command.
func startable(s *job.Spec) error {
	if len(s.Launch.Command) == 0 || s.Launch.Command[0] == "" {
		return errkind.Errorf(errkind.Invalid, "job %q: spec.command: it names no program; write for example [sh, -c, ./count.sh]", s.Name)
	}
	return nil
}

// contentOf is a digest of everything a person submitted: two specs have the same one only if they are the same.
func contentOf(s *job.Spec) string {
	sum := sha256.Sum256(wire.AppendContent(nil, s))
	return hex.EncodeToString(sum[:])
}

func (h *Host) gateAddress() protocol.Address { return protocol.Address{Role: protocol.Gate} }

// Check says of each job what would keep it from being accepted, and changes nothing; nil for one that would be accepted, and for one
// whose name is taken: it is the same job again, or is refused in its turn.
func (h *Host) Check(ctx context.Context, specs []*job.Spec) ([]error, error) {
	out := make([]error, 0, len(specs))
	for part := range slices.Chunk(specs, pageTurn) {
		errs, err := ask(ctx, h, func(now quantity.Instant) []error {
			errs := make([]error, len(part))
			for i, s := range part {
				if h.actors.GateOf(s.Name).Life(s.Name) == 0 {
					errs[i] = h.check(now, s)
				}
			}
			return errs
		})
		if err != nil {
			return nil, err
		}
		out = append(out, errs...)
	}
	return out, nil
}

// check says from within the loop what keeps a job from being accepted.
func (h *Host) check(now quantity.Instant, s *job.Spec) error {
	if err := errors.Join(startable(s), h.actors.GateOf(s.Name).Check(now, s)); err != nil {
		return errkind.Errorf(errkind.Of(err), "%w", err)
	}
	return nil
}

// DryRun says what Submit would do and when the job would start, and changes nothing.
func (h *Host) DryRun(ctx context.Context, spec *job.Spec) (status.Explanation, error) {
	type result struct {
		explanation status.Explanation
		err         error
	}
	r, err := ask(ctx, h, func(now quantity.Instant) result {
		if err := h.check(now, spec); err != nil {
			return result{err: err}
		}
		return result{explanation: h.dryRun(now, spec)}
	})
	if err == nil {
		err = r.err
	}
	return r.explanation, err
}

// Cancel ends a job. One that is over is left as it is, with an error of kind Conflict that says how it ended.
func (h *Host) Cancel(ctx context.Context, request string, name job.ID) error {
	_, err := h.call(ctx, protocol.Message{Kind: protocol.Cancel, To: h.gateAddress(), Body: &protocol.Cancellation{Request: named(request)}, Job: name})
	return err
}

// Requeue begins another life of a job that was cancelled, has failed or has expired; what it has committed stays. deadline
// is a new one, 0 for the one it has, Never for none. Errors: NotFound, Conflict (it is not over, or it is complete), Invalid.
func (h *Host) Requeue(ctx context.Context, request string, name job.ID, deadline quantity.Instant) (job.Generation, error) {
	reply, err := h.call(ctx, protocol.Message{Kind: protocol.Requeue, To: h.gateAddress(), Body: &protocol.Requeueing{Request: named(request), Deadline: deadline}, Job: name})
	return reply.Generation, err
}

// Delete forgets a job that is over and removes its files. Errors: NotFound, Conflict (it is not over).
func (h *Host) Delete(ctx context.Context, request string, name job.ID) error {
	_, err := h.call(ctx, protocol.Message{Kind: protocol.Delete, To: h.gateAddress(), Body: &protocol.Deletion{Request: named(request)}, Job: name})
	return err
}

// PauseJob stops new windows for a job (pause true) or lets it go on.
func (h *Host) PauseJob(ctx context.Context, request string, name job.ID, pause bool) error {
	_, err := h.call(ctx, protocol.Message{Kind: protocol.PauseJob, To: h.gateAddress(), Body: &protocol.Pause{Request: named(request), Held: pause}, Job: name})
	return err
}

// SetQueue creates or changes a queue.
func (h *Host) SetQueue(ctx context.Context, request string, q protocol.Queue) error {
	_, err := h.call(ctx, protocol.Message{Kind: protocol.SetQueue, To: h.gateAddress(), Body: &protocol.QueueSetting{Request: named(request), Queue: &q}})
	return err
}

// DrainZone has a zone give its jobs to others, for good.
func (h *Host) DrainZone(ctx context.Context, request string, zone job.ZoneID) error {
	_, err := h.call(ctx, protocol.Message{Kind: protocol.DrainZone, To: h.gateAddress(), Body: &protocol.Draining{Request: named(request), Zone: zone}})
	return err
}

// Reserve takes time on a slice, or on all (empty slice), off the market and returns what stands for it on each.
func (h *Host) Reserve(ctx context.Context, request string, r protocol.Reservation) ([]protocol.Made, error) {
	request = named(request)
	var made []protocol.Made
	for _, i := range h.nodesOf(r.Slice) { // where one refuses, those before it stand, and the same request finds them again
		reply, err := h.call(ctx, protocol.Message{Kind: protocol.Reserve, To: h.nodeAddress(i), Body: &protocol.Booking{Request: request, Reservation: &r}})
		if err != nil {
			return made, err
		}
		made = append(made, reply.Body.(*protocol.Receipt).Made...)
	}
	return made, nil
}

// CutsOf says what it would cost to take slices back now, those left out of which nothing is known, and changes nothing.
func (h *Host) CutsOf(ctx context.Context, ids []job.SliceID) ([]status.Cut, error) {
	return ask(ctx, h, func(now quantity.Instant) (all []status.Cut) {
		for _, id := range ids {
			if some, err := h.cuts(now, protocol.Reservation{Kind: protocol.ForReclaim, Slice: h.full(id), End: quantity.Never, Truncate: true}); err == nil {
				all = append(all, some...)
			}
		}
		return all
	})
}

// Cuts says what a reservation that cuts running subjobs short would cost, and changes nothing.
func (h *Host) Cuts(ctx context.Context, r protocol.Reservation) ([]status.Cut, error) {
	type result struct {
		cuts []status.Cut
		err  error
	}
	answer, err := ask(ctx, h, func(now quantity.Instant) result {
		cuts, err := h.cuts(now, r)
		return result{cuts, err}
	})
	if err == nil {
		err = answer.err
	}
	return answer.cuts, err
}

// Unreserve withdraws a reservation.
func (h *Host) Unreserve(ctx context.Context, request string, id uint64) error {
	_, err := h.call(ctx, protocol.Message{Kind: protocol.Unreserve, To: h.nodeAddress(h.nodeOfReservation(id)), Body: &protocol.Booking{Request: named(request), Reservation: &protocol.Reservation{ID: id}}})
	return err
}

// Release lifts a quarantine after a person has looked, and says so, or that there was none.
func (h *Host) Release(ctx context.Context, request string, slice job.SliceID) (said string, err error) {
	reply, err := h.call(ctx, protocol.Message{Kind: protocol.Release, To: h.nodeAddress(h.nodesOf(slice)[0]),
		Body: &protocol.Clearance{Request: named(request), Slice: slice}})
	if err != nil {
		return "", err
	}
	return reply.Body.(*protocol.Receipt).Text, nil
}

// Metrics serves Prometheus' text format.
func (h *Host) Metrics() http.Handler { return h.observer.Metrics() }

// About is what the daemon is and where it stands.
func (h *Host) About(ctx context.Context) (status.About, error) {
	return ask(ctx, h, func(now quantity.Instant) status.About {
		bytes, _ := h.journal.Size()
		a := status.About{
			Version: h.opts.Version, Commit: h.opts.Commit, Go: runtime.Version(),
			Node: h.opts.Machine, DataDir: h.opts.DataDir, Listen: h.opts.Listen,
			Mechanism: h.opts.Mechanism, Policy: h.opts.Policy, SingleUser: h.opts.SingleUser,
			Isolation: h.executor.Isolation(), Inventory: h.opts.Inventory.Describe(),
			Started: h.started, Uptime: now.Sub(h.started),
			JournalBytes: bytes, JournalSeq: h.position.Seq,
		}
		a.Trouble, a.Nodes = h.troubles(), slices.Clone(h.nodes)
		for i := range h.actors.Zones {
			a.Zones = append(a.Zones, h.actors.Zones[i].ID)
		}
		return a
	})
}
