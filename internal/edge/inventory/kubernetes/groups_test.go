//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
)

// workload is one of Kueue's, of a Job of the same name, with n Pods like one.
func workload(name string, n int64, like *corev1.Pod, change ...func(w map[string]any)) *unstructured.Unstructured {
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&like.Spec)
	if err != nil {
		panic(err)
	}
	w := map[string]any{
		"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "Workload",
		"metadata": map[string]any{
			"name": "job-" + name, "namespace": "a", "uid": "uid-w-" + name, "creationTimestamp": t0.Format(time.RFC3339),
			"ownerReferences": []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": "uid-a-" + name,
				"controller": true}},
		},
		"spec": map[string]any{"queueName": "q",
			"podSets": []any{map[string]any{"name": "main", "count": n, "template": map[string]any{"spec": spec}}}},
		"status": map[string]any{},
	}
	for _, f := range change {
		f(w)
	}
	return &unstructured.Unstructured{Object: w}
}

// hasQuota is one with quota; admitted too where nothing else holds it back.
func hasQuota(conditions ...string) func(map[string]any) {
	return func(w map[string]any) {
		var list []any
		for _, c := range append(conditions, "QuotaReserved") {
			list = append(list, map[string]any{"type": c, "status": "True", "lastTransitionTime": t0.Format(time.RFC3339)})
		}
		w["status"] = map[string]any{"conditions": list, "admission": map[string]any{
			"clusterQueue": "cq", "podSetAssignments": []any{map[string]any{"name": "main",
				"flavors": map[string]any{"nvidia.com/mig-1g.10gb": "f"}}},
		}}
	}
}

func runsFor(d time.Duration) func(map[string]any) {
	return func(w map[string]any) {
		w["spec"].(map[string]any)["maximumExecutionTimeSeconds"] = int64(d / time.Second)
	}
}

func ranks(n int64) func(map[string]any) {
	return func(w map[string]any) { w["spec"].(map[string]any)["priority"] = n }
}

// kueueOf is a Kueue with these Workloads, a LocalQueue and a flavor.
func kueueOf(workloads ...*unstructured.Unstructured) *dynamicfake.FakeDynamicClient {
	list := []runtime.Object{
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue",
			"metadata": map[string]any{"name": "q", "namespace": "a"}, "spec": map[string]any{"clusterQueue": "cq"}}},
		&unstructured.Unstructured{Object: map[string]any{"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor",
			"metadata": map[string]any{"name": "f"}, "spec": map[string]any{"nodeLabels": map[string]any{"zone": "a"}}}},
	}
	for _, w := range workloads {
		list = append(list, w)
	}
	kinds := map[schema.GroupVersionResource]string{}
	for resource, kind := range map[string]string{"workloads": "WorkloadList", "localqueues": "LocalQueueList",
		"resourceflavors": "ResourceFlavorList"} {
		kinds[schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta1", Resource: resource}] = kind
	}
	return dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, list...)
}

func inZone(n *corev1.Node) { n.Labels["zone"] = "a" }

// ahead is what is held for who is to come: from when on, and what is cut short.
func ahead(held []inventory.Sighting) (list []string) {
	for _, s := range held {
		for _, r := range s.Closures {
			if r.Kind != protocol.ForReclaim {
				continue
			}
			text := string(s.Slice)
			if r.Start != 0 {
				text += fmt.Sprint(" from ", r.Start.Sub(at(0)))
			}
			if r.End != quantity.Never {
				text += fmt.Sprint(" to ", r.End.Sub(at(0)))
			}
			if r.Truncate {
				text += " cut"
			}
			list = append(list, text+" "+r.Source)
		}
	}
	return list
}

