//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/errkind"
)

// connect starts the informers and waits until they are synced.
func (inv *Inventory) connect(ctx context.Context) error {
	running, cancel := context.WithCancel(context.Background())
	inv.cancel = cancel
	c, all := inv.opts.Client, metav1.NamespaceAll
	alive := func(o *metav1.ListOptions) { o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed" }
	inv.nodes = coreinformers.NewNodeInformer(c, 0, cache.Indexers{})
	inv.pods = coreinformers.NewFilteredPodInformer(c, all, 0, cache.Indexers{
		byMachine: index(func(t *pod) []string { return only(t.machine) }), byOwner: index((*pod).owners),
		byWaiting: waitingIndex(),
	}, alive)
	inv.jobs = batchinformers.NewJobInformer(c, all, 0, cache.Indexers{
		byOwner:  index(func(l *jobOrWorkload) []string { return only(string(l.of)) }),
		byParent: index(func(l *jobOrWorkload) []string { return only(string(l.parent)) }),
	})
	dra, err := inv.serves(resourcev1.SchemeGroupVersion.String(), "resourceslices")
	if err != nil {
		return err
	}
	if dra {
		inv.resourceSlices = resourceinformers.NewResourceSliceInformer(c, 0, cache.Indexers{
			byMachine: index((*resourceSlice).machines),
			byPool:    index(func(o *resourceSlice) []string { return only(o.driver + "/" + o.pool) }),
		})
		inv.classes = resourceinformers.NewDeviceClassInformer(c, 0, cache.Indexers{})
		inv.claims = resourceinformers.NewResourceClaimInformer(c, all, 0, cache.Indexers{byPool: index((*claim).pools)})
		if inv.rules, err = inv.listRules(); err != nil {
			return err
		}
	}
	var synced []cache.InformerSynced
	for _, source := range []cache.SharedIndexInformer{
		inv.nodes, inv.pods, inv.jobs, inv.resourceSlices, inv.claims, inv.classes, inv.rules,
	} {
		if source == nil {
			continue
		}
		if err := inv.listen(source, inv.silent); err != nil {
			return err
		}
		inv.done.Go(func() { source.RunWithContext(running) })
		synced = append(synced, source.HasSynced)
	}
	heard := make(chan struct{})
	inv.done.Go(func() { inv.listenToKueue(running, heard) })
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		_, err := inv.Away()
		return errkind.Errorf(errkind.Unavailable, "the API server of the cluster did not say what there is: %w",
			cmp.Or(err, context.Cause(ctx)))
	}
	select {
	case <-heard:
	case <-ctx.Done():
	case <-time.After(inv.opts.Patience):
		inv.opts.Log.Warn("Kueue does not say how long its Workloads run; nobody waits for it any more", "after", inv.opts.Patience)
	}
	inv.done.Go(func() { inv.ping(running) })
	for _, o := range inv.nodes.GetStore().List() {
		inv.touch(o.(*machine).Name)
	}
	return nil
}

// serves reports whether the API server has a kind of object.
func (inv *Inventory) serves(version, resource string) (bool, error) {
	list, err := inv.opts.Client.Discovery().ServerResourcesForGroupVersion(version)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, errkind.Errorf(errkind.Unavailable, "ask the API server of the cluster for %s of %s: %w", resource, version, err)
	}
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource }), nil
}

// silent records that a source failed.
func (inv *Inventory) silent(source cache.SharedIndexInformer, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.away.fails(source, err) {
		inv.opts.Log.Warn("the API server of the cluster is away; what it said last stands", "error", err)
	}
}

// listen sets an informer's transform, its handlers, and what is done when it fails.
func (inv *Inventory) listen(source cache.SharedIndexInformer, fails func(cache.SharedIndexInformer, error)) error {
	if err := source.SetTransform(inv.transform); err != nil {
		return err
	}
	err := source.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
			return // usual: it lists anew, or the server ended the watch
		}
		fails(source, err)
	})
	if err != nil {
		return err
	}
	_, err = source.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { inv.heard(o) },
		UpdateFunc: func(old, now any) { inv.heard(old); inv.heard(now) },
		DeleteFunc: func(o any) {
			gone, unseen := o.(cache.DeletedFinalStateUnknown)
			if unseen {
				o = gone.Obj
			}
			if t, is := o.(*pod); is {
				inv.ended(t, unseen)
			}
			inv.heard(o)
		},
	})
	return err
}

// transform cuts an object down to what is kept of it.
func (inv *Inventory) transform(o any) (any, error) {
	switch x := o.(type) {
	case *corev1.Node:
		return inv.slim.machine(x), nil
	case *corev1.Pod:
		return inv.slim.pod(x), nil
	case *batchv1.Job:
		return inv.slim.batchJob(x), nil
	case *resourcev1.ResourceSlice:
		return inv.slim.resourceSlice(x), nil
	case *resourcev1.DeviceClass:
		return inv.slim.class(x), nil
	case *resourcev1beta2.DeviceTaintRule:
		return inv.slim.betaRule(x), nil
	case *resourcev1alpha3.DeviceTaintRule:
		return inv.slim.alphaRule(x), nil
	case *resourcev1.ResourceClaim:
		return inv.slim.claim(x), nil
	case *resourcev1.ResourceClaimTemplate:
		return inv.slim.template(x), nil
	}
	return inv.slim.workload(o), nil
}

// heard marks the machines that an object is about.
func (inv *Inventory) heard(o any) {
	switch x := o.(type) {
	case *machine:
		inv.touch(x.Name)
	case *pod:
		if x.ours || len(x.need.asks)+len(x.need.claims) > 0 {
			inv.touch(x.machine) // one that waits has none
		}
	case *resourceSlice:
		inv.touch(x.machines()...)
		for _, o := range by[*resourceSlice](inv.resourceSlices, byPool, x.driver+"/"+x.pool) { // a part may have counters alone
			inv.touch(o.machines()...)
		}
	case *claim:
		if len(x.wants) > 0 {
			inv.touch()
		}
		for _, pool := range x.pools() {
			for _, o := range by[*resourceSlice](inv.resourceSlices, byPool, pool) {
				inv.touch(o.machines()...)
			}
		}
	case *class, *rule: // it may be about other devices, on every machine
		inv.mu.Lock()
		inv.told.generation++
		inv.mu.Unlock()
		inv.touch(inv.nodes.GetStore().ListKeys()...)
	case *jobOrWorkload:
		for _, t := range inv.podsOf(x.owned()...) {
			inv.touch(t.machine)
		}
		if x.coming != nil {
			inv.touch()
		}
	}
}
