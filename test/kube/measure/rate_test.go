//go:build kubernetes

package measure

import (
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	executors "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
	"sluice.dev/sluice/test/kube/plane"
)

// Rate is how fast Pods that have nothing to do go through a cluster, one after the other on each device.
type Rate struct {
	// Pods were made, one for each of which the last was gone after Took.
	Pods int
	Took time.Duration
	// CPU is the processor time of the API server and etcd meanwhile.
	CPU time.Duration
	// All is how many calls about Pods, Secrets, claims and events the API server answered meanwhile, whoever asked: the scheduler,
	// kubelets, the garbage collector.
	All int
	// Calls are what their maker asked the API server for, without lists and watches.
	Calls map[string]int
}

// PerSecond is Pods a second, PerPod calls a Pod.
func (r *Rate) PerSecond() float64 { return float64(r.Pods) / r.Took.Seconds() }

// PerPod is how many calls a Pod cost.
func (r *Rate) PerPod() float64 {
	n := 0
	for what, c := range r.Calls {
		if !strings.HasPrefix(what, "GET ") && !strings.HasPrefix(what, "WATCH ") {
			n += c
		}
	}
	return float64(n) / float64(r.Pods)
}

// since is what was asked for beyond what had been before.
func since(before, after map[string]int) map[string]int {
	out := maps.Clone(after)
	for what, n := range before {
		if out[what] -= n; out[what] == 0 {
			delete(out, what)
		}
	}
	return out
}

// cpu is what the API server and etcd have used so far.
func (w *world) cpu() (sum time.Duration) {
	w.t.Helper()
	for _, part := range []plane.Part{plane.Etcd, plane.APIServer} {
		u, err := w.p.Usage(part)
		if err != nil {
			w.t.Fatal(err)
		}
		sum += u.CPU
	}
	return sum
}

// requests finds in the API server's metrics what it has answered.
var requests = regexp.MustCompile(
	`(?m)^apiserver_request_total\{.*resource="(pods|secrets|resourceclaims|events)".*verb="(GET|POST|PUT|PATCH|DELETE)".*\} ([0-9.e+]+)$`)

// answered is how many calls about Pods and what goes with them the API server has answered so far.
func (w *world) answered() (sum int) {
	w.t.Helper()
	text, err := w.p.Kubectl("get", "--raw", "/metrics")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, x := range requests.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(x[3], 64)
		if err != nil {
			w.t.Fatal(err)
		}
		sum += int(n)
	}
	return sum
}

// PerPodCPU is the processor time of the API server and etcd for each.
func (r *Rate) PerPodCPU() time.Duration { return r.CPU / time.Duration(r.Pods) }

// slots are the devices of the world, each by its machine.
func (w *world) slots() (list []cluster.Device) {
	for _, m := range w.machines {
		for i := range pieces {
			d := cluster.Device{Node: m, Resource: mig}
			if w.by == DRA {
				d = cluster.Device{Node: m, Class: plane.MIGClass, Driver: plane.Driver, Pool: m,
					Name: fmt.Sprintf("gpu-0-mig-1g10gb-%d", i)}
			}
			list = append(list, d)
		}
	}
	return list
}