// TestPlacesAreKeptForWhatIsToCome: for Pods that are not there yet, of what Kueue has let in or is about to.
func TestPlacesAreKeptForWhatIsToCome(t *testing.T) {
	const mig, waits = "nvidia.com/mig-1g.10gb", ", which waits for it"
	wants := func(n int64) *corev1.Pod { return newPod("a", "x", "", asks(mig, n)) }
	// A machine with two slices: one of ours for an hour, the other one is free.
	half := []runtime.Object{node("v", has(mig, 2), inZone), newPod("s", "sluice-op-1", "v", ours("v/mig-1g.10gb.0"), asks(mig, 1),
		began(-time.Minute), lasts(time.Hour))}
	// The other one is a Pod's of a Workload that may run for an hour from t0.
	full := append(slices.Clip(half), newPod("a", "h", "v", asks(mig, 1), of("Job", "h")))
	holder := workload("h", 1, wants(1), hasQuota("Admitted"), runsFor(time.Hour))
	elsewhere := node("v", has(mig, 2))
	for _, c := range []struct {
		name      string
		pools     []Pool
		objects   []runtime.Object
		workloads []*unstructured.Unstructured
		want      []string
	}{
		{"it is let in, and there is room", nil, half, []*unstructured.Unstructured{workload("j", 1, wants(1), hasQuota("Admitted"))},
			[]string{"v/mig-1g.10gb.1 workload a/job-j" + waits}},
		{"two Pods, and room for one", nil, half, []*unstructured.Unstructured{workload("j", 2, wants(1), hasQuota("Admitted"))}, []string{
			"v/mig-1g.10gb.0 workload a/job-j" + waits, "v/mig-1g.10gb.0 workload a/job-j" + waits, "v/mig-1g.10gb.0 from 30s cut " +
				"workload a/job-j" + waits, "v/mig-1g.10gb.1 workload a/job-j" + waits}},
		{"more than there can ever be", nil, half, []*unstructured.Unstructured{workload("j", 3, wants(1), hasQuota("Admitted"))}, nil},
		{"quota, and no leave to start yet", nil, half, []*unstructured.Unstructured{workload("j", 2, wants(1), hasQuota())}, []string{
			"v/mig-1g.10gb.0 workload a/job-j" + waits, "v/mig-1g.10gb.0 workload a/job-j" + waits, "v/mig-1g.10gb.1 workload a/job-j" +
				waits}},
		{"its flavor is of other machines", nil, append(half[1:], elsewhere),
			[]*unstructured.Unstructured{workload("j", 1, wants(1), hasQuota("Admitted"))}, nil},
		{"its Pods are there", nil, full, []*unstructured.Unstructured{workload("h", 1, wants(1), hasQuota("Admitted"))}, nil},
		{"it is over", nil, half, []*unstructured.Unstructured{workload("j", 1, wants(1), hasQuota("Admitted", "Finished"))}, nil},
		{"it waits, and nothing says how long", nil, full, []*unstructured.Unstructured{workload("j", 1, wants(1)),
			workload("h", 1, wants(1), hasQuota("Admitted"))}, nil},
		{"it waits for what ends", nil, full, []*unstructured.Unstructured{workload("j", 1, wants(1)), holder},
			[]string{"v/mig-1g.10gb.1 from 1h0m30s cut workload a/job-j" + waits}},
		{"it will not hold it for ever", nil, full, []*unstructured.Unstructured{workload("j", 1, wants(1), runsFor(time.Hour)), holder},
			[]string{"v/mig-1g.10gb.1 from 1h0m30s to 2h0m30s cut workload a/job-j" + waits}},
		{"it waits for more than ends", nil, full, []*unstructured.Unstructured{workload("j", 2, wants(1)), holder}, nil},
		{"who is first", nil, full, []*unstructured.Unstructured{workload("j", 1, wants(1)), workload("k", 1, wants(1), ranks(5)), holder},
			[]string{"v/mig-1g.10gb.1 from 1h0m30s cut workload a/job-k" + waits}},
		{"its pool keeps what it has", []Pool{{Name: "p", Resources: small().Resources, NeverGives: true}}, half,
			[]*unstructured.Unstructured{workload("j", 2, wants(1), hasQuota("Admitted"))}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(serve(c.objects...))
			o.Pools, o.Now, o.Dynamic = c.pools, func() quantity.Instant { return at(0) }, kueueOf(c.workloads...)
			if o.Pools == nil {
				o.Pools = []Pool{small()}
			}
			inv := opened(t, o)
			g := gives(inv)
			g.look()
			if got := ahead(g.held()); !slices.Equal(got, c.want) {
				t.Errorf("held are\n%q, want\n%q", got, c.want)
			}
		})
	}
}

