//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/all"
	"sluice.dev/sluice/internal/lab/history/record"
	"sluice.dev/sluice/internal/lab/live"
)

// begin is 40 minutes before a day ends in UTC; the clock of a test stands there first.
var begin = time.Date(2000, 1, 1, 23, 20, 0, 0, time.UTC)

func after(minutes float64) time.Time {
	return begin.Add(time.Duration(minutes * float64(time.Minute)))
}

func stamp(minutes float64) metav1.Time { return metav1.Time{Time: after(minutes)} }

// cluster is an API server in memory. What its own people do goes past the client, of which then every call is the watcher's.
type cluster struct {
	*testing.T
	*fake.Clientset
	// fails says what a call fails with; nil: it does not.
	fails func(verb, resource string) error
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{T: t, Clientset: fake.NewClientset(), fails: func(string, string) error { return nil }}
	c.PrependReactor("*", "*", func(a core.Action) (bool, runtime.Object, error) {
		err := c.fails(a.GetVerb(), a.GetResource().Resource)
		return err != nil, nil, err
	})
	c.PrependWatchReactor("*", func(a core.Action) (bool, apiwatch.Interface, error) {
		err := c.fails("watch", a.GetResource().Resource)
		return err != nil, nil, err
	})
	return c
}

// reads fails the test if anything but list and watch was called.
func (c *cluster) reads() {
	c.Helper()
	for _, a := range c.Actions() {
		what := a.GetVerb() + " " + a.GetResource().Resource
		if !slices.Contains([]string{"list pods", "watch pods", "list nodes", "watch nodes"}, what) {
			c.Errorf("%s was called", what)
		}
	}
}

func resourceOf(o runtime.Object) schema.GroupVersionResource {
	if _, is := o.(*corev1.Node); is {
		return corev1.SchemeGroupVersion.WithResource("nodes")
	}
	return corev1.SchemeGroupVersion.WithResource("pods")
}

func (c *cluster) do(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
	synctest.Wait()
}

func (c *cluster) add(o runtime.Object) { c.do(c.Tracker().Add(o)) }

func (c *cluster) update(o interface {
	runtime.Object
	metav1.Object
}) {
	c.do(c.Tracker().Update(resourceOf(o), o.DeepCopyObject(), o.GetNamespace()))
}

func (c *cluster) remove(o interface {
	runtime.Object
	metav1.Object
}) {
	c.do(c.Tracker().Delete(resourceOf(o), o.GetNamespace(), o.GetName()))
}

func gpus(n int64) corev1.ResourceList {
	return corev1.ResourceList{"nvidia.com/gpu": *resource.NewQuantity(n, resource.DecimalSI), corev1.ResourceCPU: resource.MustParse("4")}
}

func aNode(name string, n int64) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name)},
		Status: corev1.NodeStatus{Allocatable: gpus(n),
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

// aPod asks for one GPU. It is bound in a minute, or waits if that is negative.
func aPod(name string, bound float64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name, UID: types.UID("uid-" + name),
		CreationTimestamp: stamp(-100)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: gpus(1)}}}}}
	if bound >= 0 {
		bind(p, bound)
	}
	return p
}

func bind(p *corev1.Pod, minute float64) {
	p.Spec.NodeName = "n"
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue,
		LastTransitionTime: stamp(minute)}}
}

func ends(p *corev1.Pod, minute float64) {
	p.Status.Phase = corev1.PodSucceeded
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{FinishedAt: stamp(minute)}}}}
}

// process watches for a record until it is stopped, which returns what it has said.
func (c *cluster) process(path string) (stop func() []string) {
	d, err := live.Open(path)
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	source := watch(ctx, c.Clientset, "https://k")
	if err := d.Belongs(source.Name()); err != nil {
		c.Fatal(err)
	}
	var said []string
	w := live.Watch{Source: source, Dir: d, Every: time.Minute, Tell: func(x string) { said = append(said, x) }, Looked: func() {},
		Answer: func(context.Context, []live.File) {}}
	done := make(chan struct{})
	go func() { w.Run(ctx); close(done) }()
	return func() []string {
		cancel()
		<-done
		if err := d.Close(); err != nil {
			c.Fatal(err)
		}
		synctest.Wait()
		return said
	}
}

