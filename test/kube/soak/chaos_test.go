//go:build kubernetes

package soak

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/test/kube/bucket"
	"sluice.dev/sluice/test/kube/plane"
)

// chaos strikes at random at all there is, and makes it good again after a while.
type chaos struct {
	rng       *rand.Rand
	p         *plane.Plane
	client    kubernetes.Interface
	namespace string
	operator  *process
	bucket    *bucket.Server
	machines  []machine
	jobs      *jobs
	// work is what is applied, with the lives that the jobs are to have in the end.
	work  []workload
	began time.Time
	hosts int

	mu sync.Mutex
	// under are the strikes that are not made good yet; of each there is one at a time.
	under map[string]bool
	said  []string
	count map[string]int
	wrong []string
	all   sync.WaitGroup
}

// machine is a kubelet and what it is called.
type machine struct {
	*podtest.Kubelet
	name string
}

// strike is one kind of misfortune. weight is how often it is drawn, in proportion to the others.
type strike struct {
	name   string
	weight int
	hit    func(*chaos) blow
}

// blow is what a strike has hit; zero: nothing, for there was nothing to hit. good makes it good again, tried until it succeeds, once
// after has passed; nil: it needs nothing.
type blow struct {
	at    string
	after time.Duration
	good  func(ctx context.Context) error
}

var strikes = []strike{
	{"the operator is killed", 6, (*chaos).killOperator},
	{"the API server is killed", 1, (*chaos).killAPIServer},
	{"the scheduler is killed", 2, (*chaos).killScheduler},
	{"the store is killed", 2, (*chaos).killStore},
	{"a Pod is deleted", 3, (*chaos).deletePod},
	{"a Pod is deleted at once", 2, (*chaos).deletePodAtOnce},
	{"a machine falls silent", 2, (*chaos).silence},
	{"a machine is removed", 1, (*chaos).removeMachine},
	{"no Pods are allowed", 1, (*chaos).forbid},
	{"a host wants a slice", 3, (*chaos).host},
	{"a Job gives way to another", 1, (*chaos).replace},
}

// patience is how long one call may take, and mending how long until a blow is made good.
const (
	patience = 5 * time.Second
	mending  = 2 * time.Minute
)

// run strikes n times.
func (c *chaos) run(ctx context.Context, n int) {
	c.began, c.under, c.count = time.Now(), map[string]bool{}, map[string]int{}
	for range n {
		time.Sleep(c.between(100*time.Millisecond, 700*time.Millisecond))
		for !c.strike(ctx, c.draw()) {
			time.Sleep(10 * time.Millisecond) // of what can't be struck now another is drawn
		}
	}
	c.all.Wait()
}

// draw is the next strike.
func (c *chaos) draw() *strike {
	sum := 0
	for i := range strikes {
		sum += strikes[i].weight
	}
	n := c.rng.IntN(sum)
	for i := range strikes {
		if n -= strikes[i].weight; n < 0 {
			return &strikes[i]
		}
	}
	panic("unreachable")
}

// strike says whether it has hit anything.
func (c *chaos) strike(ctx context.Context, s *strike) bool {
	c.mu.Lock()
	under := c.under[s.name]
	c.mu.Unlock()
	if under {
		return false
	}
	b := s.hit(c)
	if b.at == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[s.name]++
	c.tell(s.name, b.at)
	if b.good == nil {
		return true
	}
	c.under[s.name] = true
	c.all.Go(func() {
		time.Sleep(b.after)
		err := c.mend(ctx, b.good)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.under, s.name)
		if err != nil {
			c.wrong = append(c.wrong, fmt.Sprintf("%s (%s), and it can't be made good: %v", s.name, b.at, err))
		}
		c.tell("  over: "+s.name, b.at)
	})
	return true
}

func (c *chaos) mend(ctx context.Context, good func(context.Context) error) error {
	for end := time.Now().Add(mending); ; time.Sleep(100 * time.Millisecond) {
		call, cancel := context.WithTimeout(ctx, patience)
		err := good(call)
		cancel()
		if err == nil || time.Now().After(end) {
			return err
		}
	}
}

// tell takes down what was struck when; c.mu is held.
func (c *chaos) tell(what, at string) {
	now := time.Now()
	c.said = append(c.said, fmt.Sprintf("%s %7.3f %s: %s", now.Format("15:04:05.000"), now.Sub(c.began).Seconds(), what, at))
}

// tally is how often what was struck.
func (c *chaos) tally() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(c.count)) {
		words = append(words, fmt.Sprint(name, " ", c.count[name]))
	}
	return strings.Join(words, ", ")
}

func (c *chaos) between(least, most time.Duration) time.Duration {
	return least + time.Duration(c.rng.Int64N(int64(most-least)))
}

// seldom is mostly a short while, and a long one now and then.
func (c *chaos) seldom(short, long time.Duration) time.Duration {
	if c.rng.IntN(3) == 0 {
		return c.between(short, long)
	}
	return c.between(0, short)
}

// call is the context of one call that may fail: nobody waits for an API server that is away.
func (c *chaos) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (c *chaos) killOperator() blow {
	c.operator.kill()
	after := c.seldom(300*time.Millisecond, 6*time.Second)
	return blow{fmt.Sprintf("away for %s", after), after, func(context.Context) error { c.operator.back(); return nil }}
}

func (c *chaos) killAPIServer() blow {
	c.p.Kill(plane.APIServer)
	after := c.between(0, 2*time.Second)
	return blow{fmt.Sprintf("away for %s and its start", after), after, func(context.Context) error { return c.p.Start(plane.APIServer) }}
}

