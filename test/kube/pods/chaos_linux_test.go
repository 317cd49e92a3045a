//go:build kubernetes

package pods

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/test/kube/plane"
)

// subjob is one subjob of a world, told to its executor as a node tells it. What its program does it writes into a folder that no part of
// Sluice knows: by that the test judges.
type subjob struct {
	*podtest.World
	p     *plane.Plane
	wire  *plane.Wire
	token job.Token
	seen  string
	ex    interface {
		Do(protocol.Message, journal.Position)
		Close() error
	}
	said chan protocol.Message
	// change is what its operators have otherwise.
	change []func(*pods.Options)
	// found is how it ended, if an operator's start has found that.
	found *job.Result
}

var (
	nodeAddress = protocol.Address{Role: protocol.Node, ID: "n1"}
	execAddress = protocol.Address{Role: protocol.Executor, ID: "n1"}
)

// begin makes a world of one slice, or of a GPU under DRA, and starts an executor and a subjob there whose program says that it began,
// does units until it is let go, and says that it ended.
func begin(t *testing.T, p *plane.Plane, dra bool, change ...func(*pods.Options)) *subjob {
	t.Helper()
	w := newWorldOn(t, p, 1)
	if dra {
		p.Classes(t)
		p.GPUs(t, w.Node, 1)
		w.Device = cluster.Device{Node: w.Node, Class: plane.MIGClass, Driver: plane.Driver, Pool: w.Node, Name: "gpu-0-mig-3g40gb-4"}
	}
	s := &subjob{World: w, p: p, token: job.Token{Epoch: 1, Seq: 1}, seen: t.TempDir(), change: change}
	config, wire := p.Wire()
	w.Client, s.wire = kubernetes.NewForConfigOrDie(config), wire
	s.reopen()
	now := quantity.At(time.Now())
	spec := &job.Spec{Name: "chaos", Kind: job.Items, Total: 10, Grid: 1, Parallelism: 1, Slices: 1, MaxFailures: 3}
	spec.Launch = job.Launch{Image: "example.com/work:1", Grace: 2 * time.Second,
		Command: podtest.Script(
			fmt.Sprintf(
				`echo began >> %[1]s/log; trap 'echo told >> %[1]s/log; exit 85' TERM; p 5; while [ ! -e %[1]s/go ]; do sleep 0.05; done; p 10; echo ended >> %[1]s/log`, s.seen))}
	s.ex.Do(protocol.Message{Kind: protocol.Start, From: nodeAddress, To: execAddress, Token: s.token, Job: spec.Name,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "n1/x/0", Range: job.Range{To: 10}, Start: now,
			End: now.Add(10 * time.Minute)}, Spec: spec}},
		journal.Position{Seq: 1})
	plane.Eventually(t, "the program began", func() (bool, string) { l := s.log(); return len(l) > 0, fmt.Sprint(l) })
	return s
}

// reopen is the start of an operator, after its last one has ended.
func (s *subjob) reopen() {
	s.Helper()
	if s.ex != nil {
		if err := s.ex.Close(); err != nil {
			s.Fatal(err)
		}
	}
	said := make(chan protocol.Message, 256)
	ex := s.Open(func(m protocol.Message) {
		if m.Kind == protocol.Exited {
			said <- m
		}
	}, s.change...)
	s.ex, s.said = ex, said
	s.Cleanup(func() { _ = ex.Close() })
	plane.Eventually(s, "the operator has found what is there", func() (bool, string) {
		found, err := ex.Find(context.Background())
		if len(found) == 1 {
			s.found = found[0].Result
		}
		return err == nil, fmt.Sprint(err)
	})
}

// log is what the program has done.
func (s *subjob) log() []string {
	b, err := os.ReadFile(filepath.Join(s.seen, "log"))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}