// TestDevicesAreKeptForWhatIsToCome: the same for claims that are made of a template.
func TestDevicesAreKeptForWhatIsToCome(t *testing.T) {
	made := resourceClaimTemplate("a", "gpu")
	like := newPod("a", "x", "", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: ptr("gpu")}}
	})
	o := options(serve(append(filled(), made)...))
	o.Pools, o.Now = []Pool{migs("3g.40gb")}, func() quantity.Instant { return at(0) }
	o.Dynamic = kueueOf(workload("j", 1, like, hasQuota("Admitted"), func(w map[string]any) {
		delete(w["status"].(map[string]any)["admission"].(map[string]any), "podSetAssignments")
	}))
	g := gives(opened(t, o))
	g.look()
	want := []string{"w/gpu-0-mig-3g-3 at 30s for workload a/job-j, which waits for it"}
	if got := cut(g.held()); !slices.Equal(got, want) {
		t.Errorf("cut are %q, want %q", got, want)
	}
	got := g.reasons()
	if begins := "workload a/job-j is kept: a place is kept on w for one that is still to come: what runs on w/gpu-0-mig-3g-3 stops, " +
		"which loses "; len(got) != 1 || !strings.HasPrefix(got[0], begins) {
		t.Errorf("the reasons are\n%q, want\n%q", got, begins)
	}
}

// TestAPlaceIsHandedOver to the Pod that it was kept for, and let go where none comes.
func TestAPlaceIsHandedOver(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	c := serve(node("v", has(mig, 2), inZone),
		newPod("s", "sluice-op-1", "v", ours("v/mig-1g.10gb.0"), asks(mig, 1), began(-time.Minute), lasts(time.Hour)),
		newPod("s", "sluice-op-2", "v", ours("v/mig-1g.10gb.1"), asks(mig, 1), began(-2*time.Minute), lasts(time.Hour)))
	var now atomic.Int64
	now.Store(int64(at(0)))
	o := options(c)
	o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return quantity.Instant(now.Load()) }
	o.Dynamic = kueueOf(workload("j", 1, newPod("a", "x", "", asks(mig, 1)), hasQuota("Admitted")))
	inv := opened(t, o)
	g := gives(inv)
	look := g.look
	look()
	if got := cut(g.held()); !slices.Equal(got, []string{"v/mig-1g.10gb.0 at 30s for workload a/job-j, which waits for it"}) {
		t.Fatalf("cut are %q", got)
	}
	now.Store(int64(at(10 * time.Second)))
	ctx := t.Context()
	check[*corev1.Pod](t)(c.CoreV1().Pods("a").Create(ctx, newPod("a", "p", "", asks(mig, 1), of("Job", "j"), unplaced),
		metav1.CreateOptions{}))
	wait(t, func() bool { _, there := get[*pod](inv.pods, "a/p"); return there })
	look()
	if got := cut(g.held()); !slices.Equal(got, []string{"v/mig-1g.10gb.0 at 30s for pod a/p, which waits for it"}) {
		t.Fatalf("cut are %q", got)
	}
	if err := c.CoreV1().Pods("a").Delete(ctx, "p", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.CoreV1().Pods("s").Delete(ctx, "sluice-op-1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool {
		_, waits := get[*pod](inv.pods, "a/p")
		_, runs := get[*pod](inv.pods, "s/sluice-op-1")
		return !waits && !runs
	})
	look()
	if got := ahead(g.held()); len(got) != 1 {
		t.Fatalf("held are %q: the Pod of the Workload is to come again", got)
	}
	for _, d := range []time.Duration{time.Minute, 5 * time.Minute} {
		now.Store(int64(at(d)))
		look()
	}
	if got := ahead(g.held()); len(got) != 0 {
		t.Fatalf("held are %q for a Pod that does not come", got)
	}
}

