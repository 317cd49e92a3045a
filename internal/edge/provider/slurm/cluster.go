package slurm

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

// cluster is how a Slurm is asked: by its commands (commands) or through slurmrestd (restful). What follows from the answers is decided
// above it, for both alike. Errors are those of provider.Provider.
type cluster interface {
	// queue is all jobs, anybody's.
	queue(ctx context.Context) ([]row, error)
	// preempted are when Slurm has taken jobs of a queue back, by id; zero, or not there: it has not.
	preempted(ctx context.Context, ids []string, rows []row) (map[string]time.Time, error)
	// hosts are the nodes of the partition that take jobs now. none: no node is of the partition. Denied: nodes are private.
	hosts(ctx context.Context) (list []host, none bool, err error)
	// bookings are the reservations of others, and the own one. Denied: they are private.
	bookings(ctx context.Context) (others []booking, own *booking, err error)
	// longest is the longest that the partition takes; 0: any. Invalid: there is no such partition.
	longest(ctx context.Context) (time.Duration, error)
	// submit asks for a pilot.
	submit(ctx context.Context, o order) error
	// try says whether Slurm would take it. Unsupported: this way can't ask that.
	try(ctx context.Context, o order) (provider.Trial, error)
	// words are how it is asked for, for people.
	words(o order) string
	// end ends jobs that have a name still; those that are gone are no error.
	end(ctx context.Context, job string, ids []string) error
}

// order is a pilot that is asked for.
type order struct {
	pilot provider.Pilot
	// job is its name at Slurm.
	job, script string
	// token goes through Slurm itself, in the job's environment; empty: it is in a file.
	token string
}

// unclear is the error for an answer that is not understood.
func unclear(what string, err error) error {
	return errkind.Errorf(errkind.Unavailable, "%s: its answer is not understood: %w", what, err)
}

// noPartition is the error where a cluster has not the partition.
func (o *Options) noPartition() error {
	return errkind.Errorf(errkind.Invalid, "slurm: partition %s: there is none of this name that you may use: see sinfo", o.Partition)
}

// comment of each pilot's job.
func (o *Options) comment() string { return "pilot of Sluice, pool " + o.Pool }