// bare makes Pods, one after the other on each device, as a client does that wants nothing else: it makes one, sees that it is over,
// deletes it, sees that it is gone. They are as small as a Pod for a device can be, or like another one: its spec, labels and annotations,
// without finalizers.
func (w *world) bare(n int, like *corev1.Pod) *Rate {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	config, wire := w.p.Wire()
	client := kubernetes.NewForConfigOrDie(config)
	ns := w.p.Namespace(t)
	var mu sync.Mutex
	over, goneBy := map[string]chan struct{}{}, map[string]chan struct{}{}
	for i := range n {
		over[fmt.Sprintf("bare-%d", i)], goneBy[fmt.Sprintf("bare-%d", i)] = make(chan struct{}), make(chan struct{})
	}
	closed := map[chan struct{}]bool{}
	shut := func(c chan struct{}) {
		mu.Lock()
		defer mu.Unlock()
		if !closed[c] {
			closed[c] = true
			close(c)
		}
	}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", ns, fields.Everything()),
		&corev1.Pod{}, 0)
	see := func(o any) {
		if p := o.(*corev1.Pod); p.Status.Phase == corev1.PodSucceeded {
			shut(over[p.Name])
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) },
		DeleteFunc: func(o any) {
			if d, is := o.(cache.DeletedFinalStateUnknown); is {
				o = d.Obj
			}
			shut(goneBy[o.(*corev1.Pod).Name])
		}}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)

	answered, before, used, began := w.answered(), wire.Calls(), w.cpu(), time.Now()
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for _, d := range w.slots() {
		all.Go(func() {
			for i := range next {
				name := fmt.Sprintf("bare-%d", i)
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{cluster.LabelOperator: "bare"},
						Annotations: map[string]string{cluster.AnnotationRun: "{}"}},
					Spec: w.spec(leftoverClass),
				}
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(d.Resource): resource.MustParse("1")}
				if like != nil {
					pod.Labels, pod.Annotations, pod.Spec = maps.Clone(like.Labels), like.Annotations, *like.Spec.DeepCopy()
					pod.Labels[cluster.LabelOperator] = "bare"
					pod.Spec.NodeName = "" // its priority is that of its class, which the API server has filled in
				}
				pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
							Values: []string{d.Node}}}}}}}}
				if _, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
					t.Error(err)
					return
				}
				if !within(over[name]) {
					t.Errorf("Pod %s is not over", name)
					return
				}
				if err := client.CoreV1().Pods(ns).Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
					t.Error(err)
					return
				}
				if !within(goneBy[name]) {
					t.Errorf("Pod %s is not gone", name)
					return
				}
			}
		})
	}
	all.Wait()
	return &Rate{Pods: n, Took: time.Since(began), CPU: w.cpu() - used, Calls: since(before, wire.Calls()), All: w.answered() - answered}
}

// within waits for a channel to be closed.
func within(c chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(plane.Within):
		return false
	}
}

