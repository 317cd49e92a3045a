//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/quantity"
)

// sources are the informers, one for each kind of object. resourceSlices, claims and classes are nil where the cluster has no DRA, rules
// where it has no DeviceTaintRules. The other four are nil until Kueue's API has answered (templates also without DRA), and are guarded by
// Inventory.mu.
type sources struct {
	nodes, pods, jobs, resourceSlices, claims, classes, rules cache.SharedIndexInformer
	// workloads, queues and flavors are Kueue's; templates show what the claims of expected Pods will want.
	workloads, queues, flavors, templates cache.SharedIndexInformer
}

// Indexes.
const (
	byMachine = "machine"
	byPool    = "pool"
	byOwner   = "owner"
	byParent  = "parent"
)

// podsOf lists, each once, the Pods that these owners have, directly or through Jobs, and those that are owners themselves.
func (s *sources) podsOf(owners ...types.UID) (list []*pod) {
	for _, of := range owners {
		list = append(list, by[*pod](s.pods, byOwner, string(of))...)
		for _, j := range by[*jobOrWorkload](s.jobs, byParent, string(of)) {
			list = append(list, by[*pod](s.pods, byOwner, string(j.of))...)
		}
	}
	if len(owners) > 1 {
		slices.SortFunc(list, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
		list = slices.CompactFunc(list, func(a, b *pod) bool { return a.UID == b.UID })
	}
	return list
}

// index makes an index function over kept objects.
func index[T any](of func(T) []string) cache.IndexFunc {
	return func(o any) ([]string, error) {
		x, ok := o.(T)
		if !ok {
			return nil, fmt.Errorf("%T is kept, where %T should be", o, x)
		}
		return of(x), nil
	}
}

// by lists the objects under a key of an index; none without a source.
func by[T any](source cache.SharedIndexInformer, index, key string) (list []T) {
	if source == nil {
		return nil
	}
	all, err := source.GetIndexer().ByIndex(index, key)
	if err != nil {
		return nil
	}
	for _, o := range all {
		list = append(list, o.(T))
	}
	return list
}

func get[T any](source cache.SharedIndexInformer, key string) (x T, there bool) {
	if source == nil {
		return x, false
	}
	o, there, err := source.GetStore().GetByKey(key)
	if err != nil || !there {
		return x, false
	}
	return o.(T), true
}

// limit is until when an owner lets its Pods run at most: by its own deadline (a Job), its Workload's, or the Workload of what owns it (a
// JobSet).
func (s *sources) limit(of types.UID) quantity.Instant {
	end, parent := quantity.Never, types.UID("")
	for _, source := range []cache.SharedIndexInformer{s.jobs, s.workloads} {
		for _, l := range by[*jobOrWorkload](source, byOwner, string(of)) {
			end, parent = min(end, l.end), cmp.Or(parent, l.parent)
		}
	}
	if parent != "" {
		for _, l := range by[*jobOrWorkload](s.workloads, byOwner, string(parent)) {
			end = min(end, l.end)
		}
	}
	return end
}

// class finds a DeviceClass by its name; false: it was not seen.
func (s *sources) class(name string) (*class, bool) { return get[*class](s.classes, name) }
