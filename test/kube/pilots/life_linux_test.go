//go:build kubernetes

package pilots

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	quantities "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/test/kube/plane"
)

// labelOwner is what Pods of higher priority have.
const labelOwner = "pilots.test/owner"

// counts is how many pilots an observer of the API server has seen at once.
type counts struct {
	mu          sync.Mutex
	most, looks int
	// preempted are the pilots that the scheduler was seen to take back.
	preempted map[string]bool
}

// observe counts pilots until the test is over.
func (w *world) observe() *counts {
	c := &counts{preempted: map[string]bool{}}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if list, err := w.pilots(); err == nil {
				c.mu.Lock()
				c.most, c.looks = max(c.most, len(list)), c.looks+1
				for i := range list {
					for _, x := range list[i].Status.Conditions {
						if x.Type == corev1.DisruptionTarget && x.Reason == corev1.PodReasonPreemptionByScheduler {
							c.preempted[list[i].Name] = true
						}
					}
				}
				c.mu.Unlock()
			}
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	})
	w.Cleanup(func() { stop(); done.Wait() })
	return c
}

// TestPilotPods: jobs go through pilot Pods while others take their devices, the head and the API server die, and an admin deletes Pods.
// Nothing that was committed is lost or done twice, there are never more pilots than may be, and nothing is left.
func TestPilotPods(t *testing.T) {
	w := newWorld(t)
	w.head.start()
	w.until("the head answers", func() error { _, err := w.client.Sluice("nodes"); return err })
	tried := func(want string) {
		t.Helper()
		w.until("the trial says "+want, func() error {
			out, err := w.client.Sluice("providers", "test", pool)
			if !strings.Contains(out+fmt.Sprint(err), want) {
				return fmt.Errorf("%s, %w", out, err)
			}
			return nil
		})
	}
	tried("no PriorityClass with name sluice-pilots")
	w.class("sluice-pilots", -1000000, "PreemptLowerPriority")
	tried("PreemptLowerPriority")
	w.kubectl("", "delete", "priorityclass", "sluice-pilots")
	w.class("sluice-pilots", -1000000, "Never")
	w.class("owners", 1000, "PreemptLowerPriority")
	tried("would take it")

	seen := w.observe()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	submitted := make(chan error, 1)
	go func() { submitted <- w.client.Submit(ctx) }()
	for _, strike := range []struct {
		name string
		on   int // pilots that have to be busy
		do   func(p corev1.Pod)
	}{
		{"a Pod of higher priority wants all devices", devices, func(corev1.Pod) { w.preempt(devices) }},
		{"the head is killed", 1, func(corev1.Pod) { w.head.kill(); w.head.start() }},
		{"an admin deletes a pilot", 1, func(p corev1.Pod) { w.kubectl("", "-n", w.namespace, "delete", "pod", p.Name, "--wait=false") }},
		{"an admin deletes all pilots", 1, func(corev1.Pod) {
			w.kubectl("", "-n", w.namespace, "delete", "pods", "-l", "sluice.dev/pool="+pool, "--wait=false")
		}},
		{"a Pod of higher priority wants all devices, and the head is killed", 1, func(corev1.Pod) {
			w.head.kill()
			w.preempt(devices)
			w.head.start()
		}},
		{"all of a pilot is killed", 1, func(p corev1.Pod) { w.kubelet.Kill(p.Name) }},
		{"the API server is killed", 1, func(corev1.Pod) {
			w.plane.Kill(plane.APIServer)
			if err := w.plane.Start(plane.APIServer); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		p := w.leased(strike.on)[0]
		began := time.Now()
		strike.do(p)
		t.Logf("%s: %v", strike.name, time.Since(began).Round(time.Millisecond))
		w.until("the head answers", func() error { _, err := w.client.Sluice("nodes"); return err })
	}
	w.leased(1)
	stop()
	if err := <-submitted; err != nil {
		t.Error(err)
	}
	w.settle()
	out, err := w.client.Sluice("providers", pool)
	t.Logf("%s, %v", out, err)
	for _, job := range w.client.Jobs() {
		h := w.client.History(job)
		for _, wrong := range h.Wrong {
			t.Error(wrong)
		}
		t.Logf("job %s: %d units, %d done again", job, h.Units, h.Redone)
	}
	seen.mu.Lock()
	defer seen.mu.Unlock()
	if seen.most > devices || seen.most == 0 || seen.looks == 0 {
		t.Errorf("%d pilots at once, of %d, in %d looks", seen.most, devices, seen.looks)
	}
	t.Logf("at most %d pilots at once in %d looks; others took %d back", seen.most, seen.looks, len(seen.preempted))
	if len(seen.preempted) <= devices { // all of them once, and one at least the second time
		t.Errorf("the scheduler took back %v: the run has not shown what it is for", seen.preempted)
	}
}

// owner is a Pod of higher priority that wants n devices for some seconds; on one machine, if it is named.
func (w *world) owner(n int64, machine string, seconds int) *corev1.Pod {
	amount := corev1.ResourceList{resource: *quantities.NewQuantity(n, quantities.DecimalSI)}
	yes, no, user := true, false, int64(65532)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "owner-", Namespace: w.namespace, Labels: map[string]string{labelOwner: ""}},
		Spec: corev1.PodSpec{PriorityClassName: "owners", RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", strconv.Itoa(seconds)},
				Resources: corev1.ResourceRequirements{Limits: amount}, SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}}}},
	}
	if machine != "" {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: machine}
	}
	return p
}

// preempt makes a Pod of higher priority that wants n devices, waits until it runs, and until it is over.
func (w *world) preempt(n int64) {
	w.Helper()
	p := w.owner(n, "", 3)
	began := time.Now()
	made, err := w.plane.Client().CoreV1().Pods(w.namespace).Create(context.Background(), p, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	w.plane.Pod(w, w.namespace, made.Name, "runs", func(p *corev1.Pod) bool { return p.Status.Phase != corev1.PodPending })
	took := time.Since(began)
	w.Logf("a Pod that wants %d devices runs after %v; pilots have %v", n, took.Round(10*time.Millisecond), grace)
	if took > grace+30*time.Second { // the scheduler's back-off is 10 s at most
		w.Errorf("it waited %v for pilots with a grace of %v", took, grace)
	}
	w.plane.Pod(w, w.namespace, made.Name, "is over", plane.In(corev1.PodSucceeded))
	w.kubectl("", "-n", w.namespace, "delete", "pod", made.Name)
}

// settle waits until all jobs are over, and then until nothing is left of any pilot but the objects of failed ones, which an admin deletes.
func (w *world) settle() {
	w.Helper()
	w.until("all jobs are over", func() error {
		list, err := w.client.Unfinished()
		if err == nil && len(list) > 0 {
			why, _ := w.client.Sluice("providers", pool)
			err = errors.New(strings.Join(list, "; ") + "\n" + why)
		}
		return err
	})
	w.kubectl("", "-n", w.namespace, "delete", "pods", "-l", "sluice.dev/pool="+pool, "--field-selector", "status.phase=Failed")
	w.until("nothing is left", func() error {
		out, err := w.plane.Kubectl("-n", w.namespace, "get", "pods,secrets", "-o", "name")
		if err == nil && strings.TrimSpace(out) != "" {
			err = fmt.Errorf("the cluster has %s", strings.ReplaceAll(out, "\n", " "))
		}
		if left := commands(w.dir + "/k/"); err == nil && len(left) > 0 {
			err = fmt.Errorf("%d processes run, the first %s", len(left), left[0])
		}
		return err
	})
}
