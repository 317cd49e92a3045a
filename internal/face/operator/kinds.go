//go:build kubernetes

package operator

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	inventory "sluice.dev/sluice/internal/edge/inventory/kubernetes"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/host"
)

// Kinds makes the parts of an operator on a real cluster: the Kubernetes inventory and executor.
type Kinds struct {
	// Store holds work directories, outputs and checkpoints. It must lend objects to Pods.
	Store store.Store
	// ShimImage has /sluice-shim and is in every Pod beside the job's image.
	ShimImage string
	// Requests and Limits of cpu, memory and ephemeral-storage for subjobs' Pods.
	Requests, Limits corev1.ResourceList
}

// Parts implements Options.Parts.
func (k Kinds) Parts(o *Options) func(context.Context, Journal, []config.SlicePool) (Parts, error) {
	return func(ctx context.Context, journal Journal, offered []config.SlicePool) (Parts, error) {
		client, err1 := kubernetes.NewForConfig(o.Cluster)
		dynamics, err2 := dynamic.NewForConfig(o.Cluster)
		if err := errors.Join(err1, err2); err != nil {
			return Parts{}, errkind.Errorf(errkind.Invalid, "the cluster: %w", err)
		}
		tolerated, beat := &atomic.Pointer[[]corev1.Toleration]{}, &atomic.Int64{}
		offer := func(of []config.SlicePool) {
			list := tolerations(of)
			tolerated.Store(&list)
			beat.Store(int64(beatOf(of)))
		}
		offer(offered)
		var inv *inventory.Inventory // is opened before any executor is
		parts := Parts{Executor: func(e host.Env) (executor.Executor, host.Files, error) {
			x, err := pods.Open(pods.Options{
				Client: client, Store: k.Store, Operator: o.Name, Journal: journal.Name, Key: journal.Key, Made: journal.Made,
				ShimImage: k.ShimImage, Requests: k.Requests, Limits: k.Limits, Namespace: cmp.Or(o.Watch, o.Namespace),
				Deliver: e.Deliver, Slice: e.Slice, Tolerations: func() []corev1.Toleration { return *tolerated.Load() }, Log: o.Log,
				Vigil: pods.Vigil{
					Beat: func() time.Duration { return time.Duration(beat.Load()) },
					Ownerless: func(id job.SliceID) (limit, notice time.Duration) {
						p, ok := inv.PoolOf(id)
						if !ok { // it was taken out of its pool since it was sold
							return 0, 0
						}
						return min(p.Ownerless, o.Horizon), p.Notice
					},
				},
			})
			if err != nil {
				return nil, nil, err
			}
			return x, x.Files(), nil
		}, Notes: []string{"store: " + k.Store.String()}}
		parts.Lender, _ = k.Store.(store.Lender)
		options := inventory.Options{Client: client, Dynamic: dynamics, Operator: o.Name, Journal: journal.Name, Key: journal.Key,
			Made: journal.Made, Pools: offered, Log: o.Log}
		var err error
		inv, err = inventory.Open(ctx, options)
		if errkind.Of(err) == errkind.Invalid { // the parser let it through: start without pools, so that jobs are answered
			o.Log.Error("nothing is offered", "error", err)
			options.Pools = nil
			inv, err = inventory.Open(ctx, options)
		}
		if err != nil {
			return Parts{}, err
		}
		parts.LeftOut = inv.LeftOut
		parts.Inventory, parts.Offer = inv, func(list []config.SlicePool) error {
			err := inv.Offer(list)
			if err == nil {
				offer(list)
			}
			return err
		}
		return parts, nil
	}
}

// beatOf is how often Pods are to hear of the operator, so that those of all pools do in time. Pods from before their pool has got a longer
// time count by the shorter one, and may yield once.
func beatOf(list []config.SlicePool) time.Duration {
	least := departure.Ownerless
	for i := range list {
		if own := list[i].Ownerless; own > 0 {
			least = min(least, own)
		}
	}
	return least / pod.Beats
}

// tolerations joins those of all pools: where a Pod may run is decided by its node affinity.
func tolerations(list []config.SlicePool) (out []corev1.Toleration) {
	for _, p := range list {
		for _, key := range p.Tolerates {
			t := corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists}
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out
}
