package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"runtime"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/wire"
)

// Submit accepts a job durably. snapshot is a tar.gz of the work directory, or nil. The same request, or the same name
// with the same content, is the same job; Created is false then. When it returns an error of kind Unavailable or
// Exhausted the job may still have been accepted: ask again with the same request.
func (h *Host) Submit(ctx context.Context, request string, spec *job.Spec, snapshot []byte) (Receipt, error) {
	return h.submit(ctx, request, spec, snapshot, false)
}

// Replace is Submit in place of a job of that name that is over: its output, checkpoints and logs are removed. A job that is
// not over is in the way (Conflict); where there is none it is Submit.
func (h *Host) Replace(ctx context.Context, request string, spec *job.Spec, snapshot []byte) (Receipt, error) {
	return h.submit(ctx, request, spec, snapshot, true)
}

func (h *Host) submit(ctx context.Context, request string, spec *job.Spec, snapshot []byte, replace bool) (Receipt, error) {
	if err := startable(spec); err != nil {
		return Receipt{}, err
	}
	s := *spec
	var size executor.Snapshot
	if len(snapshot) > 0 {
		if t := h.trouble.Load(); t != nil {
			return Receipt{}, t.err() // before anything is stored
		}
		if h.files == nil {
			return Receipt{}, errkind.Errorf(errkind.Unsupported, "job %s: this daemon stores no work directories: submit it without one", spec.Name)
		}
		stored, err := h.files.PutSnapshot(snapshot)
		if err != nil {
			return Receipt{}, errkind.Errorf(errkind.Of(err), "job %s: store the work directory: %w", spec.Name, err)
		}
		s.Launch.Snapshot, size = stored.ID, stored
	}
	content := contentOf(&s) // without its size, which follows from the snapshot: a retry is the same job to a later version
	s.Launch.Files, s.Launch.Bytes = size.Files, size.Bytes
	reply, position, err := h.call(ctx, protocol.Message{
		Kind: protocol.Submit, To: h.gateAddress(), Request: request, Job: s.Name, Spec: &s, Digest: content, Flag: replace,
	})
	if err != nil {
		return Receipt{}, err
	}
	return Receipt{Name: reply.Job, Created: reply.Flag, Generation: reply.Generation, Verdict: reply.Verdict, Position: position}, nil
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
	sum := sha256.Sum256(wire.AppendMessage(nil, &protocol.Message{Kind: protocol.Submit, Spec: s}))
	return hex.EncodeToString(sum[:])
}

func (h *Host) gateAddress() protocol.Address { return protocol.Address{Role: protocol.Gate} }

// DryRun says what Submit would do and when the job would start, and changes nothing.
func (h *Host) DryRun(ctx context.Context, spec *job.Spec) (status.Explanation, error) {
	type result struct {
		explanation status.Explanation
		err         error
	}
	r, err := ask(ctx, h, func(now quantity.Instant) result {
		if err := errors.Join(startable(spec), h.actors.Gate.Check(now, spec)); err != nil {
			return result{err: errkind.Errorf(errkind.Of(err), "%w", err)}
		}
		return result{explanation: h.actors.Zone.DryRun(now, spec)}
	})
	if err == nil {
		err = r.err
	}
	return r.explanation, err
}

// Cancel ends a job. One that is over is left as it is, with an error of kind Conflict that says how it ended.
func (h *Host) Cancel(ctx context.Context, request string, name job.ID) error {
	_, _, err := h.call(ctx, protocol.Message{Kind: protocol.Cancel, To: h.gateAddress(), Request: request, Job: name})
	return err
}

// Requeue begins another life of a job that was cancelled, has failed or has expired; what it has committed stays. deadline
// is a new one, 0 for the one it has, Never for none. Errors: NotFound, Conflict (it is not over, or it is complete), Invalid.
func (h *Host) Requeue(ctx context.Context, request string, name job.ID, deadline quantity.Instant) (job.Generation, error) {
	reply, _, err := h.call(ctx, protocol.Message{Kind: protocol.Requeue, To: h.gateAddress(), Request: request, Job: name, At: deadline})
	return reply.Generation, err
}

