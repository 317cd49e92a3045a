//go:build kubernetes

package kubernetes

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/quantity"
)

// Kueue's Workloads say how long what they admit runs at most, and what is still to come. They are read as unstructured objects, without
// Kueue's module.

// kueueGroup, and the versions of it that we read, the newest first.
const kueueGroup = "kueue.x-k8s.io"

func kueueVersions() []string { return []string{"v1beta2", "v1beta1"} }

// listenToKueue watches Workloads, queues and flavors once Kueue's API is served, and closes heard when they are known, or when there is
// no Kueue so far. An API that is away makes nothing else unsure: Workloads may then run longer than is known here, and no more.
func (inv *Inventory) listenToKueue(ctx context.Context, heard chan<- struct{}) {
	waited := sync.OnceFunc(func() { close(heard) })
	defer waited()
	if inv.opts.Dynamic == nil {
		return
	}
	said := false
	fails := func(_ cache.SharedIndexInformer, err error) {
		if !said && ctx.Err() == nil && !apierrors.IsNotFound(err) { // not installed (any more) is no error
			said = true
			inv.opts.Log.Warn("Kueue does not say how long its Workloads run; what it said last stands", "error", err)
		}
	}
	var synced []cache.InformerSynced
	for _, k := range inv.kueueKinds() {
		source, err := k.source()
		for ; source == nil; source, err = k.source() {
			pause := pings
			if err == nil {
				waited()
				pause = inv.opts.absent
			} else {
				fails(nil, err)
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
		}
		if err := inv.listen(source, fails); err != nil {
			inv.opts.Log.Error("nobody listens to Kueue", "error", err)
			return
		}
		inv.mu.Lock()
		*k.to = source
		inv.mu.Unlock()
		inv.done.Go(func() { source.RunWithContext(ctx) })
		synced = append(synced, source.HasSynced)
	}
	cache.WaitForCacheSync(ctx.Done(), synced...)
}

// kueueKind is a kind of Kueue's to watch: its source, nil where the cluster has none, and the field that keeps it.
type kueueKind struct {
	source func() (cache.SharedIndexInformer, error)
	to     *cache.SharedIndexInformer
}

// kueueKinds lists Workloads first: without them the others are of no use.
func (inv *Inventory) kueueKinds() []kueueKind {
	kind := func(resource string, indexers cache.Indexers) func() (cache.SharedIndexInformer, error) {
		return func() (cache.SharedIndexInformer, error) { return inv.kueue(resource, indexers) }
	}
	list := []kueueKind{
		{kind("workloads", cache.Indexers{
			byOwner: index((*jobOrWorkload).ownedBy), byComing: index((*jobOrWorkload).comes),
		}), &inv.workloads},
		{kind("localqueues", cache.Indexers{}), &inv.queues},
		{kind("resourceflavors", cache.Indexers{}), &inv.flavors},
	}
	if inv.claims != nil {
		list = append(list, kueueKind{func() (cache.SharedIndexInformer, error) {
			return resourceinformers.NewResourceClaimTemplateInformer(inv.opts.Client, metav1.NamespaceAll, 0, cache.Indexers{}), nil
		}, &inv.templates})
	}
	return list
}

// kueue makes the source of a kind; nil where the cluster has none.
func (inv *Inventory) kueue(resource string, indexers cache.Indexers) (cache.SharedIndexInformer, error) {
	for _, version := range kueueVersions() {
		of := schema.GroupVersionResource{Group: kueueGroup, Version: version, Resource: resource}
		there, err := inv.serves(of.GroupVersion().String(), of.Resource)
		if err != nil {
			return nil, err
		}
		if there {
			return dynamicinformer.NewFilteredDynamicInformer(inv.opts.Dynamic, of, metav1.NamespaceAll, 0, indexers, nil).Informer(), nil
		}
	}
	return nil, nil //nolint:nilnil // none is no error
}

// workload reads a Workload: until when the Pods of its owner (a Job, a Pod) may run, and what is still to come of it. LocalQueues and
// ResourceFlavors become an alias; what is not unstructured passes unchanged.
func (s *slimmer) workload(object any) any {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object
	}
	if o.GetKind() != "Workload" {
		return s.alias(o)
	}
	l := &jobOrWorkload{ObjectMeta: named(o), end: quantity.Never}
	for _, owner := range o.GetOwnerReferences() {
		l.owners = append(l.owners, owner.UID)
		if l.of == "" || value(owner.Controller) {
			l.of = owner.UID
		}
	}
	l.coming = s.coming(o, l)
	most := runs(o)
	if l.most = most; most == 0 {
		return l
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // of an unknown shape: none
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if !ok || c["type"] != "Admitted" || c["status"] != string(metav1.ConditionTrue) {
			continue
		}
		text, _ := c["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			l.end = quantity.At(at).Add(most)
		}
	}
	return l
}
