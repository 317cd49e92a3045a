//go:build kubernetes

package kube

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/test/kube/plane"
)

// The tests of this file and of dra_test.go say what the design takes for granted about Kubernetes. When one fails under a newer version,
// a decision of docs/adr/0050-kubernetes.md has lost its ground: read it before the test is changed.

// filler is a small Pod that satisfies the restricted Pod Security Standard, ends after some seconds on a machine of kwok, and can be
// changed before it is made.
func filler(name string, change ...func(*corev1.Pod)) *corev1.Pod {
	no, yes, user := false, true, int64(65532)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
			Containers: []corev1.Container{{
				Name: "work", Image: "example.com/work:1",
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
					Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	for _, c := range change {
		c(pod)
	}
	return pod
}

// nowhere keeps a Pod from being bound: no scheduler has that name.
func nowhere(p *corev1.Pod) { p.Spec.SchedulerName = "nobody" }

// on is where a Pod runs, as if a scheduler had bound it.
func on(machine string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.NodeName = machine }
}

func seconds(n string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Annotations[plane.Seconds] = n }
}

func deadline(n int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &n }
}

func create(t *testing.T, p *plane.Plane, namespace string, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := p.Client().CoreV1().Pods(namespace).Create(context.Background(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestAPodCannotBeMadeTwice: a subjob's Pod has the name of its token, and so an operator that does not know whether it made it makes it
// again.
func TestAPodCannotBeMadeTwice(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	first := create(t, p, ns, filler("once", nowhere))
	_, err := p.Client().CoreV1().Pods(ns).Create(ctx, filler("once", nowhere, deadline(5)), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Fatalf("made twice: %v, want AlreadyExists", err)
	}
	// And while one that was deleted is kept by its finalizer, its name is taken too.
	pods := p.Client().CoreV1().Pods(ns)
	if _, err := pods.Patch(ctx, "once", types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+cluster.Finalizer+`"]}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := pods.Delete(ctx, "once", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err = pods.Create(ctx, filler("once", nowhere), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Fatalf("made again while the deleted one is kept: %v, want AlreadyExists", err)
	}
	// Once it is let go another may have the name: then the UID says that it is another.
	if _, err := pods.Patch(ctx, "once", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	plane.Eventually(t, "the deleted Pod is gone", func() (bool, string) {
		_, err := pods.Get(ctx, "once", metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there"
	})
	if again := create(t, p, ns, filler("once", nowhere)); again.UID == first.UID {
		t.Error("another Pod has the UID of the first")
	}
}

// TestADeadlineCanOnlyComeNearer: a Pod's lease can be shortened and not prolonged, and not taken away. Why nothing is continued in a Pod.
func TestADeadlineCanOnlyComeNearer(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	create(t, p, ns, filler("lease", nowhere, deadline(600)))
	for _, c := range []struct {
		to string
		ok bool
	}{{"900", false}, {"300", true}, {"301", false}, {"300", true}, {"null", false}, {"0", false}, {"-1", false}, {"1", true}} {
		_, err := p.Client().CoreV1().Pods(ns).Patch(ctx, "lease", types.MergePatchType,
			[]byte(`{"spec":{"activeDeadlineSeconds":`+c.to+`}}`), metav1.PatchOptions{})
		if (err == nil) != c.ok || err != nil && !apierrors.IsInvalid(err) {
			t.Errorf("activeDeadlineSeconds to %s: %v, want taken: %v", c.to, err, c.ok)
		}
	}
	// One without a deadline can be given one later.
	create(t, p, ns, filler("endless", nowhere))
	if _, err := p.Client().CoreV1().Pods(ns).Patch(ctx, "endless", types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":60}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("a first deadline: %v", err)
	}
}

// TestADeletedPodKeepsItsEnd: whoever deletes a Pod of ours, how it ended can be read until its finalizer is taken away. The deletion
// itself says nothing of the kind.
func TestADeletedPodKeepsItsEnd(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	p.Machine(t, "keeps", nil)
	pods := p.Client().CoreV1().Pods(ns)
	keep := func(pod *corev1.Pod) { pod.Finalizers = []string{cluster.Finalizer} }
	message := func(pod *corev1.Pod) { pod.Annotations[plane.Message] = `{"exit":0}` }
	for _, c := range []struct {
		name  string
		pod   *corev1.Pod
		first corev1.PodPhase // before it is deleted
		last  corev1.PodPhase
		says  string
	}{
		{"ended-first", filler("ended-first", on("keeps"), keep, message, seconds("0")), corev1.PodSucceeded, corev1.PodSucceeded,
			`{"exit":0}`},
		{"running", filler("running", on("keeps"), keep, message, seconds("100000")), corev1.PodRunning, corev1.PodFailed, ""},
	} {
		create(t, p, ns, c.pod)
		p.Pod(t, ns, c.name, "is "+string(c.first), plane.In(c.first))
		if err := pods.Delete(ctx, c.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		got := p.Pod(t, ns, c.name, "is deleted and over", func(pod *corev1.Pod) bool {
			return pod.DeletionTimestamp != nil &&
				pod.Status.Phase == c.last
		})
		said := ""
		if s := got.Status.ContainerStatuses; len(s) == 1 && s[0].State.Terminated != nil {
			said = s[0].State.Terminated.Message
		}
		if said != c.says {
			t.Errorf("%s says %q, want %q", c.name, said, c.says)
		}
		// Even who forces it does not get it away.
		now := int64(0)
		if err := pods.Delete(ctx, c.name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		if _, err := pods.Get(ctx, c.name, metav1.GetOptions{}); err != nil {
			t.Fatalf("%s, forced: %v, want it kept", c.name, err)
		}
		if _, err := pods.Patch(ctx, c.name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
			metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		plane.Eventually(t, c.name+" is gone", func() (bool, string) {
			_, err := pods.Get(ctx, c.name, metav1.GetOptions{})
			return apierrors.IsNotFound(err), "it is there"
		})
	}
}

// TestADeletedNamespaceWaitsForTheFinalizer: not even the deletion of its namespace takes a Pod of ours away before its end is read.
func TestADeletedNamespaceWaitsForTheFinalizer(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	create(t, p, ns, filler("held", nowhere, func(pod *corev1.Pod) { pod.Finalizers = []string{cluster.Finalizer} }))
	if err := p.Client().CoreV1().Namespaces().Delete(ctx, ns, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Pod(t, ns, "held", "is deleted", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	// In a namespace that ends nothing new is made: that is how its owner's jobs end.
	if _, err := p.Client().CoreV1().Pods(ns).Create(ctx, filler("late", nowhere), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a Pod in a namespace that ends: %v, want forbidden", err)
	}
	if _, err := p.Client().CoreV1().Pods(ns).Patch(ctx, "held", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	plane.Eventually(t, "the namespace is gone", func() (bool, string) {
		_, err := p.Client().CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
		return apierrors.IsNotFound(err), "it is there"
	})
}

// TestWhatIsAppliedHasAnOwner: two who apply the same field conflict, and who applies what is there already changes nothing: how the
// operator and a person share an object.
func TestWhatIsAppliedHasAnOwner(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	maps := p.Client().CoreV1().ConfigMaps(ns)
	apply := func(value, who string, force bool) (*corev1.ConfigMap, error) {
		return maps.Apply(ctx, applycore.ConfigMap("c", ns).WithData(map[string]string{"k": value}),
			metav1.ApplyOptions{FieldManager: who, Force: force})
	}
	one, err := apply("1", "operator", false)
	if err != nil {
		t.Fatal(err)
	}
	if same, err := apply("1", "operator", false); err != nil || same.ResourceVersion != one.ResourceVersion {
		t.Errorf("applied again: %v, resourceVersion %s, want %s: a reconciler that changes nothing must not wake itself", err,
			same.ResourceVersion, one.ResourceVersion)
	}
	if _, err := apply("2", "person", false); !apierrors.IsConflict(err) {
		t.Errorf("somebody else applies the field: %v, want a conflict", err)
	}
	if _, err := apply("2", "person", true); err != nil {
		t.Errorf("by force: %v", err)
	}
	// A write on what somebody changed meanwhile is refused, not merged.
	stale := one.DeepCopy()
	stale.Data["k"] = "3"
	if _, err := maps.Update(ctx, stale, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v, want a conflict", err)
	}
}

// TestAStatusIsItsOwnWrite: a write of a Pod's status leaves the rest alone and the other way round, so a user's change and a kubelet's
// never undo each other.
func TestAStatusIsItsOwnWrite(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	create(t, p, ns, filler("status", nowhere))
	pods := p.Client().CoreV1().Pods(ns)
	both := []byte(`{"metadata":{"annotations":{"a":"1"}},"spec":{"activeDeadlineSeconds":9},"status":{"message":"told"}}`)
	got, err := pods.Patch(ctx, "status", types.MergePatchType, both, metav1.PatchOptions{}, "status")
	if err != nil || got.Status.Message != "told" || got.Spec.ActiveDeadlineSeconds != nil {
		t.Fatalf("through status: %v, %+v", err, got)
	}
	got, err = pods.Patch(ctx, "status", types.MergePatchType, []byte(strings.ReplaceAll(string(both), "told", "again")),
		metav1.PatchOptions{})
	if err != nil || got.Status.Message != "told" || got.Spec.ActiveDeadlineSeconds == nil {
		t.Fatalf("through the object: %v, %+v", err, got)
	}
}

// TestRestrictedPodSecurityRefusesAndAdmits: a namespace that enforces the restricted standard takes a Pod as ours are, and refuses one
// that is not.
func TestRestrictedPodSecurityRefusesAndAdmits(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t, "pod-security.kubernetes.io/enforce", "restricted")
	create(t, p, ns, filler("modest", nowhere))
	loose := filler("loose", nowhere, func(pod *corev1.Pod) { pod.Spec.Containers[0].SecurityContext = nil })
	if _, err := p.Client().CoreV1().Pods(ns).Create(ctx, loose, metav1.CreateOptions{}); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), "restricted") {
		t.Errorf("a Pod that may raise its privileges: %v, want it forbidden", err)
	}
}

var one = resource.MustParse("1")
