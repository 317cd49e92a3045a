package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/host"
)

// singleUser reports whether all subjobs run as the daemon's own user. Then nobody else may be served: a queue with a user
// and an address beyond this machine are refused. Where queues have users all of them must, and each user must be able to
// reach its directories below data. Callers but the daemon's own user show a token then: everybody on the machine can reach a loopback
// address, a subjob too.
func singleUser(o Options, data string) (bool, error) {
	var errs []error
	var without []string
	for _, q := range o.File.Queues {
		if q.User == "" {
			without = append(without, q.Name)
			continue
		}
		u, err := lookup(q.User)
		if err == nil {
			err = process.Reachable(filepath.Dir(data), u) // the directory itself is opened when it is there
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("queue %s: %w", q.Name, err))
		}
	}
	single := len(without) == len(o.File.Queues)
	if !single {
		if os.Geteuid() != 0 {
			errs = append(errs, errors.New("queues with a user need a daemon that runs as root: only root can start subjobs as others"))
		}
		if len(without) > 0 {
			errs = append(errs, fmt.Errorf("queues without a user beside queues with one: %s; their subjobs would run as this daemon's "+
				"own user: give each a user in --config",
				strings.Join(without, ", ")))
		}
	}
	if host, _, err := net.SplitHostPort(o.Listen); err == nil && single && !loopback(host) {
		errs = append(errs, fmt.Errorf("--listen %s: in single-user mode Sluice serves this machine alone, because what is submitted "+
			"runs as this daemon's user; "+
			"run it as root and give every queue a user in --config, or listen on 127.0.0.1", o.Listen))
	}
	if err := errors.Join(errs...); err != nil {
		return single, errkind.Errorf(errkind.Denied, "%w", err)
	}
	return single, nil
}

// tenants is a daemon's service that keeps to what was said of its users at the start: one user and no second, or a user
// for each queue, and the queues of the file as the file has them.
type tenants struct {
	api.Service
	single bool
	// file is the name of the daemon's file, given the queues in it.
	file  string
	given []protocol.Queue
}

// SubmitAll refuses all jobs if one is in a queue without a user.
func (t tenants) SubmitAll(ctx context.Context, jobs []api.Submission, workdir []byte) []api.Outcome {
	for i := range jobs {
		if err := t.owned(ctx, jobs[i].Spec.Queue); err != nil {
			out := make([]api.Outcome, len(jobs))
			for i := range out {
				out[i].Err = err
			}
			return out
		}
	}
	return t.Service.SubmitAll(ctx, jobs, workdir)
}

// DryRun refuses what Submit would.
func (t tenants) DryRun(ctx context.Context, spec *job.Spec) (status.Explanation, error) {
	if err := t.owned(ctx, spec.Queue); err != nil {
		return status.Explanation{}, err
	}
	return t.Service.DryRun(ctx, spec)
}

// SetQueue refuses a user where there is one for all, a queue without a user where each has its own, and other settings than the daemon's
// file has for a queue: its next start would take them back.
func (t tenants) SetQueue(ctx context.Context, request string, q protocol.Queue) error {
	switch {
	case t.single && q.User != "":
		return errkind.Errorf(errkind.Denied, "queue %s: user %s: this daemon is in single-user mode, every subjob runs as its own user; "+
			"leave the user out, or start the daemon as root with a user for each queue in --config", q.Name, q.User)
	case !t.single && q.User == "":
		return errkind.Errorf(errkind.Denied, "queue %s: has no user, and this daemon serves several users: its subjobs would run as "+
			"the daemon's own; give it one (--user)", q.Name)
	case !t.single:
		if _, err := lookup(q.User); err != nil {
			return fmt.Errorf("queue %s: %w", q.Name, err)
		}
	}
	for _, g := range t.given {
		if g.Name == q.Name && g != q {
			return errkind.Errorf(errkind.Conflict,
				"queue %s: %s names it, and each start of the daemon sets it as it is there: "+
					"change it in that file and restart the daemon, which disturbs no subjob; or take it out of the file, restart once, "+
					"and set it", q.Name, t.file)
		}
	}
	return t.Service.SetQueue(ctx, request, q)
}

// owned reports whether a queue's subjobs have a user to run as. A queue that does not exist is for the service to refuse;
// the default one always does, though it is listed only once it was set or used.
func (t tenants) owned(ctx context.Context, queue string) error {
	if t.single {
		return nil
	}
	list, err := t.Queues(ctx)
	if err != nil {
		return err
	}
	known := queue == config.DefaultQueue
	for _, q := range list {
		if q.Queue.Name == queue {
			if q.Queue.User != "" {
				return nil
			}
			known = true
		}
	}
	if known {
		return nobodys(queue)
	}
	return nil
}

func nobodys(queue string) error {
	return errkind.Errorf(errkind.Denied, "spec.queue: queue %s has no user, and this daemon serves several users: choose another "+
		"queue, or give it a user (sluice queue set %s --user NAME)", queue, queue)
}

// userOf returns the user that a queue's subjobs run as; nil for the daemon's own user, which only single-user mode allows.
func userOf(h *host.Host, queue string, single bool) (*shim.User, error) {
	list, err := h.Queues(context.Background())
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		if q.Queue.Name == queue && q.Queue.User != "" {
			return lookup(q.Queue.User)
		}
	}
	if !single {
		return nil, nobodys(queue)
	}
	return nil, nil
}

func lookup(name string) (*shim.User, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "user %s: %w", name, err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user %s: %w", name, err)
	}
	return &shim.User{Name: name, UID: uint32(uid), GID: uint32(gid)}, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
