//go:build kubernetes

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// crowd is the kubelets of all machines for the Pods of subjobs, and the programs in them: each does its units one after the other, and
// when it is told that its time was cut, or is to stop, gives the rest back within reaction. What it says is what sluice-shim would.
type crowd struct {
	client   kubernetes.Interface
	perUnit  time.Duration
	reaction time.Duration
	// startup is what a program takes before its first unit.
	startup time.Duration
	ctx     context.Context

	mu   sync.Mutex
	runs map[types.UID]*run
	// over counts Pods that have ended, by outcome.
	over map[job.Outcome]int
	// latest is a subjob's Pod, as it was bound.
	latest *corev1.Pod
	// closed: whatever runs gives back, and nothing begins any more.
	closed bool
	// binds: it is the scheduler too. A Pod says itself on which machine it has to run.
	binds bool
}

// run is one Pod.
type run struct {
	began quantity.Instant
	units job.Range
	// told is closed when it is to give back, which has to be over until then.
	told   chan struct{}
	until  quantity.Instant
	closed bool
}

// newCrowd works until the test is over.
func newCrowd(t testing.TB, client kubernetes.Interface, perUnit, reaction time.Duration) *crowd {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &crowd{client: client, perUnit: perUnit, reaction: reaction, ctx: ctx, runs: map[types.UID]*run{}, over: map[job.Outcome]int{}}
	ours, err := labels.NewRequirement(cluster.LabelOperator, selection.Exists, nil)
	if err != nil {
		t.Fatal(err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = ours.String() }))
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: c.see,
		UpdateFunc: func(_, o any) { c.see(o) }}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	t.Cleanup(func() {
		cancel()
		factory.Shutdown()
	})
	return c
}

// running is how many Pods run.
func (c *crowd) running() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.runs)
}

// pod is a subjob's Pod that it has run.
func (c *crowd) pod() *corev1.Pod {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.latest
}

// close has all programs give back, now and whatever they were sold, and begins no more.
func (c *crowd) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, r := range c.runs {
		if !r.closed {
			r.closed, r.until = true, quantity.Never
			close(r.told)
		}
	}
}

// ended is how many Pods have ended, by outcome.
func (c *crowd) ended() map[job.Outcome]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.over)
}

func (c *crowd) see(o any) {
	p, is := o.(*corev1.Pod)
	if !is {
		return
	}
	if p.Spec.NodeName == "" {
		c.bind(p)
		return
	}
	over := p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.runs[p.UID]
	switch {
	case over && p.DeletionTimestamp != nil:
		go c.remove(p)
	case c.closed && r == nil:
	case r == nil && p.Status.Phase == corev1.PodPending && p.DeletionTimestamp == nil:
		r = &run{began: quantity.At(time.Now()), told: make(chan struct{})}
		var rec struct{ Range job.Range }
		if err := json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &rec); err != nil {
			panic(fmt.Sprintf("Pod %s says no subjob: %v", p.Name, err))
		}
		r.units = rec.Range
		if p.Labels[cluster.LabelToken] != "" {
			c.latest = p
		}
		c.runs[p.UID] = r
		go c.run(p, r)
	case r == nil && !over && p.DeletionTimestamp != nil: // before it began
		go c.remove(p)
	}
	if until, is := cut(p); is && r != nil && !r.closed {
		r.closed, r.until = true, until
		close(r.told)
	}
}

// bind binds a Pod to the machine that its affinity names, where nobody else does.
func (c *crowd) bind(p *corev1.Pod) {
	c.mu.Lock()
	binds := c.binds && p.DeletionTimestamp == nil
	c.mu.Unlock()
	if !binds {
		return
	}
	machine := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
	go func() {
		_ = c.client.CoreV1().Pods(p.Namespace).Bind(c.ctx, &corev1.Binding{ // refused where it is bound, or gone
			ObjectMeta: metav1.ObjectMeta{Name: p.Name, UID: p.UID}, Target: corev1.ObjectReference{Kind: "Node", Name: machine},
		}, metav1.CreateOptions{})
	}()
}

// cut says whether a Pod was told that its time is shorter than it was sold, or over, and until when it may take.
func cut(p *corev1.Pod) (until quantity.Instant, is bool) {
	if p.DeletionTimestamp != nil {
		return quantity.At(p.DeletionTimestamp.Time), true
	}
	var o pod.Order
	text := p.Annotations[cluster.AnnotationNotice]
	return o.End, text != "" && json.Unmarshal([]byte(text), &o) == nil && (o.Cut || o.Stop)
}

// run does a Pod's units.
func (c *crowd) run(p *corev1.Pod, r *run) {
	began := metav1.NewTime(r.began.Time())
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &began}
	for _, x := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: x.Name, Image: x.Image,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}})
	}
	c.say(p, &status)
	said := pod.Said{Result: job.Result{Outcome: job.Done, Progress: r.units.To, Start: r.began}}
	select {
	case <-c.ctx.Done():
		return
	case <-time.After(time.Until(r.began.Time().Add(c.startup + time.Duration(r.units.Len())*c.perUnit))):
	case <-r.told:
		select {
		case <-c.ctx.Done():
			return
		case <-time.After(min(c.reaction, time.Until(r.until.Time()))):
		}
		done := min(int64(max(0, time.Since(r.began.Time())-c.startup)/c.perUnit), r.units.Len())
		said.Result.Outcome, said.Result.ExitCode, said.Result.Progress = job.Yielded, 85, r.units.From+done
		if quantity.At(time.Now()) >= r.until { // it did not care: its supervisor ends it
			said.Result.Outcome, said.Result.ExitCode, said.Result.Signal = job.DeadlineKilled, -1, 9
		}
	}
	said.Result.End = quantity.At(time.Now())
	status.Phase = corev1.PodSucceeded
	for i := range status.ContainerStatuses {
		status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Message: string(said.Encode()), StartedAt: began, FinishedAt: metav1.NewTime(said.Result.End.Time())}}
	}
	c.say(p, &status)
	c.mu.Lock()
	delete(c.runs, p.UID)
	c.over[said.Result.Outcome]++
	c.mu.Unlock()
}

// say puts a status, until it is taken or the Pod is gone.
func (c *crowd) say(p *corev1.Pod, status *corev1.PodStatus) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		panic(err)
	}
	for c.ctx.Err() == nil {
		_, err := c.client.CoreV1().Pods(p.Namespace).Patch(c.ctx, p.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{},
			"status")
		if err == nil || gone(err) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// remove is what a kubelet does with a Pod that is over and deleted.
func (c *crowd) remove(p *corev1.Pod) {
	now := int64(0)
	_ = c.client.CoreV1().Pods(p.Namespace).Delete(c.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &now,
		Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
}
