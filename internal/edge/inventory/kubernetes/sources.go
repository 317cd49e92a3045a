//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	resourceinformers "k8s.io/client-go/informers/resource/v1"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/errkind"
)

// sources are what is heard of each kind of object. offers, claims and classes are nil where the cluster has no DRA, workloads where it has no Kueue, or as long as that
// does not answer (inv.mu).
type sources struct {
	nodes, pods, jobs, offers, claims, classes cache.SharedIndexInformer
	// workloads, queues and flavors are Kueue's, templates what the claims of its Pods will be made of.
	workloads, queues, flavors, templates cache.SharedIndexInformer
}

// Indexes.
const (
	byMachine = "machine"
	byPool    = "pool"
	byOwner   = "owner"
	byParent  = "parent"
)

// connect begins to listen, and waits until all that there is has been heard.
func (inv *Inventory) connect(ctx context.Context) error {
	running, cancel := context.WithCancel(context.Background())
	inv.cancel = cancel
	c, all := inv.opts.Client, metav1.NamespaceAll
	alive := func(o *metav1.ListOptions) { o.FieldSelector = "status.phase!=Succeeded,status.phase!=Failed" }
	inv.nodes = coreinformers.NewNodeInformer(c, 0, cache.Indexers{})
	inv.pods = coreinformers.NewFilteredPodInformer(c, all, 0, cache.Indexers{
		byMachine: index(func(t *tenant) []string { return only(t.machine) }), byOwner: index((*tenant).owners),
		byWaiting: waits(), byOurs: hosts(),
	}, alive)
	inv.jobs = batchinformers.NewJobInformer(c, all, 0, cache.Indexers{
		byOwner: index(func(l *limit) []string { return only(string(l.of)) }), byParent: index(func(l *limit) []string { return only(string(l.parent)) }),
	})
	dra, err := inv.serves(resourcev1.SchemeGroupVersion.String(), "resourceslices")
	if err != nil {
		return err
	}
	if dra {
		inv.offers = resourceinformers.NewResourceSliceInformer(c, 0, cache.Indexers{
			byMachine: index((*offer).machines), byPool: index(func(o *offer) []string { return only(o.driver + "/" + o.pool) }),
		})
		inv.classes = resourceinformers.NewDeviceClassInformer(c, 0, cache.Indexers{})
		inv.claims = resourceinformers.NewResourceClaimInformer(c, all, 0, cache.Indexers{byPool: index((*claim).pools)})
	}
	var synced []cache.InformerSynced
	for _, source := range []cache.SharedIndexInformer{inv.nodes, inv.pods, inv.jobs, inv.offers, inv.claims, inv.classes} {
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
		return errkind.Errorf(errkind.Unavailable, "the API server of the cluster did not say what there is: %w", firstError(err, context.Cause(ctx)))
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

func firstError(list ...error) error {
	for _, err := range list {
		if err != nil {
			return err
		}
	}
	return nil
}

// serves says whether the API server has a kind of object.
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

// silent notes that a source does not answer.
func (inv *Inventory) silent(source cache.SharedIndexInformer, err error) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	if inv.away.fails(source, err) {
		inv.opts.Log.Warn("the API server of the cluster is away; what it said last stands", "error", err)
	}
}

// listen has a source keep no more than is needed, and say what changes, and when it can't.
func (inv *Inventory) listen(source cache.SharedIndexInformer, fails func(cache.SharedIndexInformer, error)) error {
	if err := source.SetTransform(inv.transform); err != nil {
		return err
	}
	err := source.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, io.EOF) {
			return // it lists anew, or the server ends watches from time to time
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
			if t, is := o.(*tenant); is {
				inv.ended(t, unseen)
			}
			inv.heard(o)
		},
	})
	return err
}

// transform makes what is kept of an object.
func (inv *Inventory) transform(o any) (any, error) {
	switch x := o.(type) {
	case *corev1.Node:
		return inv.slim.machine(x), nil
	case *corev1.Pod:
		return inv.slim.tenant(x), nil
	case *batchv1.Job:
		return inv.slim.limit(x), nil
	case *resourcev1.ResourceSlice:
		return inv.slim.offer(x), nil
	case *resourcev1.DeviceClass:
		return inv.slim.class(x), nil
	case *resourcev1.ResourceClaim:
		return inv.slim.claim(x), nil
	case *resourcev1.ResourceClaimTemplate:
		return inv.slim.template(x), nil
	}
	return inv.slim.workload(o), nil
}

// heard notes which machines an object is about.
func (inv *Inventory) heard(o any) {
	switch x := o.(type) {
	case *machine:
		inv.touch(x.Name)
	case *tenant:
		if x.ours || len(x.asks)+len(x.claims) > 0 {
			inv.touch(x.machine) // one that waits has none, and is looked at all the same
		}
	case *offer:
		inv.touch(x.machines()...)
		for _, o := range by[*offer](inv.offers, byPool, x.driver+"/"+x.pool) { // it may have counters alone
			inv.touch(o.machines()...)
		}
	case *claim:
		if len(x.wants) > 0 {
			inv.touch()
		}
		for _, pool := range x.pools() {
			for _, o := range by[*offer](inv.offers, byPool, pool) {
				inv.touch(o.machines()...)
			}
		}
	case *limit:
		for _, t := range inv.podsOf(x.owned()...) {
			inv.touch(t.machine)
		}
		if x.coming != nil {
			inv.touch()
		}
	}
}

// podsOf are the Pods that owners have, themselves or by their Jobs, and those that are owners, each once.
func (inv *Inventory) podsOf(owners ...types.UID) (list []*tenant) {
	for _, of := range owners {
		list = append(list, by[*tenant](inv.pods, byOwner, string(of))...)
		for _, j := range by[*limit](inv.jobs, byParent, string(of)) {
			list = append(list, by[*tenant](inv.pods, byOwner, string(j.of))...)
		}
	}
	if len(owners) > 1 {
		slices.SortFunc(list, func(a, b *tenant) int { return cmp.Compare(a.UID, b.UID) })
		list = slices.CompactFunc(list, func(a, b *tenant) bool { return a.UID == b.UID })
	}
	return list
}

// owners are by whom a Pod is found: by its owner; and by itself, if it wants a device, since a Workload of Kueue's may be a Pod's own.
func (t *tenant) owners() []string {
	list := only(string(t.owner))
	if len(t.asks)+t.requests > 0 {
		list = append(list, string(t.UID))
	}
	return list
}

// machines that an offer's devices are on.
func (o *offer) machines() (list []string) {
	for i := range o.devices {
		if m := o.devices[i].machine; m != "" && (len(list) == 0 || list[len(list)-1] != m) {
			list = append(list, m)
		}
	}
	return append(list, only(o.machine)...)
}

// pools that a claim has something of.
func (c *claim) pools() (list []string) {
	for _, at := range c.has {
		if k := at.driver + "/" + at.pool; len(list) == 0 || list[len(list)-1] != k {
			list = append(list, k)
		}
	}
	return list
}

func only(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

// index is an index function over what is kept.
func index[T any](of func(T) []string) cache.IndexFunc {
	return func(o any) ([]string, error) {
		x, ok := o.(T)
		if !ok {
			return nil, fmt.Errorf("%T is kept, where %T should be", o, x)
		}
		return of(x), nil
	}
}

// by are the objects of an index; none without a source.
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
