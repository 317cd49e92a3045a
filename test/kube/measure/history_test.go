//go:build kubernetes

package measure

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// life is what a watch of Pods saw of one: when it was first seen made, bound, running and over; zero where it did not come to that.
type life struct {
	namespace, name, machine string
	// job is the Job of Kubernetes or of Sluice that it is of.
	job                     string
	made, bound, runs, over time.Time
	succeeded               bool
	// units of a subjob: where they begin and up to where they are done, as its termination message says.
	from, to int64
}

// history is the lives of all Pods of a plane.
type history struct {
	mu    sync.Mutex
	lives map[types.UID]*life
	// unseen is how many ended while the watch was cut, at some time before it was heard of.
	unseen int
}

// record watches until the test is over.
func record(t testing.TB, client kubernetes.Interface) *history {
	t.Helper()
	h := &history{lives: map[types.UID]*life{}}
	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Informer()
	see := func(o any) {
		if p, is := o.(*corev1.Pod); is {
			h.see(p, time.Now())
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) },
		DeleteFunc: func(o any) {
			last, unseen := o.(cache.DeletedFinalStateUnknown) // the watch was cut meanwhile
			if unseen {
				o = last.Obj
			}
			if p, is := o.(*corev1.Pod); is {
				h.see(p, time.Now())
				h.gone(p, time.Now(), unseen)
			}
		}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return h
}

func (h *history) see(p *corev1.Pod, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lives[p.UID]
	if l == nil {
		l = &life{namespace: p.Namespace, name: p.Name, job: p.Labels["job-name"], made: now}
		var run struct{ Range job.Range }
		if err := json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &run); err == nil {
			l.job, l.from, l.to = p.Labels[cluster.LabelJob], run.Range.From, run.Range.From
		}
		h.lives[p.UID] = l
	}
	if l.machine == "" && p.Spec.NodeName != "" {
		l.machine, l.bound = p.Spec.NodeName, now
	}
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	if l.runs.IsZero() && (p.Status.Phase == corev1.PodRunning || over && p.Status.StartTime != nil) {
		l.runs = now
	}
	if !over || !l.over.IsZero() {
		return
	}
	l.over, l.succeeded = now, p.Status.Phase == corev1.PodSucceeded
	for _, c := range p.Status.ContainerStatuses {
		if c.State.Terminated == nil {
			continue
		}
		if said, is := pod.Decode(c.State.Terminated.Message); is {
			l.over, l.to = said.Result.End.Time(), max(l.from, said.Result.Progress)
			if l.runs = (time.Time{}); said.Result.Start != 0 { // else it never began
				l.runs = said.Result.Start.Time()
			}
		}
	}
}

// gone is a Pod that is no more: what had no end has it now.
func (h *history) gone(p *corev1.Pod, now time.Time, unseen bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.lives[p.UID]; l != nil && l.over.IsZero() {
		l.over = now
		if unseen {
			h.unseen++
		}
	}
}

// kept is how many units of each job are done, as the messages of its Pods say, each counted once.
func kept(lives []life) map[string]int64 {
	units := map[string]map[int64]bool{}
	for _, l := range lives {
		for i := l.from; i < l.to; i++ {
			if units[l.job] == nil {
				units[l.job] = map[int64]bool{}
			}
			units[l.job][i] = true
		}
	}
	n := map[string]int64{}
	for job, of := range units {
		n[job] = int64(len(of))
	}
	return n
}

// of are the lives in namespaces that are meant.
func (h *history) of(meant func(namespace string) bool) (list []life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lives {
		if meant(l.namespace) {
			list = append(list, *l)
		}
	}
	return list
}