// TestTheEndOfASetOfJobs is that of the Pods of its Jobs.
func TestTheEndOfASetOfJobs(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	j := &batchv1.Job{ObjectMeta: meta("a", "j-0")}
	j.OwnerReferences = []metav1.OwnerReference{{Kind: "JobSet", Name: "j", UID: "uid-a-j", Controller: ptr(true)}}
	o := options(serve(node("v", has(mig, 1)), j, newPod("a", "p", "v", asks(mig, 1), of("Job", "j-0"))))
	o.Dynamic = kueueOf(workload("j", 1, newPod("a", "x", "", asks(mig, 1)), hasQuota("Admitted"), runsFor(time.Hour)))
	endsAt(t, opened(t, o), at(time.Hour+30*time.Second))
}

// TestWhoIsNotLetIn though its time came is no head any more: who is behind it may be next.
func TestWhoIsNotLetIn(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	like := newPod("a", "x", "", asks(mig, 1))
	o := options(serve(node("v", has(mig, 2), inZone), newPod("a", "h", "v", asks(mig, 1), of("Job", "h")),
		newPod("a", "i", "v", asks(mig, 1), of("Job", "i"))))
	var now atomic.Int64
	now.Store(int64(at(0)))
	o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return quantity.Instant(now.Load()) }
	o.Dynamic = kueueOf(workload("j", 1, like, ranks(5)), workload("k", 1, like),
		workload("h", 1, like, hasQuota("Admitted"), runsFor(time.Hour)),
		workload("i", 1, like, hasQuota("Admitted"), runsFor(2*time.Hour)))
	g := gives(opened(t, o))
	for _, c := range []struct {
		at   time.Duration
		want string
	}{
		{0, "v/mig-1g.10gb.1 from 1h0m30s cut workload a/job-j, which waits for it"},
		{time.Hour + time.Minute, "v/mig-1g.10gb.1 from 1h0m30s cut workload a/job-j, which waits for it"},
		{time.Hour + 2*time.Minute, "v/mig-1g.10gb.1 from 2h0m30s cut workload a/job-k, which waits for it"},
	} {
		now.Store(int64(at(c.at)))
		for range 3 {
			g.look()
		}
		if got := ahead(g.held()); !slices.Equal(got, []string{c.want}) {
			t.Errorf("after %v held are %q, want %q", c.at, got, c.want)
		}
	}
}

// TestWhatMayNotBeRead for Kueue keeps nothing from starting.
func TestWhatMayNotBeRead(t *testing.T) {
	c := serve(node("v", has("nvidia.com/mig-1g.10gb", 1)))
	c.PrependReactor("list", "resourceclaimtemplates", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("resourceclaimtemplates is forbidden")
	})
	o := options(c)
	o.Dynamic, o.Patience = kueueOf(), 10*time.Millisecond
	inv := opened(t, o)
	if _, err := inv.Away(); err != nil {
		t.Error("the cluster is said to be away:", err)
	}
}

// ownedBy is a Workload that Pods themselves own, as Kueue's of plain Pods and of groups of them are.
func ownedBy(pods ...string) func(map[string]any) {
	return func(w map[string]any) {
		var list []any
		for _, name := range pods {
			list = append(list, map[string]any{"apiVersion": "v1", "kind": "Pod", "name": name, "uid": "uid-a-" + name})
		}
		w["metadata"].(map[string]any)["ownerReferences"] = list
	}
}

// TestAPlaceForLaterIsHandedOver: the first of a queue is let in, and its Pod is there before anybody has looked. What was kept from later
// on is kept from now on.
func TestAPlaceForLaterIsHandedOver(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	like := newPod("a", "x", "", asks(mig, 1))
	o := options(serve(node("v", has(mig, 2), inZone), newPod("a", "h", "v", asks(mig, 1), of("Job", "h")),
		newPod("s", "sluice-op-1", "v", ours("v/mig-1g.10gb.0"), asks(mig, 1), began(-time.Minute), lasts(3*time.Hour))))
	now := at(0)
	o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return now }
	o.Dynamic = kueueOf(workload("j", 1, like), workload("h", 1, like, hasQuota("Admitted"), runsFor(time.Hour)))
	inv := opened(t, o)
	g := gives(inv)
	look := func() []string { g.look(); return ahead(g.held()) }
	if got, want := look(), []string{"v/mig-1g.10gb.1 from 1h0m30s cut workload a/job-j, which waits for it"}; !slices.Equal(got, want) {
		t.Fatalf("held are %q, want %q", got, want)
	}
	now = at(time.Minute)
	inv.loses(t, inv.pods, newPod("a", "h", "v"))
	inv.hears(t, inv.pods, newPod("a", "p", "", asks(mig, 1), of("Job", "j"), unplaced))
	inv.hears(t, inv.workloads, workload("j", 1, like, hasQuota("Admitted")))
	if got, want := look(), []string{"v/mig-1g.10gb.1 pod a/p, which waits for it"}; !slices.Equal(got, want) {
		t.Errorf("held are %q, want %q", got, want)
	}
	if p := g.place("uid-a-p"); p == nil || p.From != 0 || p.Open || p.Group != "" {
		t.Errorf("kept is %+v", p)
	}
}

