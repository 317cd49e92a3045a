//go:build kubernetes

package kubernetes

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

// large is a cluster of machines with seven slices each, all of them in use: two by others, five by us; and a hundred thousand Pods that
// want nothing of GPUs.
func large(t testing.TB, machines, others int) *Inventory {
	t.Helper()
	o := options(serve())
	o.Pools, o.Dynamic = []Pool{migs("1g.10gb")}, kueueOf()
	inv := opened(t, o)
	if err := inv.Close(); err != nil { // its sources are filled by hand
		t.Fatal(err)
	}
	add := func(source cache.SharedIndexInformer, object any) {
		kept, err := inv.transform(object)
		if err == nil {
			err = source.GetStore().Add(kept)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for i := range machines {
		name := fmt.Sprintf("machine-%05d", i)
		n := node(name)
		for k := range 30 {
			n.Labels[fmt.Sprintf("example.com/label-%d", k)] = name
		}
		add(inv.nodes, n)
		for _, s := range partitionable(name) {
			add(inv.resourceSlices, s)
		}
		for k := range 7 {
			device, pod1 := fmt.Sprintf("gpu-0-mig-1g-%d", k), fmt.Sprintf("p-%s-%d", name, k)
			c := resourceClaim("a", pod1, allocated(name, device, pod1))
			p := newPod("a", pod1, name, claims(pod1), lasts(time.Hour))
			if k < 5 {
				ourClaim(c)
				ours(name + "/" + device)(p)
			}
			add(inv.claims, c)
			add(inv.pods, p)
		}
		inv.touch(name)
	}
	for i := range others {
		add(inv.pods, newPod("b", fmt.Sprintf("plain-%d", i), fmt.Sprintf("machine-%05d", i%machines)))
	}
	return inv
}

// TestALargeClusterIsKeptInLittle: 5,000 machines with 35,000 slices, as many Pods on them and 100,000 beside.
func TestALargeClusterIsKeptInLittle(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	inv := large(t, 5000, 100_000)
	began := time.Now()
	inv.look()
	all := time.Since(began)
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := (after.HeapAlloc - before.HeapAlloc) >> 20
	list, err := inv.Slices(t.Context())
	if err != nil || len(list) != 35_000 || len(held(inv)) != 10_000 {
		t.Fatalf("%d slices, %d held, %v", len(list), len(held(inv)), err)
	}
	began = time.Now()
	const changes = 1000
	for i := range changes {
		inv.touch(fmt.Sprintf("machine-%05d", i))
		if len(inv.look()) > 0 {
			t.Error("nothing has changed")
		}
	}
	t.Logf("%d MiB are kept; all of it is evaluated in %v, one machine in %v", kept, all.Round(time.Millisecond),
		(time.Since(began) / changes).Round(time.Microsecond))
	add := func(n int) { // who waits and can have nothing
		for i := range n {
			for _, o := range []any{newPod("c", fmt.Sprint("w", i), "", claims(fmt.Sprint("w", i)), unplaced),
				resourceClaim("c", fmt.Sprint("w", i))} {
				kept, err := inv.transform(o)
				if err != nil {
					t.Fatal(err)
				}
				source := inv.pods
				if _, is := kept.(*claim); is {
					source = inv.claims
				}
				if err := source.GetStore().Add(kept); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	add(100)
	g := gives(inv)
	began = time.Now()
	for range 25 {
		g.look()
	}
	t.Logf("places for 100 that wait are found in %v", time.Since(began).Round(time.Millisecond))
	if got := len(cut(g.held())); got != 100 {
		t.Errorf("for 100 that wait %d slices are given back", got)
	}
	// 10,000 more can have nothing, and 10,000 Workloads in a hundred queues, whose first wait for what ends in an hour.
	made := resourceClaimTemplate("a", "gpu")
	like := newPod("a", "x", "", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr("gpu")}}
	})
	keep := func(source cache.SharedIndexInformer, o any) {
		kept, err := inv.transform(o)
		if err == nil {
			err = source.GetStore().Add(kept)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	keep(inv.templates, made)
	for i := range 100 {
		keep(inv.queues, &unstructured.Unstructured{Object: map[string]any{"kind": "LocalQueue",
			"metadata": map[string]any{"name": fmt.Sprint("q", i), "namespace": "a"},
			"spec":     map[string]any{"clusterQueue": fmt.Sprint("cq", i)}}})
		keep(inv.workloads, workload(fmt.Sprint("holder", i), 1, like, hasQuota("Admitted"), runsFor(time.Hour), func(w map[string]any) {
			w["status"].(map[string]any)["admission"].(map[string]any)["clusterQueue"] = fmt.Sprint("cq", i)
		}))
		keep(inv.pods, newPod("a", fmt.Sprint("held", i), "elsewhere", of("Job", fmt.Sprint("holder", i)),
			func(p *corev1.Pod) { p.Spec.ResourceClaims = like.Spec.ResourceClaims }))
	}
	for i := range 10_000 {
		keep(inv.workloads, workload(fmt.Sprint("w", i), 1, like,
			func(w map[string]any) { w["spec"].(map[string]any)["queueName"] = fmt.Sprint("q", i%100) }))
	}
	inv.opts.Now = func() quantity.Instant { return at(time.Minute) }
	wait := 0
	for i := range 10_000 {
		keep(inv.pods, newPod("c", fmt.Sprint("v", i), "", claims("none"), unplaced))
		wait++
	}
	began = time.Now()
	const looks = 60
	for range looks {
		g.look()
	}
	t.Logf("beside %d that can have nothing and 10,000 Workloads a look takes %v", wait,
		(time.Since(began) / looks).Round(time.Millisecond))
	early := slices.DeleteFunc(g.keeper.Places(), func(p *reclaim.Place) bool { return p.Group == "" })
	if n := len(early); n != 100 {
		t.Errorf("for the first of 100 queues %d places are kept", n)
	}
	if kept > 600 {
		t.Errorf("%d MiB are kept, want less than 600: the operator has 1 GiB for all it does", kept)
	}
	runtime.KeepAlive(inv)
}

// resourceClaimTemplate is one for a device of the class that resourceClaim asks for.
func resourceClaimTemplate(namespace, name string) *resourcev1.ResourceClaimTemplate {
	t := &resourcev1.ResourceClaimTemplate{ObjectMeta: meta(namespace, name)}
	t.Spec.Spec = resourceClaim(namespace, name).Spec
	return t
}