// let has the program end.
func (s *subjob) let() {
	s.Helper()
	if err := os.WriteFile(filepath.Join(s.seen, "go"), nil, 0o600); err != nil {
		s.Fatal(err)
	}
}

// did waits until the program has done these things, and fails if it has done anything else.
func (s *subjob) did(want ...string) {
	s.Helper()
	plane.Eventually(s, fmt.Sprintf("the program did %v", want), func() (bool, string) {
		l := s.log()
		return len(l) >= len(want), fmt.Sprint(l)
	})
	if got := fmt.Sprint(s.log()); got != fmt.Sprint(want) {
		s.Errorf("the program did %s, want %v", got, want)
	}
}

// result waits for the answer.
func (s *subjob) result() job.Result {
	s.Helper()
	if s.found != nil {
		return *s.found
	}
	select {
	case m := <-s.said:
		return *m.Body.(*protocol.Conclusion).Result
	case <-time.After(plane.Within):
		s.Fatal("no answer")
	}
	panic("unreachable")
}

// settle ends the subjob for good, and sees that nothing of it stays in the cluster.
func (s *subjob) settle() {
	s.Helper()
	s.ex.Do(protocol.Message{Kind: protocol.Settle, From: nodeAddress, To: execAddress, Token: s.token, Job: "chaos",
		Body: &protocol.Settlement{}}, journal.Position{Seq: 2})
	ctx, name := context.Background(), s.PodName(s.token)
	plane.Eventually(s, "Pod and claim are gone", func() (bool, string) {
		_, pod := s.p.Client().CoreV1().Pods(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		_, claim := s.p.Client().ResourceV1().ResourceClaims(s.Namespace).Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(pod) && apierrors.IsNotFound(claim), fmt.Sprint(pod, claim)
	})
}

// whole is a result as it is when nothing came between.
func (s *subjob) whole() {
	s.Helper()
	if r := s.result(); r.Outcome != job.Done || r.Progress != 10 {
		s.Errorf("%+v, want all of it done", r)
	}
}

// TestTheAPIServerIsAway: it is killed while a subjob runs, which ends meanwhile; once it is back the end is read, and nothing ran twice.
func TestTheAPIServerIsAway(t *testing.T) {
	p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers))
	s := begin(t, p, true)
	p.Kill(plane.APIServer)
	s.let()
	s.did("began", "ended")
	if err := p.Start(plane.APIServer); err != nil {
		t.Fatal(err)
	}
	s.whole()
	s.settle()
	s.did("began", "ended")
}

