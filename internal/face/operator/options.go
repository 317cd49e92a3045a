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
	// Cluster is how its API server is reached, without limits of rate.
	Cluster *rest.Config
	// Name of the operator: of its lease, of its node, and part of the names of its Pods. A DNS label of at most 16 letters.
	Name string
	// Namespace is where the operator itself runs: its lease is there. Watch is the namespace whose jobs it takes; empty: all.
	Namespace, Watch string
	// JobNamespaces are those in which it may write Pods, and so the only ones whose jobs are accepted; none: all.
	JobNamespaces []string
	// DataDir holds everything durable of it.
	DataDir string
	// NewJournal has it begin with an empty journal though the cluster says that there was one.
	NewJournal bool
	// Identity of this process among those that want the lease; two of the same hold it together.
	Identity string
	// Lease is how long it is held without being renewed; 0: 15 s. Whoever loses it stops.
	Lease time.Duration
	// Listen is where the API is served, on this machine alone, Health where metrics and health are.
	Listen, Health string
	// Policy, Mechanism (sja or jasda) and Horizon, as for a daemon.
	Policy    policy.Policy
	Mechanism string
	Horizon   time.Duration
	// Die ends the process at once, where it can't be ended in order before another operator may begin; nil: os.Exit.
	Die func()
	// Retention of jobs that are over.
	Retention config.Retention
	// Parts makes what finds slices of these pools, and what runs subjobs under the tokens of that journal.
	Parts func(ctx context.Context, journal Journal, pools []config.SlicePool) (Parts, error)
	// Ready is told once it has the lease and works; nil: nobody is.
	Ready func(api, health string)
	Log   *slog.Logger
	// Version and Commit of the build.
	Version, Commit string
}

// Parts are the kinds of an operator.
type Parts struct {
	// Inventory is what the cluster has to offer. The operator closes it.
	Inventory inventory.Inventory
	// Offer has it offer other pools from now on. On an error those of before stand.
	Offer func([]config.SlicePool) error
	// Executor makes what runs subjobs, and what it keeps of jobs.
	Executor func(host.Env) (executor.Executor, host.Files, error)
	// Lender lends places for work directories that people upload; nil: they can't.
	Lender store.Lender
	// Notes are for people.
	Notes []string
}

func (o *Options) check() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New(what))
		}
	}
	need(o.Cluster != nil && o.Parts != nil && o.Policy != nil && o.Log != nil, "operator: Options.Cluster, Parts, Policy and Log have to be set")
	need(len(validation.IsDNS1123Label(o.Name)) == 0 && len(o.Name) <= cluster.LongestName, fmt.Sprintf("--name %s: want a DNS label of at most %d letters: a-z, 0-9 and inner hyphens", o.Name, cluster.LongestName))
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