func until(minutes float64) {
	time.Sleep(time.Until(after(minutes)))
	synctest.Wait()
}

// shown are runs and absences of a record in minutes, and oddities.
func shown(t *testing.T, path string) (out []string) {
	t.Helper()
	names, err := live.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	var files []all.File
	for _, f := range names {
		files = append(files, all.File{Name: f.Path, Open: f.Open})
	}
	h, err := all.ReadFiles(history.Options{}, files...)
	if err != nil {
		t.Fatal(err)
	}
	minute := func(x quantity.Instant) string {
		if x == quantity.Never {
			return "-"
		}
		return fmt.Sprintf("%.4g", x.Time().Sub(begin).Minutes())
	}
	for i := range h.Runs {
		r := &h.Runs[i]
		out = append(out, fmt.Sprintf("%s %s..%s %s %s", r.ID, minute(r.Start), minute(r.End), r.State, h.Name(r.User)))
	}
	for _, n := range h.Nodes {
		for _, a := range n.Away {
			out = append(out, fmt.Sprintf("%s %s %s-%s", n.Name, a.Why, minute(a.From), minute(a.To)))
		}
	}
	for _, o := range h.Oddities {
		out = append(out, fmt.Sprintf("%s: %d", o.Name, o.Count))
	}
	return out
}

func podsOf(lines []record.Line) (out []record.Pod) {
	for _, l := range lines {
		out = append(out, l.Pods...)
	}
	return out
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// TestAClusterIsRemembered: what becomes of Pods and nodes is in the record, over a change of days and a start anew, and the cluster is
// only read.
func TestAClusterIsRemembered(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		until(-1)
		c := newCluster(t)
		n := aNode("n", 4)
		c.add(n)
		before, waits, own := aPod("before", 0), aPod("waits", -1), aPod("own", 0)
		bind(before, -60)
		own.Spec.PriorityClassName = "sluice-leftover"
		c.add(before)
		c.add(waits)
		c.add(own)
		c.add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "web", UID: "web"}})
		until(0)
		stop := c.process(path)
		until(5)
		bind(waits, 5)
		c.update(waits)
		until(9.6)
		ends(before, 9.5)
		c.update(before)
		until(12.2)
		short := aPod("short", 12.1) // between two looks
		c.add(short)
		until(12.6)
		c.remove(short)
		until(14.5)
		n.Spec.Unschedulable = true
		c.update(n)
		until(19.5)
		n.Spec.Unschedulable = false
		c.update(n)
		deleted := aPod("deleted", 20)
		c.add(deleted)
		until(30.1)
		ends(deleted, 30) // its last word comes with the event that it is gone
		deleted.Status.Phase, deleted.DeletionTimestamp = corev1.PodRunning, &metav1.Time{Time: after(31)}
		c.update(deleted)
		c.remove(deleted)
		until(32)
		c.remove(before) // is in the record, and over
		until(50.5)
		expect(t, stop())
		until(55)
		c.remove(waits) // nobody sees it
		meanwhile := aPod("meanwhile", 56)
		ends(meanwhile, 60)
		c.add(meanwhile)
		until(70)
		stop = c.process(path)
		until(80.5)
		expect(t, stop())
		expect(t, shown(t, path), "x/before -60..9.5 completed x", "x/waits 5..50 unclear x", "x/short 12.1..12.6 unclear x",
			"x/deleted 20..30 unclear x", "x/meanwhile 56..60 completed x", "n drained 15-20", "n not recorded 50-70",
			"a Pod of Sluice itself: 1", "a Pod that was gone when somebody looked again: 1",
			"a time in which nobody looked at the cluster: 1")
		c.reads()
	})
	files, err := live.Files(path)
	if err != nil || len(files) != 2 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0].Path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "web") {
		t.Error("a Pod without devices is in the record")
	}
}