// TestTheOperatorsWayIsCut: its watch ends, and it reaches nothing for a while, in which the subjob ends.
func TestTheOperatorsWayIsCut(t *testing.T) {
	s := begin(t, plane.Of(t), false)
	s.wire.Cut()
	s.wire.Down()
	s.let()
	s.did("began", "ended")
	s.p.Pod(t, s.Namespace, s.PodName(s.token), "is over", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	s.wire.Up()
	s.whole()
	s.settle()
	s.did("began", "ended")
}

// TestTheOperatorIsAwayAtTheEnd: the subjob ends, and its Pod is deleted by hand, while no operator is there. The next one finds how it
// ended.
func TestTheOperatorIsAwayAtTheEnd(t *testing.T) {
	s := begin(t, plane.Of(t), true)
	if err := s.ex.Close(); err != nil {
		t.Fatal(err)
	}
	s.let()
	s.did("began", "ended")
	s.p.Pod(t, s.Namespace, s.PodName(s.token), "is over", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
	now := int64(0)
	if err := s.p.Client().CoreV1().Pods(s.Namespace).Delete(t.Context(), s.PodName(s.token),
		metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	s.ex = nil
	s.reopen()
	pod, err := s.p.Client().CoreV1().Pods(s.Namespace).Get(t.Context(), s.PodName(s.token), metav1.GetOptions{})
	if err != nil || pod.DeletionTimestamp == nil {
		t.Fatalf("the Pod that was deleted by hand: %v, want it kept by its finalizer", err)
	}
	if s.found == nil {
		t.Fatal("the operator has not found how it ended")
	}
	s.whole()
	s.settle()
	s.did("began", "ended")
}

// TestADeadOperatorKeepsNobodyWaiting: it is dead and does not come back. Its subjob yields by itself, and a Pod of somebody else starts
// that may not preempt. The next operator has what the subjob did.
func TestADeadOperatorKeepsNobodyWaiting(t *testing.T) {
	const limit, notice = 5 * time.Second, 3 * time.Second
	s := begin(t, plane.Of(t), false, func(o *pods.Options) {
		o.Vigil.Ownerless = func(job.SliceID) (time.Duration, time.Duration) { return limit, notice }
		o.Vigil.Beat = func() time.Duration { return limit / pod.Beats }
	})
	time.Sleep(2 * limit)
	s.did("began")
	if err := s.ex.Close(); err != nil {
		t.Fatal(err)
	}
	died, never := time.Now(), corev1.PreemptNever
	_, err := s.p.Client().SchedulingV1().PriorityClasses().Create(t.Context(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "patient"}, PreemptionPolicy: &never}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	host := s.host()
	host.Spec.PriorityClassName = "patient"
	if _, err := s.p.Client().CoreV1().Pods(s.Namespace).Create(t.Context(), host, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.p.Pod(t, s.Namespace, "host", "is bound", func(p *corev1.Pod) bool { return p.Spec.NodeName == s.Node })
	t.Logf("the other Pod has its slice %v after the operator has died", time.Since(died).Round(time.Millisecond))
	if took := time.Since(died); took < limit/2 {
		t.Errorf("the subjob yields %v after its operator has died", took)
	}
	s.did("began", "told")
	s.ex = nil
	s.reopen()
	if r := s.result(); r.Outcome != job.Yielded || r.Progress != 5 {
		t.Errorf("%+v, want 5 units", r)
	}
	s.settle()
	s.did("began", "told")
}

// TestAPodIsDeletedByHand: somebody deletes a Pod whose program runs: it is told, ends, and the node hears that it ended and how far it
// was.
func TestAPodIsDeletedByHand(t *testing.T) {
	s := begin(t, plane.Of(t), false)
	if err := s.p.Client().CoreV1().Pods(s.Namespace).Delete(t.Context(), s.PodName(s.token), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	r := s.result()
	if r.Outcome == job.Done || r.Progress != 5 || r.Start == 0 {
		t.Errorf("%+v, want an end before its time with 5 units", r)
	}
	s.settle()
	s.did("began", "told")
}

// TestAHigherPodTakesTheSlice: with extended resources the scheduler preempts a subjob for a host's Pod; the program is told, and what it
// did counts.
func TestAHigherPodTakesTheSlice(t *testing.T) {
	s := begin(t, plane.Of(t), false)
	if _, err := s.p.Client().CoreV1().Pods(s.Namespace).Create(t.Context(), s.host(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.p.Pod(t, s.Namespace, "host", "is bound", func(p *corev1.Pod) bool { return p.Spec.NodeName == s.Node })
	if r := s.result(); r.Outcome == job.Done || r.Progress != 5 {
		t.Errorf("%+v, want an end before its time with 5 units", r)
	}
	s.settle()
	s.did("began", "told")
}

// host is a Pod of the cluster's own, for the machine's one slice.
func (s *subjob) host() *corev1.Pod {
	no, yes, user := false, true, int64(65532)
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "host"}, Spec: corev1.PodSpec{
		NodeSelector: map[string]string{"kubernetes.io/hostname": s.Node}, RestartPolicy: corev1.RestartPolicyNever,
		AutomountServiceAccountToken: &no,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{Name: "host", Image: "example.com/host:1", Command: []string{"true"},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"example.com/slice": resource.MustParse("1")}}}},
	}}
}
