//go:build kubernetes

package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/host"
)

// Options of an operator.
type Options struct {
	// Cluster is the API server's configuration, without a rate limit.
	Cluster *rest.Config
	// Name of the operator, its lease and its node, and part of its Pods' names: a DNS label of at most 16 characters.
	Name string
	// Namespace is the operator's own, with its lease. Watch is the namespace whose jobs it takes; empty: all.
	Namespace, Watch string
	// JobNamespaces are where it may create Pods; jobs of others are refused. None: all.
	JobNamespaces []string
	// DataDir holds its durable state.
	DataDir string
	// NewJournal allows an empty journal where the cluster shows traces of an earlier one (notLost).
	NewJournal bool
	// Identity in the lease. Two processes with the same one would hold it together.
	Identity string
	// Lease is the lease's duration; 0: 15 s.
	Lease time.Duration
	// Listen is the API's address, loopback only; Health is that of health and metrics.
	Listen, Health string
	// Policy, Mechanism (sja or jasda) and Horizon are as for a daemon.
	Policy    policy.Policy
	Mechanism string
	Horizon   time.Duration
	// Die ends the process at once when it can't stop in order before another operator may begin; nil: os.Exit.
	Die func()
	// Retention of jobs that are over.
	Retention config.Retention
	// Parts makes the inventory of these pools, and the executor for tokens of that journal.
	Parts func(ctx context.Context, journal Journal, pools []config.SlicePool) (Parts, error)
	// Ready is called once it has the lease and works; nil: nothing is called.
	Ready func(api, health string)
	Log   *slog.Logger
	// Version and Commit identify the build.
	Version, Commit string
}

// Parts are the kinds of an operator.
type Parts struct {
	// Inventory of the cluster. The operator closes it.
	Inventory inventory.Inventory
	// Offer replaces the inventory's pools; on an error they stay as they were.
	Offer func([]config.SlicePool) error
	// LeftOut says what of a pool is not offered, and why; nil: nobody knows.
	LeftOut func(pool string) string
	// Executor makes the executor and its files.
	Executor func(host.Env) (executor.Executor, host.Files, error)
	// Lender lends places for uploads of work directories; nil: uploads are not possible.
	Lender store.Lender
	// Notes are lines for the operator's log at its start.
	Notes []string
}

func (o *Options) check() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(o.Cluster != nil && o.Parts != nil && o.Policy != nil && o.Log != nil,
		"operator: Options.Cluster, Parts, Policy and Log have to be set")
	need(len(validation.IsDNS1123Label(o.Name)) == 0 && len(o.Name) <= cluster.LongestName,
		fmt.Sprintf("--name %s: want a DNS label of at most %d letters: a-z, 0-9 and inner hyphens", o.Name, cluster.LongestName))
	need(o.Namespace != "", "--operator-namespace: say in which namespace the operator runs; its lease is there")
	need(o.DataDir != "", "--data-dir: say where the journal lies")
	need(o.Mechanism == "" || o.Mechanism == "sja" || o.Mechanism == "jasda", "--mechanism "+o.Mechanism+": want sja or jasda")
	need(o.Horizon >= time.Second, "--horizon: want at least 1s")
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	if o.Die == nil {
		o.Die = func() { os.Exit(1) }
	}
	if o.Mechanism == "" {
		o.Mechanism = "sja"
	}
	if o.Lease == 0 {
		o.Lease = 15 * time.Second
	}
	return nil
}

// shutdown bounds how long open HTTP requests, and giving the lease back, may take at the end.
const shutdown = 2 * time.Second