func (c *chaos) killScheduler() blow {
	c.p.Kill(plane.Scheduler)
	after := c.seldom(time.Second, 4*time.Second)
	return blow{fmt.Sprintf("away for %s", after), after, func(context.Context) error { return c.p.Start(plane.Scheduler) }}
}

func (c *chaos) killStore() blow {
	c.bucket.Kill()
	after := c.seldom(time.Second, 6*time.Second)
	return blow{fmt.Sprintf("away for %s", after), after, func(context.Context) error { return c.bucket.Begin() }}
}

func (c *chaos) deletePod() blow { return c.delete(metav1.DeleteOptions{}) }

func (c *chaos) deletePodAtOnce() blow {
	zero := int64(0)
	return c.delete(metav1.DeleteOptions{GracePeriodSeconds: &zero})
}

// delete deletes a subjob's Pod.
func (c *chaos) delete(o metav1.DeleteOptions) blow {
	ctx, cancel := c.call()
	defer cancel()
	list, err := c.client.CoreV1().Pods(c.namespace).List(ctx, metav1.ListOptions{LabelSelector: cluster.LabelOperator})
	if err != nil {
		return blow{}
	}
	some := slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
		return p.DeletionTimestamp != nil || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if len(some) == 0 {
		return blow{}
	}
	p := &some[c.rng.IntN(len(some))]
	if c.client.CoreV1().Pods(c.namespace).Delete(ctx, p.Name, o) != nil {
		return blow{}
	}
	return blow{at: fmt.Sprintf("%s, %s on %s", p.Name, p.Status.Phase, cmp.Or(p.Spec.NodeName, "no machine"))}
}

// silence has a machine unheard of: mostly for seconds, and for longer than a lease, what it left and the clocks may take.
func (c *chaos) silence() blow {
	m := c.machines[c.rng.IntN(len(c.machines))]
	m.Silence(true)
	after := c.seldom(4*time.Second, 15*time.Second)
	return blow{fmt.Sprintf("%s for %s", m.name, after), after, func(context.Context) error { m.Silence(false); return nil }}
}

// removeMachine deletes a Node; what runs there goes on, and it registers again.
func (c *chaos) removeMachine() blow {
	ctx, cancel := c.call()
	defer cancel()
	m := c.machines[c.rng.IntN(len(c.machines))]
	if c.client.CoreV1().Nodes().Delete(ctx, m.name, metav1.DeleteOptions{}) != nil {
		return blow{}
	}
	after := c.between(0, 4*time.Second)
	return blow{fmt.Sprintf("%s for %s", m.name, after), after, func(ctx context.Context) error {
		if err := m.Register(ctx); !apierrors.IsAlreadyExists(err) {
			return err
		}
		return nil
	}}
}

func (c *chaos) forbid() blow {
	ctx, cancel := c.call()
	defer cancel()
	quotas := c.client.CoreV1().ResourceQuotas(c.namespace)
	none := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: apiresource.MustParse("0")}}}
	if _, err := quotas.Create(ctx, none, metav1.CreateOptions{}); err != nil {
		return blow{}
	}
	after := c.between(500*time.Millisecond, 4*time.Second)
	return blow{fmt.Sprintf("for %s", after), after, func(ctx context.Context) error {
		return unlessGone(quotas.Delete(ctx, none.Name, metav1.DeleteOptions{}))
	}}
}

// host has a Pod of the cluster's own come for a slice of a machine: it is above ours, and the scheduler preempts one of them or the
// operator gives one back.
func (c *chaos) host() blow {
	ctx, cancel := c.call()
	defer cancel()
	c.hosts++
	m, no, grace := c.machines[c.rng.IntN(len(c.machines))], false, int64(1)
	h := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("host-", c.hosts)}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{corev1.LabelHostname: m.name}, RestartPolicy: corev1.RestartPolicyNever,
		AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace,
		Containers: []corev1.Container{{
			Name: "host", Image: "example.com/host:1", Command: []string{"sleep", "60"},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{resource: apiresource.MustParse("1")}},
		}},
	}}
	pods := c.client.CoreV1().Pods(c.namespace)
	if _, err := pods.Create(ctx, h, metav1.CreateOptions{}); err != nil {
		return blow{}
	}
	after := c.between(time.Second, 5*time.Second)
	return blow{fmt.Sprintf("%s, for %s", m.name, after), after,
		func(ctx context.Context) error { return unlessGone(pods.Delete(ctx, h.Name, metav1.DeleteOptions{})) }}
}

// replace deletes a Job, and applies another under its name once it is gone. What of it was not carried out is done again.
func (c *chaos) replace() blow {
	w := &c.work[c.rng.IntN(len(c.work))]
	w.life++
	next := *w
	return blow{fmt.Sprintf("%s, life %d", next.name, next.life), 0, func(ctx context.Context) error {
		o, err := c.jobs.Get(ctx, next.name, metav1.GetOptions{})
		switch life, _, _ := unstructured.NestedString(objectOf(o), "spec", "env", "LIFE"); {
		case apierrors.IsNotFound(err):
			return c.jobs.apply(ctx, next)
		case err != nil:
			return err
		case number(life) == next.life:
			return nil
		case o.GetDeletionTimestamp() == nil:
			err = c.jobs.Delete(ctx, next.name, metav1.DeleteOptions{})
		}
		return errors.Join(err, errors.New("the Job of before is there still"))
	}}
}

func objectOf(o *unstructured.Unstructured) map[string]any {
	if o == nil {
		return nil
	}
	return o.Object
}

func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
