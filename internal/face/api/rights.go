package api

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/host"
)

// need is what a caller must be for a procedure.
type need uint8

const (
	// everybody who was let in: who waits and runs is no secret, as in Slurm.
	everybody need = iota + 1
	// submits: to queues of the caller's own, unless the caller is an admin.
	submits
	// changes: jobs of the caller's own, unless the caller is an operator or an admin. The gate decides that, where the job is.
	changes
	// reads: what jobs of the caller's own write, unless the caller is an admin.
	reads
	// operates: an operator or an admin.
	operates
	// administers: an admin.
	administers
	// negotiates: an agent, by its job's key.
	negotiates
)

// needs is what each procedure needs. One that is not here is refused.
var needs = map[string]need{ //nolint:gochecknoglobals // a table, written to by nobody
	pb.SluiceServiceSubmitProcedure:       submits,
	pb.SluiceServiceDryRunProcedure:       submits,
	pb.SluiceServiceCancelProcedure:       changes,
	pb.SluiceServiceRequeueProcedure:      changes,
	pb.SluiceServiceDeleteProcedure:       changes,
	pb.SluiceServicePauseJobProcedure:     changes,
	pb.SluiceServiceListJobsProcedure:     everybody,
	pb.SluiceServiceGetJobProcedure:       everybody,
	pb.SluiceServiceWaitJobProcedure:      everybody,
	pb.SluiceServiceExplainProcedure:      everybody,
	pb.SluiceServiceListSlicesProcedure:   everybody,
	pb.SluiceServiceListWindowsProcedure:  everybody,
	pb.SluiceServiceListQueuesProcedure:   everybody,
	pb.SluiceServiceListZonesProcedure:    everybody,
	pb.SluiceServiceListAirlocksProcedure: everybody,
	pb.SluiceServiceHistoryProcedure:      everybody,
	pb.SluiceServiceAboutProcedure:        everybody,
	pb.SluiceServiceDrainZoneProcedure:    administers,
	pb.SluiceServiceSetQueueProcedure:     operates,
	pb.SluiceServiceReserveProcedure:      operates,
	pb.SluiceServiceUnreserveProcedure:    operates,
	pb.SluiceServiceReleaseProcedure:      operates,
	pb.SluiceServiceLogsProcedure:         reads,
	pb.SluiceServiceListOutputsProcedure:  reads,
	pb.SluiceServiceReadOutputProcedure:   reads,
	pb.SluiceServiceAgentKeyProcedure:     reads,
	pb.SluiceServiceNegotiateProcedure:    negotiates,
	pb.NodeServiceListNodesProcedure:      everybody,
	pb.NodeServiceCreateTokenProcedure:    administers,
	pb.NodeServiceRemoveNodeProcedure:     administers,
	pb.UserServiceWhoAmIProcedure:         everybody,
	pb.UserServiceListUsersProcedure:      administers,
	pb.UserServiceAddUserProcedure:        administers,
	pb.UserServiceReplaceTokenProcedure:   administers,
	pb.UserServiceRemoveUserProcedure:     administers,

	pb.ProviderServiceListProvidersProcedure:  everybody,
	pb.ProviderServicePauseProviderProcedure:  operates,
	pb.ProviderServiceResumeProviderProcedure: operates,
	pb.ProviderServiceTryProviderProcedure:    operates,
}

// rights refuses calls that the caller's role does not suffice for. What depends on a job or a queue is checked where that is known.
type rights struct{}

// WrapUnary is part of connect.Interceptor.
func (rights) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := may(ctx, req.Spec().Procedure); err != nil {
			return nil, wire(err)
		}
		return next(ctx, req)
	}
}

// WrapStreamingClient is part of connect.Interceptor; the server has none.
func (rights) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler is part of connect.Interceptor.
func (rights) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := may(ctx, conn.Spec().Procedure); err != nil {
			return wire(err)
		}
		return next(ctx, conn)
	}
}

