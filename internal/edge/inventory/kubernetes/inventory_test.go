//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/inventorytest"
)

// serve makes a cluster of these objects, with DRA and Kueue.
func serve(objects ...runtime.Object) *fake.Clientset {
	c := fake.NewClientset(objects...)
	c.Resources = []*metav1.APIResourceList{
		{GroupVersion: "resource.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "resourceslices"}, {Name: "resourceclaims"},
			{Name: "deviceclasses"}}},
		{GroupVersion: "kueue.x-k8s.io/v1beta1", APIResources: []metav1.APIResource{{Name: "workloads"}, {Name: "localqueues"},
			{Name: "resourceflavors"}}},
	}
	return c
}

func options(c *fake.Clientset) Options {
	return Options{Client: c, Operator: "op", Pools: []Pool{migs("3g.40gb", "1g.10gb"), small()}, Settle: time.Millisecond}
}

func opened(t testing.TB, o Options) *Inventory {
	t.Helper()
	inv, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := inv.Close(); err != nil {
			t.Error(err)
		}
	})
	return inv
}

func TestConformance(t *testing.T) {
	parts := partitionable("w")
	inventorytest.Run(t, func(t *testing.T) inventory.Inventory {
		inv, err := Open(t.Context(), options(serve(node("w", has("nvidia.com/mig-1g.10gb", 3)), node("v"), parts[0], parts[1])))
		if err != nil {
			t.Fatal(err)
		}
		return inv
	})
}

// follower keeps what an inventory says, as a node would.
type follower struct {
	mu sync.Mutex
	*giver
	there map[job.SliceID]bool
	sick  map[job.SliceID][]health.State
	news  chan struct{}
}