// TestPodsThatAreTheirOwnWorkload are there when they are.
func TestPodsThatAreTheirOwnWorkload(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	like := newPod("a", "x", "", asks(mig, 1))
	for name, owners := range map[string][]string{"a plain Pod": {"p"}, "a group": {"p", "q"}} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{node("v", has(mig, 4), inZone),
				newPod("s", "sluice-op-1", "v", ours("v/mig-1g.10gb.0"), asks(mig, 1)),
				newPod("s", "sluice-op-2", "v", ours("v/mig-1g.10gb.1"), asks(mig, 1))}
			for _, owner := range owners {
				objects = append(objects, newPod("a", owner, "v", asks(mig, 1)))
			}
			o := options(serve(objects...))
			o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return at(0) }
			o.Dynamic = kueueOf(workload("j", int64(len(owners)), like, hasQuota("Admitted"), runsFor(time.Hour), ownedBy(owners...)))
			inv := opened(t, o)
			g := gives(inv)
			g.look()
			if got := ahead(g.held()); len(got) != 0 {
				t.Errorf("held are %q", got)
			}
			for _, owner := range owners {
				p, _ := get[*pod](inv.pods, "a/"+owner)
				if got := p.ends(inv.limit); got != at(time.Hour+30*time.Second) {
					t.Errorf("%s ends after %v", owner, got.Sub(at(0)))
				}
			}
		})
	}
}

// TestOneClaimOfAWorkload whose Pods share it has its devices once, and all of its Pods are where it is.
func TestOneClaimOfAWorkload(t *testing.T) {
	like := newPod("a", "x", "", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "all", ResourceClaimName: ptr("c")}}
	})
	beside := like.DeepCopy()
	beside.Spec.ResourceClaims = append(beside.Spec.ResourceClaims,
		corev1.PodResourceClaim{Name: "own", ResourceClaimTemplateName: ptr("gpu")})
	for name, c := range map[string]struct {
		like *corev1.Pod
		n    int
	}{"it alone": {like, 1}, "and one more each": {beside, 3}} {
		t.Run(name, func(t *testing.T) {
			objects := slices.Concat([]runtime.Object{node("w"), board("w"), node("v"), board("v"),
				resourceClaim("a", "c", wanted("gpu.nvidia.com")), func() runtime.Object {
					made := resourceClaimTemplate("a", "gpu")
					made.Spec.Spec.Devices.Requests[0].Exactly.DeviceClassName = "gpu.nvidia.com"
					return made
				}()})
			for _, device := range []string{"a0", "a1", "b0", "b1"} {
				for _, machine := range []string{"v", "w"} {
					objects = append(objects, filler(machine, device, -time.Minute)...)
				}
			}
			o := options(serve(objects...))
			o.Pools, o.Now = []Pool{wholes()}, func() quantity.Instant { return at(0) }
			o.Dynamic = kueueOf(workload("j", 2, c.like, hasQuota("Admitted"), func(w map[string]any) {
				delete(w["status"].(map[string]any)["admission"].(map[string]any), "podSetAssignments")
			}))
			inv := opened(t, o)
			g := gives(inv)
			g.look()
			got := cut(g.held())
			if len(got) != c.n || slices.ContainsFunc(got, func(s string) bool { return s[0] != got[0][0] }) {
				t.Errorf("cut are %q, want %d of one machine", got, c.n)
			}
		})
	}
}