// may says why the caller may not call a procedure, whatever it is about.
func may(ctx context.Context, procedure string) error {
	least, who := users.User, ""
	switch needs[procedure] {
	case negotiates:
		return nil
	case everybody, submits, changes, reads:
	case operates:
		least, who = users.Operator, "operators and admins"
	case administers:
		least, who = users.Admin, "admins"
	default:
		return errkind.Errorf(errkind.Denied, "%s: nothing says who may call it, which is a bug; please report this", procedure)
	}
	switch c := users.Of(ctx); {
	case c == nil:
		return errkind.Errorf(errkind.Denied, "%s: nobody has found out who calls, which is a bug; please report this", procedure)
	case c.Role < least:
		name := procedure[strings.LastIndex(procedure, "/")+1:]
		return errkind.Errorf(errkind.Denied, "%s is for %s, and you are %s: ask one of them", name, who, c.Who())
	}
	return nil
}

// maySubmit refuses a file with a job for a queue that the caller may not submit to, and names all of them.
func maySubmit(ctx context.Context, jobs []config.Job) error {
	c := users.Of(ctx)
	if c == nil {
		return nil
	}
	var errs []error
	for i := range jobs {
		if q := jobs[i].Spec.Queue; !c.Submits(q) {
			errs = append(errs, of(jobs, i, fmt.Errorf("spec.queue: you are %s and may not submit to queue %s; you may to %s", c.Who(), q,
				queuesOf(c))))
		}
	}
	if len(errs) > 0 {
		return errkind.Errorf(errkind.Denied, "%w", errors.Join(errs...))
	}
	return nil
}

func queuesOf(c *users.Caller) string {
	if len(c.Queues) == 0 {
		return "none: ask an admin"
	}
	return strings.Join(c.Queues, ", ")
}

// mayRequeue refuses another life in a queue that a user may submit to no more.
func (h *handler) mayRequeue(ctx context.Context, name job.ID) error {
	c := users.Of(ctx)
	if c == nil || c.Role > users.User {
		return nil
	}
	list, err := h.service.Standing(ctx, []job.ID{name})
	if err != nil || c.Submits(list[0].Queue) || !c.Reads(list[0].Owner()) { // the gate refuses another's job
		return err
	}
	return errkind.Errorf(errkind.Denied, "job %q is in queue %s, and you are %s and may not submit to it any more; you may to %s", name,
		list[0].Queue, c.Who(), queuesOf(c))
}

// mayRead refuses what a job of somebody else writes.
func (h *handler) mayRead(ctx context.Context, name job.ID) error {
	c := users.Of(ctx)
	if c == nil || c.Role == users.Admin {
		return nil
	}
	list, err := h.service.Standing(ctx, []job.ID{name})
	if err != nil || c.Reads(list[0].Owner()) {
		return err
	}
	whose := "of user " + list[0].Owner()
	if list[0].Owner() == "" {
		whose = "of nobody who is known"
	}
	return errkind.Errorf(errkind.Denied, "job %q is %s, and you are %s: logs, outputs and keys of agents are for its owner and admins; "+
		"ask one of them", name, whose, c.Who())
}

// mayMap refuses to have a queue's jobs run as another user of the machine: who may choose that may do what any of them may.
func (h *handler) mayMap(ctx context.Context, q *protocol.Queue) error {
	c := users.Of(ctx)
	if c == nil || c.Role == users.Admin {
		return nil
	}
	list, err := h.service.Queues(ctx)
	if err != nil {
		return err
	}
	was := ""
	for i := range list {
		if list[i].Queue.Name == q.Name {
			was = list[i].Queue.User
		}
	}
	if was == q.User {
		return nil
	}
	return errkind.Errorf(errkind.Denied, "queue %s: its jobs run as user %q, and would as %q: that is for admins, and you are %s: ask "+
		"one of them, or leave the user as it is", q.Name, was, q.User, c.Who())
}

// mayReadAs is mayRead of a request that is right so far.
func (h *handler) mayReadAs(ctx context.Context, f *fields, name job.ID) error {
	if err := f.err(); err != nil {
		return err
	}
	return h.mayRead(ctx, name)
}

// readable tells pieces of a job's logs for as long as the caller may read it: another user's job could get its name meanwhile. A
// subjob is of one job for good.
func (h *handler) readable(ctx context.Context, name job.ID, tell func(host.LogPiece) error) func(host.LogPiece) error {
	known := map[job.Token]bool{}
	return func(p host.LogPiece) error {
		if !known[p.Token] {
			if err := h.mayRead(ctx, name); err != nil {
				return err
			}
			known[p.Token] = true
		}
		return tell(p)
	}
}