// TestWhatFails: each failure is said once with what to do, looks go on by themselves, and the time in between is not idle.
func TestWhatFails(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		verb string
		says string
	}{
		"forbidden": {apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no")), "list",
			`list pods: pods is forbidden: no: this account needs list and watch of pods and nodes: bind it to the ClusterRole`},
		"expired": {apierrors.NewUnauthorized("Unauthorized"), "list",
			"list pods: Unauthorized: the credentials are wrong or have expired"},
		"refused": {&url.Error{Op: "Get", URL: "https://k/api", Err: &net.OpError{Op: "dial", Net: "tcp", Source: &net.TCPAddr{Port: 1234},
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}}, "list",
			"list pods: no connection to https://k: connect: connection refused; trying again"},
		"slow": {context.DeadlineExceeded, "list", "list pods: https://k does not answer in time"},
		"else": {errors.New("EOF"), "list", "list pods: EOF; trying again"},
	} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				until(0)
				k := newCluster(t)
				k.add(aNode("n", 4))
				k.add(aPod("a", 0))
				stop := k.process(path)
				until(10.5)
				k.fails = func(verb, resource string) error {
					if verb == c.verb && resource == "pods" {
						return c.err
					}
					return nil
				}
				until(25.5)
				k.fails = func(string, string) error { return nil }
				until(40.5)
				said := stop()
				if len(said) != 2 || !strings.Contains(said[0], c.says) || !strings.HasPrefix(said[1], "looks are answered again, after ") {
					t.Errorf("said %q, want %q", said, c.says)
				}
				got := shown(t, path)
				if len(got) != 3 || got[0] != "x/a 0..40 running x" || !strings.HasPrefix(got[1], "n not recorded 1") {
					t.Errorf("%q", got)
				}
				k.reads()
			})
		})
	}
}

// TestGone: a watch that the API server has forgotten lists anew, and what was lost meanwhile is gone; with one that may no longer be
// there is no look, though lists are answered.
func TestGone(t *testing.T) {
	path := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		until(0)
		c := newCluster(t)
		var watcher *apiwatch.FakeWatcher
		watches, refused := 0, false
		c.PrependWatchReactor("pods", func(core.Action) (bool, apiwatch.Interface, error) {
			if refused {
				return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no"))
			}
			watches++
			watcher = apiwatch.NewFake()
			return true, watcher, nil
		})
		c.add(aNode("n", 4))
		a, b := aPod("a", 0), aPod("b", 0)
		c.add(a)
		c.add(b)
		stop := c.process(path)
		until(5.5)
		c.remove(a) // which this watch does not tell
		until(7.5)
		expired := apierrors.NewResourceExpired("too old").ErrStatus
		watcher.Error(&expired)
		until(9.5)
		bookmark := aPod("none", -1)
		watcher.Action(apiwatch.Bookmark, bookmark)
		watcher.Stop() // as a server does from time to time
		until(10)
		if watches != 3 {
			t.Errorf("%d watches", watches)
		}
		until(15.5)
		refused = true
		watcher.Stop()
		until(24.5)
		refused = false
		until(30.5)
		if said := stop(); len(said) != 2 || !strings.HasPrefix(said[0], "watch pods: pods is forbidden: no: this account needs") {
			t.Errorf("%q", said)
		}
		expect(t, shown(t, path), "x/a 0..7.533 unclear x", "x/b 0..30 running x", "n not recorded 15-25",
			"a time in which nobody looked at the cluster: 1")
		c.reads()
	})
}

