//go:build kubernetes

package slices

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes"
	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	os.Exit(plane.Run(m, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok),
		plane.Feature("DRADeviceTaints", true), plane.Feature("DRADeviceTaintRules", true), plane.API("resource.k8s.io/v1beta2")))
}

// world is an inventory of one machine, what it says, and what a node gives back by that.
type world struct {
	*testing.T
	*plane.Plane
	ns, machine string
	inv         *kubernetes.Inventory

	mu    sync.Mutex
	holds map[job.SliceID][]protocol.Reservation
	sick  map[job.SliceID][]health.State
	gives giving.Giver
	kept  map[job.SliceID][]protocol.Reservation
}

// watching opens an inventory of one machine's GPU, cut in a profile.
func watching(t *testing.T, machine, profile string) *world {
	t.Helper()
	p := plane.Of(t)
	w := &world{T: t, Plane: p, ns: p.Namespace(t), machine: machine, holds: map[job.SliceID][]protocol.Reservation{},
		sick: map[job.SliceID][]health.State{}, kept: map[job.SliceID][]protocol.Reservation{}}
	p.Classes(t)
	p.Machines(t, []string{machine}, map[string]int64{"example.com/slice": 2})
	p.GPUs(t, machine, 1)
	n, err := p.Client().CoreV1().Nodes().Get(context.Background(), machine, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inv, err := kubernetes.Open(t.Context(), kubernetes.Options{Client: p.Client(), Operator: machine, Pools: []kubernetes.Pool{{
		Name: "leftovers", Nodes: map[string]string{"kubernetes.io/hostname": n.Labels["kubernetes.io/hostname"]}, Notice: time.Second,
		Classes:   []kubernetes.Class{{Name: plane.MIGClass, Driver: plane.Driver, Attributes: map[string]string{"profile": profile}}},
		Resources: []kubernetes.Resource{{Name: "example.com/slice", Memory: 1 << 30}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	w.inv = inv
	for _, s := range inv.Held() {
		w.hear(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- inv.Watch(ctx, nil, func(s inventory.Sighting) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.hear(s)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := inv.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) hear(s inventory.Sighting) {
	switch {
	case s.Vitals != nil:
		w.sick[s.Vitals.Slices[0]] = s.Vitals.Look.States
	case s.Wishes != nil:
		w.gives.Hear(quantity.At(time.Now()), s.Wishes)
	case !s.Restocked:
		w.holds[s.Slice] = s.Closures
	}
}

// held is what was said last of a slice, and then what is kept of it, kinds joined by blanks; CUT is behind what cuts short.
func (w *world) held(slice string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now, due := quantity.At(time.Now()), w.gives.Due(); due != 0 && due <= now {
		w.gives.Decide(now, giving.Node{
			Confirmed: true, Sold: func(job.SliceID) []giving.Sold { return nil },
			Keep: func(id job.SliceID, kept []protocol.Reservation) { w.kept[id] = kept },
		})
	}
	var words []string
	id := job.SliceID(w.machine + "/" + slice)
	for _, r := range append(slices.Clone(w.holds[id]), w.kept[id]...) {
		word := r.Kind.String()
		if r.Truncate {
			word += " CUT"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func (w *world) until(what string, want map[string]string) {
	w.Helper()
	plane.Eventually(w, what, func() (bool, string) {
		said := ""
		for slice, want := range want {
			if got := w.held(slice); got != want {
				said += fmt.Sprintf("%s is %q, want %q; ", slice, got, want)
			}
		}
		return said == "", said
	})
}

// pod makes a Pod with a claim of its name, for the device of a profile that begins at a memory slice; without a profile with an extended
// resource. One with a slice is ours.
func (w *world) pod(name, profile string, at int, slice string) {
	w.Helper()
	ctx := context.Background()
	labels, annotations := map[string]string{}, map[string]string{}
	if slice != "" {
		labels[cluster.LabelOperator], annotations[cluster.AnnotationSlice] = w.machine, w.machine+"/"+w.machine+"/"+slice
	}
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64),
			Containers:   []corev1.Container{{Name: "main", Image: "example.com/work:1"}},
			NodeSelector: map[string]string{"kubernetes.io/hostname": w.machine},
		},
	}
	if profile == "" {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/slice": *resource.NewQuantity(int64(at),
			resource.DecimalSI)}
	} else {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &name}}
		p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		only := fmt.Sprintf(
			`device.attributes["gpu.nvidia.com"].parentUUID == "GPU-%s-0" && device.attributes["gpu.nvidia.com"].profile == "%s" && "memorySlice%d" in device.capacity["gpu.nvidia.com"]`, w.machine, profile, at)
		c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "gpu", Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: plane.MIGClass,
					Selectors:       []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: only}}},
				}}},
			}}}
		if _, err := w.Client().ResourceV1().ResourceClaims(w.ns).Create(ctx, c, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
	if _, err := w.Client().CoreV1().Pods(w.ns).Create(ctx, p, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
}

// ends is what the executor does when a lease is over.
func (w *world) ends(name string, claimed bool) {
	w.Helper()
	ctx := context.Background()
	if err := w.Client().CoreV1().Pods(w.ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	if claimed {
		if err := w.Client().ResourceV1().ResourceClaims(w.ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// TestADeviceIsGivenBack to a Pod for which the scheduler finds none, since a subjob of ours has what it shares: the subjob is cut short,
// the place is kept, and in the end it is somebody else's. Nobody else is disturbed.
func TestADeviceIsGivenBack(t *testing.T) {
	w := watching(t, "given-dra", "3g.40gb")
	list, err := w.inv.Slices(t.Context())
	var ids []string
	for _, s := range list {
		ids = append(ids, string(s.ID))
	}
	if want := []string{"given-dra/gpu-0-mig-3g40gb-0", "given-dra/gpu-0-mig-3g40gb-4", "given-dra/slice.0",
		"given-dra/slice.1"}; err != nil || !slices.Equal(ids, want) {
		t.Fatalf("slices %v, %v, want %v", ids, err, want)
	}
	w.pod("ours-0", "3g.40gb", 0, "gpu-0-mig-3g40gb-0")
	w.pod("ours-4", "3g.40gb", 4, "gpu-0-mig-3g40gb-4")
	for _, name := range []string{"ours-0", "ours-4"} {
		w.Pod(t, w.ns, name, "runs", plane.In(corev1.PodRunning))
	}
	created := time.Now()
	w.pod("host", "1g.10gb", 5, "")
	w.until("the one in its way is given back", map[string]string{"gpu-0-mig-3g40gb-0": "", "gpu-0-mig-3g40gb-4": "reclaim reclaim CUT"})
	noticed := time.Since(created)
	w.ends("ours-4", true)
	w.Pod(t, w.ns, "host", "runs", plane.In(corev1.PodRunning))
	t.Logf("the host's Pod is seen to wait, and the subjob has its notice, after %v; it runs after %v, without the notice",
		noticed.Round(time.Millisecond), time.Since(created).Round(time.Millisecond))
	w.until("it is somebody else's", map[string]string{"gpu-0-mig-3g40gb-0": "", "gpu-0-mig-3g40gb-4": "foreign"})
	w.ends("host", true)
	w.until("it is free", map[string]string{"gpu-0-mig-3g40gb-0": "", "gpu-0-mig-3g40gb-4": ""})
}

// TestAnExtendedResourceIsGivenBack to a Pod that may not preempt: two are asked for, and one is free.
func TestAnExtendedResourceIsGivenBack(t *testing.T) {
	w := watching(t, "given-ext", "7g.80gb")
	w.pod("ours", "", 1, "slice.0")
	w.Pod(t, w.ns, "ours", "runs", plane.In(corev1.PodRunning))
	w.until("nobody else is there", map[string]string{"slice.0": "", "slice.1": ""})
	w.pod("host", "", 2, "")
	w.until("all of it is kept for who waits", map[string]string{"slice.0": "reclaim reclaim CUT", "slice.1": "reclaim"})
	w.ends("ours", false)
	w.Pod(t, w.ns, "host", "runs", plane.In(corev1.PodRunning))
	w.until("it is somebody else's", map[string]string{"slice.0": "foreign", "slice.1": "foreign"})
}

// TestTheServerIsAway: what it said last stands, that is said, and what has changed meanwhile is heard when it is back.
func TestTheServerIsAway(t *testing.T) {
	w := watching(t, "away", "7g.80gb")
	w.pod("host", "", 1, "")
	w.until("somebody is there", map[string]string{"slice.0": "", "slice.1": "foreign"})
	w.Kill(plane.APIServer)
	plane.Eventually(t, "it is said", func() (bool, string) { d := w.inv.Describe(); return strings.Contains(d, "away since"), d })
	if list, err := w.inv.Slices(t.Context()); err != nil || len(list) != 3 || w.held("slice.1") != "foreign" {
		t.Errorf("while it is away there are %d slices (%v), and slice.1 is %q", len(list), err, w.held("slice.1"))
	}
	if err := w.Start(plane.APIServer); err != nil {
		t.Fatal(err)
	}
	w.ends("host", false)
	w.until("it is heard again", map[string]string{"slice.0": "", "slice.1": ""})
	w.pod("other", "", 2, "")
	w.until("and goes on", map[string]string{"slice.0": "foreign", "slice.1": "foreign"})
	plane.Eventually(t, "it is not away", func() (bool, string) { d := w.inv.Describe(); return !strings.Contains(d, "away"), d })
}