// subjobs has the executor of an operator run subjobs with nothing to do, one after the other on each device, from Start until they are
// settled.
func (w *world) subjobs(operator string, n int) *Rate {
	t, ctx := w.t, w.t.Context()
	t.Helper()
	config, wire := w.p.Wire()
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	slots := w.slots()
	ended, settled, purged := map[job.Token]chan struct{}{}, map[job.Token]chan struct{}{}, make(chan struct{})
	for i := range n {
		tok := job.Token{Epoch: 1, Seq: uint64(i + 1)}
		ended[tok], settled[tok] = make(chan struct{}), make(chan struct{})
	}
	ex, err := executors.Open(executors.Options{
		Client: kubernetes.NewForConfigOrDie(config), Store: storetest.Lend(t, under), Operator: operator,
		ShimImage: "example.com/sluice:1", Namespace: w.p.Namespace(t),
		Deliver: func(m protocol.Message) {
			switch m.Kind {
			case protocol.Exited:
				if r := m.Body.(*protocol.Conclusion).Result; r.Outcome != job.Done {
					t.Errorf("subjob %v: %+v", m.Token, *r)
				}
				close(ended[m.Token])
			case protocol.Settled:
				close(settled[m.Token])
			case protocol.Purged:
				close(purged)
			default: // Started, Report
			}
		},
		Slice: func(id job.SliceID) (protocol.Slice, bool) {
			var i int
			_, err := fmt.Sscanf(string(id), "n1/%d", &i)
			return protocol.Slice{Device: slots[i].String()}, err == nil
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ex.Close() }()
	if _, err := ex.Find(ctx); err != nil {
		t.Fatal(err)
	}
	node, executor := protocol.Address{Role: protocol.Node, ID: "n1"}, protocol.Address{Role: protocol.Executor, ID: "n1"}
	spec := &job.Spec{Name: "rate", Kind: job.Items, Total: int64(n), Grid: 1, Parallelism: 1, Slices: 1, MaxFailures: 3,
		Launch: job.Launch{Image: "example.com/work:1", Command: []string{"true"}, Grace: time.Second}}

	answered, before, used, began := w.answered(), wire.Calls(), w.cpu(), time.Now()
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for s := range slots {
		all.Go(func() {
			for i := range next {
				tok, at := job.Token{Epoch: 1, Seq: uint64(i + 1)}, quantity.At(time.Now())
				units := job.Range{From: int64(i), To: int64(i + 1)}
				ex.Do(protocol.Message{Kind: protocol.Start, From: node, To: executor, Token: tok, Job: spec.Name,
					Body: &protocol.Work{Placement: protocol.Placement{Slice: job.SliceID(fmt.Sprintf("n1/%d", s)), Range: units, Start: at,
						End: at.Add(time.Hour)}, Spec: spec}},
					journal.Position{Seq: 1})
				if !within(ended[tok]) {
					t.Errorf("subjob %v has not ended", tok)
					return
				}
				ex.Do(protocol.Message{Kind: protocol.Settle, From: node, To: executor, Token: tok, Job: spec.Name,
					Body: &protocol.Settlement{Range: units, Committed: true}}, journal.Position{Seq: 1})
				if !within(settled[tok]) {
					t.Errorf("subjob %v is not settled", tok)
					return
				}
			}
		})
	}
	all.Wait()
	r := &Rate{Pods: n, Took: time.Since(began), CPU: w.cpu() - used, Calls: since(before, wire.Calls()), All: w.answered() - answered}
	ex.Do(protocol.Message{Kind: protocol.Purge, From: node, To: executor, Job: spec.Name}, journal.Position{Seq: 1})
	if !within(purged) {
		t.Error("nothing says that what the job left is gone")
	}
	return r
}

// calls are what each cost, for people.
func (r *Rate) calls() string {
	var calls []string
	for _, what := range slices.Sorted(maps.Keys(r.Calls)) {
		if n := float64(r.Calls[what]) / float64(r.Pods); n >= .05 {
			calls = append(calls, fmt.Sprintf("%s %.1f", what, n))
		}
	}
	return strings.Join(calls, ", ")
}

func (r *Rate) said() string {
	return fmt.Sprintf("%d in %s: %.0f a second, %s of processor and %.1f calls each (%s)", r.Pods, r.Took.Round(time.Millisecond),
		r.PerSecond(), r.PerPodCPU().Round(100*time.Microsecond), r.PerPod(), r.calls())
}

// and is both rates as one: the time of both for the Pods of both. There may be none yet.
func (r *Rate) and(o *Rate) *Rate {
	if r == nil {
		return o
	}
	calls := maps.Clone(r.Calls)
	for what, n := range o.Calls {
		calls[what] += n
	}
	return &Rate{Pods: r.Pods + o.Pods, Took: r.Took + o.Took, CPU: r.CPU + o.CPU, All: r.All + o.All, Calls: calls}
}

// TestWhatASubjobCalls: from its start until nothing is left of it a subjob is three calls to the API server, and four where it has a
// claim.
func TestWhatASubjobCalls(t *testing.T) {
	for by, want := range map[By]float64{Extended: 3, DRA: 4} {
		t.Run(string(by), func(t *testing.T) {
			p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok), plane.Leaves(cluster.LabelOperator))
			w := newWorld(t, p, by, Load{Machines: 2})
			newCrowd(t, p.Client(), 0, 0)
			w.leftover()
			if by == Extended {
				bare := w.bare(60, nil)
				t.Log("bare Pods: ", bare.said())
				if bare.All < 4*bare.Pods { // made, bound, said to run and to be over
					t.Errorf("the API server's metrics have %d calls for %d Pods: they are read wrongly", bare.All, bare.Pods)
				}
			}
			ours := w.subjobs("rate", 60)
			t.Log("subjobs: ", ours.said())
			if c := ours.PerPod(); c > want+.5 {
				t.Errorf("a subjob costs %.1f calls, want %.0f, and those of one Secret for all: %v", c, want, ours.Calls)
			}
			list, err := p.Client().CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{LabelSelector: cluster.LabelOperator})
			if err != nil || len(list.Items) > 0 {
				t.Errorf("%d Secrets are left, %v", len(list.Items), err)
			}
		})
	}
}
