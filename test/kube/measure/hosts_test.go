//go:build kubernetes

package measure

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/test/kube/plane"
)

// By is how devices are asked for.
type By string

// DRA is by claims, Extended by extended resources of a device plugin.
const (
	DRA      By = "DRA"
	Extended By = "extended resources"
)

// mig is the extended resource of Extended, and profile what a claim of DRA asks for: the same piece of a GPU, of which a machine has
// seven.
const (
	mig     = "nvidia.com/mig-1g.10gb"
	profile = "1g.10gb"
	pieces  = 7
)

// Priority classes: the hosts' Pods, and fillers that the cluster itself is told of.
const (
	hostClass     = "measure-host"
	leftoverClass = "measure-leftover"
)

// Load is what the hosts' people do: Pods that come at random, each for one device and for some seconds.
type Load struct {
	Machines int
	Pods     int
	// Every is the mean time between two, exponentially distributed; Runs is how long each runs, in whole seconds.
	Every time.Duration
	Runs  int
	Seed  uint64
}

// world is a plane with machines, which a measurement fills and then loads.
type world struct {
	t         testing.TB
	p         *plane.Plane
	by        By
	device    device
	load      Load
	namespace string
	machines  []string
}

func newWorld(t testing.TB, p *plane.Plane, by By, load Load) *world {
	t.Helper()
	return newWorldOf(t, p, by, small, load)
}

func newWorldOf(t testing.TB, p *plane.Plane, by By, of device, load Load) *world {
	t.Helper()
	w := &world{t: t, p: p, by: by, device: of, load: load}
	ctx := context.Background()
	never := corev1.PreemptNever
	for _, c := range []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: leftoverClass}, Value: -1_000_000, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: hostClass}, Value: 1_000_000},
	} {
		if _, err := p.Client().SchedulingV1().PriorityClasses().Create(ctx, c, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
	for i := range load.Machines {
		w.machines = append(w.machines, fmt.Sprintf("m-%04d", i))
	}
	switch by {
	case DRA:
		p.Classes(t)
		p.Machines(t, w.machines, nil)
		for _, m := range w.machines {
			p.GPUs(t, m, 1)
		}
	case Extended:
		p.Machines(t, w.machines, map[string]int64{of.resource: int64(of.pieces)})
	}
	w.namespace = p.Namespace(t)
	return w
}

// template makes the claims of Pods in a namespace, one each.
func (w *world) template(namespace string) {
	w.t.Helper()
	if w.by != DRA {
		return
	}
	one := &resourcev1.ExactDeviceRequest{DeviceClassName: w.device.class}
	if w.device.selector != "" {
		one.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: w.device.selector}}}
	}
	x := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "piece"},
		Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "piece", Exactly: one}}}}}}
	if _, err := w.p.Client().ResourceV1().ResourceClaimTemplates(namespace).Create(context.Background(), x,
		metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// spec is a Pod's: one device, and a priority class.
func (w *world) spec(class string) corev1.PodSpec {
	s := corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, PriorityClassName: class,
		Containers: []corev1.Container{{Name: "work", Image: "example.com/work:1"}}}
	if w.by == Extended {
		s.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(w.device.resource): resource.MustParse("1")}
		return s
	}
	template := "piece"
	s.ResourceClaims = []corev1.PodResourceClaim{{Name: "piece", ResourceClaimTemplateName: &template}}
	s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "piece"}}
	return s
}

// Waits are the times from the creation of the hosts' Pods to their start.
type Waits struct {
	// Started are those of the Pods that started, ascending; Never is how many had not when the watching ended.
	Started []time.Duration
	Never   int
	// Parts are those of the waits, and Longest the ten longest, taken apart.
	Parts   []Part
	Longest []string
}

// At is a quantile of all Pods' waits; false: that Pod had not started.
func (w *Waits) At(q float64) (time.Duration, bool) {
	i := int(math.Ceil(q*float64(len(w.Started)+w.Never))) - 1
	if i = max(i, 0); i >= len(w.Started) {
		return 0, false
	}
	return w.Started[i], true
}

// hosts plays the load, and returns how long its Pods waited. It ends when all have started, or patience after the last was made.
func (w *world) hosts(patience time.Duration) *Waits {
	t := w.t
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ns := w.p.Namespace(t)
	w.template(ns)

	trails := follow(ctx, t, w)
	var mu sync.Mutex
	made, ran := map[string]time.Time{}, map[string]time.Time{}
	all := make(chan struct{})
	seen := func(o any) {
		pod, is := o.(*corev1.Pod)
		if is {
			trails.host(pod)
		}
		if !is || pod.Status.Phase != corev1.PodRunning && pod.Status.Phase != corev1.PodSucceeded {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if _, known := ran[pod.Name]; !known {
			if ran[pod.Name] = time.Now(); len(ran) == w.load.Pods {
				close(all)
			}
		}
	}
	list := cache.NewListWatchFromClient(w.p.Client().CoreV1().RESTClient(), "pods", ns, fields.Everything())
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: list, ObjectType: &corev1.Pod{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: seen, UpdateFunc: func(_, o any) { seen(o) }}})
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("no informer of the hosts' Pods")
	}

	rng := rand.New(rand.NewPCG(w.load.Seed, 0)) //nolint:gosec // a load that can be repeated
	for i := range w.load.Pods {
		time.Sleep(time.Duration(rng.ExpFloat64() * float64(w.load.Every)))
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("host-%05d", i),
			Annotations: map[string]string{plane.Seconds: strconv.Itoa(w.load.Runs)}}, Spec: w.spec(hostClass)}
		mu.Lock()
		made[pod.Name] = time.Now()
		mu.Unlock()
		trails.made(pod.Name)
		if _, err := w.p.Client().CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-all:
	case <-time.After(patience):
	}
	mu.Lock()
	defer mu.Unlock()
	waits := &Waits{Never: w.load.Pods - len(ran)}
	for name, at := range ran {
		waits.Started = append(waits.Started, at.Sub(made[name]))
	}
	slices.Sort(waits.Started)
	waits.Parts, waits.Longest = trails.parts()
	return waits
}
