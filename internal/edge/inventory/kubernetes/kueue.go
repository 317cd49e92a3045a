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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/quantity"
)

// Kueue's Workloads say how long what they admit runs at most, and what is still to come. Its types are not needed for that.

// kueueGroup and the versions of it that are known, the newest first.
const kueueGroup = "kueue.x-k8s.io"

func kueueVersions() []string { return []string{"v1beta2", "v1beta1"} }

// listenToKueue listens to Workloads, queues and flavors, from when there is somebody who answers, and closes heard once all of them are known, or there is no Kueue so far. That
// its API is away says nothing of the cluster: what it admits may then be longer on its slice than is known, and no more.
func (inv *Inventory) listenToKueue(ctx context.Context, heard chan<- struct{}) {
	waited := sync.OnceFunc(func() { close(heard) })
	defer waited()
	if inv.opts.Dynamic == nil {
		return
	}
	said := false
	fails := func(_ cache.SharedIndexInformer, err error) {
		if !said && ctx.Err() == nil && !apierrors.IsNotFound(err) { // what is not there yet, or not any more, is no trouble
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

// kueueKind is a kind of objects that is asked for where there is Kueue: its source, nil where there is none, and where that is kept.
type kueueKind struct {
	source func() (cache.SharedIndexInformer, error)
	to     *cache.SharedIndexInformer
}

// kueueKinds are the Workloads first: without them nothing else counts.
func (inv *Inventory) kueueKinds() []kueueKind {
	kind := func(resource string, indexers cache.Indexers) func() (cache.SharedIndexInformer, error) {
		return func() (cache.SharedIndexInformer, error) { return inv.kueue(resource, indexers) }
	}
	list := []kueueKind{
		{kind("workloads", cache.Indexers{byOwner: index((*limit).ownedBy), byComing: index((*limit).comes)}), &inv.workloads},
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

// kueue is the source of a kind; nil where the cluster has none.
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
	return nil, nil //nolint:nilnil // there is none, and that is no error
}

// workload is until when a Workload lets what it is of run. What is none is kept as it came.
func (s *slimmer) workload(object any) any {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object
	}
	if o.GetKind() != "Workload" {
		return s.alias(o)
	}
	l := &limit{ObjectMeta: named(o), end: quantity.Never}
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
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // one of another shape is none
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

// owned are all whose the limit is.
func (l *limit) owned() []types.UID {
	if len(l.owners) == 0 {
		return []types.UID{l.of}
	}
	return l.owners
}

func (l *limit) ownedBy() (list []string) {
	for _, of := range l.owned() {
		list = append(list, only(string(of))...)
	}
	return list
}
