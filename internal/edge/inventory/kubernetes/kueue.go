//go:build kubernetes

package kubernetes

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/quantity"
)

// Kueue's Workloads say how long what they admit runs at most. Its types are not needed for that.

// kueueGroup and the versions of it that are known, the newest first.
const kueueGroup = "kueue.x-k8s.io"

func kueueVersions() []string { return []string{"v1beta2", "v1beta1"} }

// listenToKueue listens to Workloads, from when there is somebody who answers, and closes heard once all of them are known, or there is no Kueue. That its API is away says
// nothing of the cluster: what it admits may then be longer on its slice than is known, and no more.
func (inv *Inventory) listenToKueue(ctx context.Context, heard chan<- struct{}) {
	defer close(heard)
	said := false
	fails := func(_ cache.SharedIndexInformer, err error) {
		if !said && ctx.Err() == nil {
			said = true
			inv.opts.Log.Warn("Kueue does not say how long its Workloads run; what it said last stands", "error", err)
		}
	}
	source, err := inv.kueue()
	for ; err != nil; source, err = inv.kueue() {
		fails(nil, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pings):
		}
	}
	if source == nil {
		return
	}
	if err := inv.listen(source, fails); err != nil {
		inv.opts.Log.Error("nobody listens to Kueue", "error", err)
		return
	}
	inv.mu.Lock()
	inv.workloads = source
	inv.mu.Unlock()
	inv.done.Go(func() { source.RunWithContext(ctx) })
	cache.WaitForCacheSync(ctx.Done(), source.HasSynced)
}

// kueue is the source of Workloads; nil where the cluster has none.
func (inv *Inventory) kueue() (cache.SharedIndexInformer, error) {
	if inv.opts.Dynamic == nil {
		return nil, nil //nolint:nilnil // there is none, and that is no error
	}
	for _, version := range kueueVersions() {
		of := schema.GroupVersionResource{Group: kueueGroup, Version: version, Resource: "workloads"}
		there, err := inv.serves(of.GroupVersion().String(), of.Resource)
		if err != nil {
			return nil, err
		}
		if there {
			return dynamicinformer.NewFilteredDynamicInformer(inv.opts.Dynamic, of, metav1.NamespaceAll, 0, cache.Indexers{
				byOwner: index(func(l *limit) []string { return only(string(l.of)) }),
			}, nil).Informer(), nil
		}
	}
	return nil, nil //nolint:nilnil // as above
}

// workload is until when a Workload lets what it is of run. What is none is kept as it came.
func (s *slimmer) workload(object any) any {
	o, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object
	}
	l := &limit{ObjectMeta: named(o), end: quantity.Never}
	for _, owner := range o.GetOwnerReferences() {
		if l.of == "" || value(owner.Controller) {
			l.of = owner.UID
		}
	}
	most, limited, err := unstructured.NestedInt64(o.Object, "spec", "maximumExecutionTimeSeconds")
	if err != nil || !limited {
		return l
	}
	for _, spelt := range []string{"accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds"} { // v1beta1 has it the second way
		if past, there, err := unstructured.NestedInt64(o.Object, "status", spelt); err == nil && there {
			most -= past
		}
	}
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // one of another shape is none
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		if !ok || c["type"] != "Admitted" || c["status"] != string(metav1.ConditionTrue) {
			continue
		}
		text, _ := c["lastTransitionTime"].(string)
		if at, err := time.Parse(time.RFC3339, text); err == nil {
			l.end = quantity.At(at).Add(time.Duration(most) * time.Second)
		}
	}
	return l
}