// TestPages: a list is asked for in pages, and one whose token has expired begins again.
func TestPages(t *testing.T) {
	calls := 0
	f := newFeed(cutPod, func(_ string, err error) error { return err },
		func(_ context.Context, o metav1.ListOptions) ([]metav1.Object, metav1.ListInterface, error) {
			calls++
			if o.Limit != page {
				t.Errorf("%+v", o)
			}
			at, _ := map[string]int{"": 0, "one": 1, "two": 2}[o.Continue]
			return []metav1.Object{aPod(fmt.Sprint(at), 0)}, &metav1.ListMeta{ResourceVersion: fmt.Sprint(7 + at),
				Continue: []string{"one", "two", ""}[at]}, nil
		}, nil)
	version, err := f.all(t.Context())
	if err != nil || version != "9" || calls != 3 || !slices.Equal(slices.Sorted(maps.Keys(f.now)), []string{"uid-0", "uid-1", "uid-2"}) {
		t.Errorf("%s, %v, %d calls, %v", version, err, calls, f.now)
	}
}

// TestDevices: what a Pod holds, as Kubernetes counts.
func TestDevices(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	container := func(name corev1.ResourceName, requests, limits int64) corev1.Container {
		var c corev1.Container
		if requests > 0 {
			c.Resources.Requests = corev1.ResourceList{name: *resource.NewQuantity(requests, resource.DecimalSI)}
		}
		if limits > 0 {
			c.Resources.Limits = corev1.ResourceList{name: *resource.NewQuantity(limits, resource.DecimalSI)}
		}
		return c
	}
	sidecar := func(n int64) corev1.Container {
		c, always := container("nvidia.com/gpu", n, n), corev1.ContainerRestartPolicyAlways
		c.RestartPolicy = &always
		return c
	}
	gpu := func(n int64) corev1.Container { return container("nvidia.com/gpu", n, n) }
	type list = []corev1.Container
	for name, c := range map[string]struct {
		apps, inits list
		want        map[string]int64
	}{
		"none": {list{container("cpu", 1, 1)}, list{container("memory", 1, 1)}, nil},
		"a sum": {list{gpu(1), gpu(2), container(mig, 1, 0)}, nil,
			map[string]int64{"nvidia.com/gpu": 3, mig: 1}},
		"limits alone":                        {list{container("nvidia.com/gpu", 0, 2)}, nil, map[string]int64{"nvidia.com/gpu": 2}},
		"setting up takes more":               {list{gpu(1)}, list{gpu(2), gpu(4)}, map[string]int64{"nvidia.com/gpu": 4}},
		"setting up takes less":               {list{gpu(3)}, list{gpu(2)}, map[string]int64{"nvidia.com/gpu": 3}},
		"a sidecar":                           {list{gpu(1)}, list{sidecar(1)}, map[string]int64{"nvidia.com/gpu": 2}},
		"setting up behind a sidecar":         {list{gpu(1)}, list{sidecar(1), gpu(3)}, map[string]int64{"nvidia.com/gpu": 4}},
		"setting up before a sidecar":         {list{gpu(1)}, list{gpu(3), sidecar(1)}, map[string]int64{"nvidia.com/gpu": 3}},
		"setting up alone":                    {list{container("cpu", 1, 1)}, list{gpu(1)}, map[string]int64{"nvidia.com/gpu": 1}},
		"more than there can be in one place": {list{gpu(1 << 40)}, nil, map[string]int64{"nvidia.com/gpu": 1 << 12}},
	} {
		if got := devices(&corev1.PodSpec{Containers: c.apps, InitContainers: c.inits}); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestNodes: what a node is.
func TestNodes(t *testing.T) {
	n := aNode("n", 4)
	n.Labels = map[string]string{"nvidia.com/gpu.product": "A100", "nvidia.com/gpu.replicas": "2"}
	if h, is := cutNode(n); !is || fmt.Sprintf("%+v", h) != "{Name:n Devices:map[nvidia.com/gpu:4] Product:A100 Replicas:2 "+
		"Unschedulable:false NotReady:false}" {
		t.Errorf("%+v, %v", h, is)
	}
	n.Status.Conditions[0].Status = corev1.ConditionUnknown
	if h, _ := cutNode(n); !h.NotReady {
		t.Error("nothing is heard of it, and it is ready")
	}
	n.Status.Allocatable = nil
	if h, is := cutNode(n); is {
		t.Errorf("%+v has no devices", h)
	}
}