func follow(t *testing.T, inv *Inventory) *follower {
	t.Helper()
	f := &follower{giver: gives(inv), sick: map[job.SliceID][]health.State{}, news: make(chan struct{}, 1)}
	list := func() {
		all, err := inv.Slices(t.Context())
		if err != nil {
			t.Error(err)
		}
		f.there = map[job.SliceID]bool{}
		for _, s := range all {
			f.there[s.ID] = true
		}
	}
	list()
	hear := func(s inventory.Sighting) {
		if s.Vitals != nil {
			f.sick[s.Vitals.Slices[0]] = s.Vitals.Look.States
			return
		}
		f.hear(s)
		f.decide()
	}
	for _, s := range inv.Held() {
		hear(s)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- inv.Watch(ctx, nil, func(s inventory.Sighting) {
			f.mu.Lock()
			if s.Restocked {
				list()
			} else {
				hear(s)
			}
			f.mu.Unlock()
			select {
			case f.news <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// until waits for what others hold, and which slices there are, to be as said: a slice's name alone, or with "held" or "gone" behind it.
func (f *follower) until(t *testing.T, want ...string) {
	t.Helper()
	f.comes(t, func() (wrong string) {
		for _, w := range want {
			id, state, _ := strings.Cut(w, " ")
			there, held := f.there[job.SliceID(id)],
				slices.ContainsFunc(f.held(), func(s inventory.Sighting) bool { return s.Slice == job.SliceID(id) })
			if there != (state != "gone") || held != (state == "held") {
				wrong += w + "; "
			}
		}
		return wrong
	})
}

// tick decides, as a node does now and then although it has heard nothing.
func (f *follower) tick() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide()
}

// kept is held, for who follows.
func (f *follower) kept() []inventory.Sighting {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held()
}

// comes waits until nothing is wrong.
func (f *follower) comes(t *testing.T, is func() (wrong string)) {
	t.Helper()
	deadline := time.After(time.Minute)
	for {
		f.mu.Lock()
		wrong := is()
		f.mu.Unlock()
		if wrong == "" {
			return
		}
		select {
		case <-f.news:
		case <-deadline:
			t.Fatalf("it does not come to %s", wrong)
		}
	}
}

func check[T any](t *testing.T) func(T, error) {
	return func(_ T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWhatChangesIsReported: Pods, claims, machines and devices come and go.
func TestWhatChangesIsReported(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	c := serve(node("v", has(mig, 1)), newPod("a", "first", "v", asks(mig, 1)))
	f := follow(t, opened(t, options(c)))
	f.until(t, "v/mig-1g.10gb.0 held")
	ctx := t.Context()
	if err := c.CoreV1().Pods("a").Delete(ctx, "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.until(t, "v/mig-1g.10gb.0")
	for _, s := range partitionable("w") {
		check[*resourcev1.ResourceSlice](t)(c.ResourceV1().ResourceSlices().Create(ctx, s, metav1.CreateOptions{}))
	}
	check[*corev1.Node](t)(c.CoreV1().Nodes().Create(ctx, node("w"), metav1.CreateOptions{}))
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3", "w/gpu-0-mig-1g-6", "v/mig-1g.10gb.0")
	check[*resourcev1.ResourceClaim](t)(c.ResourceV1().ResourceClaims("a").Create(ctx,
		resourceClaim("a", "c", allocated("w", "gpu-0-mig-1g-4", "p")), metav1.CreateOptions{}))
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held", "w/gpu-0-mig-1g-6")
	if err := c.ResourceV1().ResourceClaims("a").Delete(ctx, "c", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3", "w/gpu-0-mig-1g-6")
	cordoned := node("w")
	cordoned.Spec.Unschedulable, cordoned.ResourceVersion = true, "2"
	check[*corev1.Node](t)(c.CoreV1().Nodes().Update(ctx, cordoned, metav1.UpdateOptions{}))
	f.until(t, "w/gpu-0-mig-3g-0 held", "w/gpu-0-mig-3g-3 held", "w/gpu-0-mig-1g-6 held")
	if err := c.CoreV1().Nodes().Delete(ctx, "w", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.until(t, "w/gpu-0-mig-3g-0 gone", "w/gpu-0-mig-3g-3 gone", "w/gpu-0-mig-1g-6 gone", "v/mig-1g.10gb.0")
}

// TestAClusterWithoutDRA has extended resources alone.
func TestAClusterWithoutDRA(t *testing.T) {
	c := serve(node("v", has("nvidia.com/mig-1g.10gb", 1)))
	c.Resources = nil
	if list, err := opened(t, options(c)).Slices(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestTheLastStateStandsWhileTheServerIsAway, and it says so until it hears again.
func TestTheLastStateStandsWhileTheServerIsAway(t *testing.T) {
	inv := opened(t, options(serve(node("v", has("nvidia.com/mig-1g.10gb", 1)))))
	if strings.Contains(inv.Describe(), "away") {
		t.Fatal(inv.Describe())
	}
	inv.mu.Lock()
	first, again := inv.away.fails(inv.nodes, errors.New("connection refused")), inv.away.fails(inv.nodes, errors.New("connection reset"))
	inv.mu.Unlock()
	if d := inv.Describe(); !first || again || !strings.Contains(d, "away since") || !strings.HasSuffix(d, "connection reset") ||
		!strings.HasPrefix(d, "1 slices on 1 machines") {
		t.Error(first, again, d)
	}
	if _, err := inv.Away(); err == nil {
		t.Error("it is not said")
	}
	inv.mu.Lock()
	s := inv.away.of[inv.nodes]
	s.heard = "of before"
	inv.away.of[inv.nodes] = s
	inv.mu.Unlock()
	if _, err := inv.Away(); err != nil {
		t.Error("it has heard since", err)
	}
	silent := silences{answered: time.Now().Add(-time.Hour)}
	if since, err := silent.since(); err == nil || since != silent.answered {
		t.Error("who does not answer is not away", since, err)
	}
}

// TestAServerThatDoesNotAnswer is said to be unavailable, and bad options to be invalid, all at once.
func TestAServerThatDoesNotAnswer(t *testing.T) {
	c := serve()
	c.PrependReactor("list", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("connection refused")
	})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, options(c)); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("got %v", err)
	}
	o := options(serve())
	o.Pools = []Pool{
		{Name: "empty"},
		{
			Name: "odd", Notice: -1, Classes: []Class{{Name: "x", Speed: 1001}}, Resources: []Resource{{Name: "gpu", Memory: -1}},
			Calendar: []Closing{{Name: "c", Start: at(0), End: at(0), Every: -1}},
		},
	}
	_, err := Open(t.Context(), o)
	if errkind.Of(err) != errkind.Invalid {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"names neither", "notice is", "its driver", "speed 1001", "no extended resource", "memory -1",
		"not after its start", "repeats every"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
}