// Delete forgets a job that is over and removes its files. Errors: NotFound, Conflict (it is not over).
func (h *Host) Delete(ctx context.Context, request string, name job.ID) error {
	_, _, err := h.call(ctx, protocol.Message{Kind: protocol.Delete, To: h.gateAddress(), Request: request, Job: name})
	return err
}

// PauseJob stops new windows for a job (pause true) or lets it go on.
func (h *Host) PauseJob(ctx context.Context, request string, name job.ID, pause bool) error {
	_, _, err := h.call(ctx, protocol.Message{Kind: protocol.PauseJob, To: h.gateAddress(), Request: request, Job: name, Flag: pause})
	return err
}

// SetQueue creates or changes a queue.
func (h *Host) SetQueue(ctx context.Context, request string, q protocol.Queue) error {
	_, _, err := h.call(ctx, protocol.Message{Kind: protocol.SetQueue, To: h.gateAddress(), Request: request, Queue: &q})
	return err
}

// Reserve takes time on a slice, or on all (empty slice), off the market and returns what stands for it on each.
func (h *Host) Reserve(ctx context.Context, request string, r protocol.Reservation) ([]protocol.Made, error) {
	reply, _, err := h.call(ctx, protocol.Message{Kind: protocol.Reserve, To: h.nodeAddress(), Request: request, Reservation: &r})
	return reply.Made, err
}

// Cuts says what a reservation that cuts running subjobs short would cost, and changes nothing.
func (h *Host) Cuts(ctx context.Context, r protocol.Reservation) ([]status.Cut, error) {
	type result struct {
		cuts []status.Cut
		err  error
	}
	answer, err := ask(ctx, h, func(now quantity.Instant) result {
		cuts, err := h.actors.Node.Cuts(now, r)
		return result{h.actors.Zone.Costs(cuts), err}
	})
	if err == nil {
		err = answer.err
	}
	return answer.cuts, err
}

// Unreserve withdraws a reservation.
func (h *Host) Unreserve(ctx context.Context, request string, id uint64) error {
	_, _, err := h.call(ctx, protocol.Message{Kind: protocol.Unreserve, To: h.nodeAddress(), Request: request, Reservation: &protocol.Reservation{ID: id}})
	return err
}

// Release lifts a quarantine after a person has looked.
func (h *Host) Release(ctx context.Context, request string, slice job.SliceID) error {
	_, _, err := h.call(ctx, protocol.Message{Kind: protocol.Release, To: h.nodeAddress(), Request: request, Slice: slice})
	return err
}

// Metrics serves Prometheus' text format.
func (h *Host) Metrics() http.Handler { return h.observer.Metrics() }

// Health answers 200 while the daemon decides, and 503 with the reason otherwise.
func (h *Host) Health() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text, code := "ok\n", http.StatusOK
		if t := h.troubles(); t != "" {
			text, code = t+"\n", http.StatusServiceUnavailable
		}
		select {
		case <-h.done:
			text, code = errStopping().Error()+"\n", http.StatusServiceUnavailable
		default:
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text)) // a probe that hung up has its answer
	})
}

// About is what the daemon is and where it stands.
func (h *Host) About(ctx context.Context) (status.About, error) {
	return ask(ctx, h, func(now quantity.Instant) status.About {
		bytes, _ := h.journal.Size()
		a := status.About{
			Version: h.opts.Version, Commit: h.opts.Commit, Go: runtime.Version(),
			Node: h.opts.NodeID, DataDir: h.opts.DataDir, Listen: h.opts.Listen,
			Mechanism: h.opts.Mechanism, Policy: h.opts.Policy, SingleUser: h.opts.SingleUser,
			Isolation: h.executor.Isolation(), Inventory: h.opts.Inventory.Describe(),
			Started: h.started, Uptime: now.Sub(h.started),
			JournalBytes: bytes, JournalSeq: h.position.Seq,
		}
		a.Trouble = h.troubles()
		return a
	})
}
