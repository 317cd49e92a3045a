//go:build kubernetes

package kubernetes_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// packed is a work directory of one file, as people submit it.
func packed(t *testing.T, name, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = w.Write([]byte(text))
	}
	if err = errors.Join(err, w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestWhatASubjobNeedsComesAndWhatItLeavesStays: the work directory goes in, output and checkpoint come out, the next one starts from that
// checkpoint, and what is left in the end is what counts. A Pod is told no more than URLs.
func TestWhatASubjobNeedsComesAndWhatItLeavesStays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	files := d.ex.Files()
	snap, err := files.PutWorkdir(packed(t, "step.sh", "cat $SLUICE_RESUME_DIR/at; echo $SLUICE_OPTION$X"))
	if err != nil {
		t.Fatal(err)
	}
	script := `./step.sh > $SLUICE_OUTPUT_DIR/out 2>/dev/null; echo $SLUICE_TO > $SLUICE_CHECKPOINT_DIR/at
printf '{"progress":%d,"checkpoint":true}' $SLUICE_TO > $SLUICE_PROGRESS_FILE`
	steps := func(resume job.Token) func(w *protocol.Work) {
		return func(w *protocol.Work) {
			w.Spec.Kind, w.Spec.Launch.Workdir, w.Plan.Resume = job.Steps, snap.ID, resume
			w.Spec.Launch.Env = []string{"X=x"}
			w.Spec.Options, w.Plan.Option = []job.Option{{Name: "fast", Env: []string{"X=y"}}}, "fast"
		}
	}
	d.do(d.lease(tok(1), job.Range{To: 40}, steps(job.Token{}), script))
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 40 || !r.Checkpoint {
		t.Fatalf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 40})
	d.do(d.lease(tok(2), job.Range{From: 40, To: 70}, steps(tok(1)), script))
	if r := d.result(tok(2)); r.Outcome != job.Done || r.Progress != 70 || !r.Checkpoint {
		t.Fatalf("%+v", r)
	}
	d.settle(tok(2), job.Range{From: 40, To: 70})

	list, err := files.Outputs("train")
	if err != nil || len(list) != 2 {
		t.Fatalf("outputs %+v, %v", list, err)
	}
	want := map[job.Range]string{{To: 40}: "fasty", {From: 40, To: 70}: "40\nfasty"}
	for _, o := range list {
		if got := d.content(store.Digest(strings.TrimPrefix(o.Path, store.Scheme)))["out"]; got != want[o.Range] || o.Bytes == 0 {
			t.Errorf("%+v has %q, want %q", o, got, want[o.Range])
		}
	}
	names := d.names()
	if len(names) != 4 || names["jobs/main/train/1/1-1"] != nil || names["jobs/main/train/1/1-2"]["checkpoint"] == "" {
		t.Errorf("the store names %v, want a work directory, two outputs and the later checkpoint", names)
	}
	if left := d.Store.Places(); len(left) > 0 {
		t.Errorf("left at places: %v", left)
	}
	d.do(protocol.Message{Kind: protocol.Purge, Job: "train", Generation: 1})
	d.do(protocol.Message{Kind: protocol.Purge, Job: "train"})
	d.Until("it is purged", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.purged == 2 })
	if names = d.names(); len(names) != 1 {
		t.Errorf("purged, and the store names %v", names)
	}
	for name, n := range d.api.Created() {
		if n != 1 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	if d.Pod(tok(1)) != nil || d.Pod(tok(2)) != nil {
		t.Error("a Pod is left")
	}
}

// TestAnAnswerThatIsLostMakesNoSecondPod: the API server has done what it was asked for, and nobody hears of it.
func TestAnAnswerThatIsLostMakesNoSecondPod(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	var lost atomic.Int64
	d.api.Fail(func(verb, resource, _ string) error {
		if verb == "after create" && lost.Add(1) <= 3 {
			return apierrors.NewTimeoutError("the answer of "+resource+" is lost", 0)
		}
		return nil
	})
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	if r := d.result(tok(1)); r.Outcome != job.Done {
		t.Errorf("%+v", r)
	}
	if made := d.api.Created(); len(made) != 1 || made[d.PodName(tok(1))] != 1 {
		t.Errorf("made %v", made)
	}
}

// TestWhatAClusterRefusesIsSaidOnce: it is not tried for ever.
func TestWhatAClusterRefusesIsSaidOnce(t *testing.T) {
	t.Parallel()
	group := schema.GroupResource{Resource: "pods"}
	for name, c := range map[string]struct {
		err     error
		outcome job.Outcome
		says    string
	}{
		"quota": {apierrors.NewForbidden(group, "x", errors.New("exceeded quota: gpus, requested: 1, used: 4, limited: 4")),
			job.NodeFailed, "quota has no room"},
		"rights": {apierrors.NewForbidden(group, "x", errors.New("violates PodSecurity")), job.StartFailed, "does not let it in"},
		"form":   {apierrors.NewBadRequest("no such image policy"), job.StartFailed, "refuses it"},
		"folder": {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "team"), job.NodeFailed, "lacks"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk(t)
			d.open()
			var asked atomic.Int64
			d.api.Fail(func(verb, resource, _ string) error {
				if verb == "create" && resource == "pods" {
					asked.Add(1)
					return c.err
				}
				return nil
			})
			d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
			if r := d.result(tok(1)); r.Outcome != c.outcome || !strings.Contains(r.Detail, c.says) || r.Start != 0 {
				t.Errorf("%+v, want %v with %q", r, c.outcome, c.says)
			}
			if n := asked.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
			d.settle(tok(1), job.Range{})
		})
	}
}

// TestWhereItMayMakeNoPodsNoSliceIsHeld: rights may come, for a while; then the subjob is over, by no fault of its job, and it says what
// is missing.
func TestWhereItMayMakeNoPodsNoSliceIsHeld(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"pods", "secrets"} {
		d := newDesk(t)
		d.open()
		var asked atomic.Int64
		d.api.Fail(func(verb, resource, _ string) error {
			if verb == "create" && resource == of {
				asked.Add(1)
				return apierrors.NewForbidden(schema.GroupResource{Resource: of}, "x",
					errors.New(`User "system:serviceaccount:sluice:sluice" cannot create resource "`+of+
						`" in API group "" in the namespace "default"`))
			}
			return nil
		})
		d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
		d.Until("it is tried again", func() bool { return asked.Load() > 1 })
		time.Sleep(time.Second)
		if n := asked.Load(); n > 10 {
			t.Errorf("%s: asked %d times in a second, without a pause", of, n)
		}
		d.mu.Lock()
		if len(d.results) > 0 {
			t.Errorf("%s: %+v, at once", of, d.results)
		}
		d.mu.Unlock()
		d.later(31 * time.Second)
		if r := d.result(tok(1)); r.Outcome != job.NodeFailed || !strings.Contains(r.Detail, "cannot create resource") || r.Start != 0 {
			t.Errorf("%s: %+v", of, r)
		}
	}
}

// TestAnOperatorThatDiesBeforeItsPodBegan: all that the Pod needs is there, and the next one goes on with it.
func TestAnOperatorThatDiesBeforeItsPodBegan(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	d.Until("there is a Pod", func() bool { return d.Pod(tok(1)) != nil })
	d.close()
	var asked atomic.Int64
	d.api.Fail(func(verb, resource, _ string) error { // nor does it say at first whether there are keys
		if verb == "get" && resource == "secrets" && asked.Add(1) < 4 {
			return apierrors.NewServiceUnavailable("not now")
		}
		return nil
	})
	if f := d.open()[tok(1)]; !f.Alive || f.Witness.Seq != 1 {
		t.Fatalf("%+v", f)
	}
	d.Kubelet.Silence(false)
	if r := d.result(tok(1)); r.Outcome != job.Done {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 10})
}

// TestKeysThatSomebodyDeletes: the operator puts them back, and a Pod that waits for them begins. Where it was away meanwhile nobody has
// them: the Pod goes, and that is nobody's failure.
func TestKeysThatSomebodyDeletes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	secrets := d.Client.CoreV1().Secrets("default")
	for i, away := range []bool{false, true} {
		at := tok(i + 1)
		d.Kubelet.Silence(true)
		d.do(d.lease(at, job.Range{To: 10}, nil, "p 10"))
		d.Until("there is a Pod", func() bool { return d.Pod(at) != nil })
		if away {
			d.close()
		}
		if err := secrets.Delete(t.Context(), "sluice-main-keys", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if away {
			d.open()
		} else {
			d.later(time.Minute)
			d.Kubelet.Silence(false)
		}
		want := map[bool]job.Outcome{false: job.Done, true: job.NodeFailed}[away]
		if r := d.result(at); r.Outcome != want || away && !strings.Contains(r.Detail, "sluice-main-keys") {
			t.Errorf("away %v: %+v", away, r)
		}
		d.settle(at, job.Range{})
		if d.Pod(at) != nil {
			t.Error("the Pod is left")
		}
	}
}

// TestWhoDeletesAPodByHandStopsIt: with grace it leaves what it has done; without, that is lost, and still it is over only when its
// kubelet says so.
func TestWhoDeletesAPodByHandStopsIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	const script = "trap 'echo half > $SLUICE_OUTPUT_DIR/half; exit 85' TERM; p 5; while :; do sleep 0.05; done"
	for i, grace := range []*int64{nil, new(int64)} {
		d.do(d.lease(tok(i+1), job.Range{To: 10}, nil, script))
		d.begun(tok(i + 1))
		d.Until("it heeds signals", func() bool { p, ok := d.Dir(tok(i + 1)).ReadProgress(); return ok && p.Progress == 5 })
		if err := d.Client.CoreV1().Pods("default").Delete(t.Context(), d.PodName(tok(i+1)),
			metav1.DeleteOptions{GracePeriodSeconds: grace}); err != nil {
			t.Fatal(err)
		}
	}
	if r := d.result(tok(1)); r.Outcome != job.Yielded || r.Progress != 5 {
		t.Errorf("with grace: %+v", r)
	}
	if r := d.result(tok(2)); r.Outcome != job.NodeFailed || r.Progress != 0 || r.Start == 0 {
		t.Errorf("without: %+v", r)
	}
	d.settle(tok(1), job.Range{To: 5})
	d.settle(tok(2), job.Range{})
	if d.Pod(tok(1)) != nil || d.Pod(tok(2)) != nil {
		t.Error("a Pod is left")
	}
}

// TestAMachineThatIsGoneIsWaitedFor: neither a deletion nor what the garbage collector of Pods says is the end, only the time after which
// nothing can run.
func TestAMachineThatIsGoneIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	m := d.lease(tok(1), job.Range{To: 10}, nil, "trap '' TERM; p 5; while :; do sleep 0.05; done")
	d.do(m)
	d.begun(tok(1))
	d.Until("its Pod runs", func() bool { p := d.Pod(tok(1)); return p != nil && p.Status.Phase == corev1.PodRunning })
	d.Kubelet.Silence(true)
	if err := d.Client.CoreV1().Pods("default").Delete(t.Context(), d.PodName(tok(1)), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p := d.Pod(tok(1))
	p.Status.Phase = corev1.PodFailed
	p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "DeletionByPodGC"})
	if _, err := d.Client.CoreV1().Pods("default").UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// An operator that comes back knows no more than what the Pod says, and the lease is over by then.
	d.later(m.Body.(*protocol.Work).End.Sub(quantity.At(d.now())) + time.Second)
	if f := d.open()[tok(1)]; !f.Alive {
		t.Fatalf("%+v, want it alive: nobody has said that it is not", f)
	}
	// Its end, what storing takes, the kubelet's grace for it, the clocks.
	d.later(10*time.Second + 15*time.Second + 5*time.Second + 10*time.Second)
	if f := d.open()[tok(1)]; f.Result == nil || f.Result.Outcome != job.NodeFailed {
		t.Fatalf("%+v, want that its machine failed", f)
	}
	d.settle(tok(1), job.Range{})
	if d.Pod(tok(1)) != nil {
		t.Error("the Pod is left")
	}
}

// TestAStoreThatIsAwayIsWaitedFor: what has ended is told once what it left has its name, and until then that it is being stored.
func TestAStoreThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "echo x > $SLUICE_OUTPUT_DIR/x; p 10; while [ ! -e $SLUICE_OUTPUT_DIR/go ]; do sleep "+
		"0.05; done"))
	d.begun(tok(1))
	d.Store.SetAway(true)
	if err := os.WriteFile(d.Dir(tok(1)).Output()+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.Until("it ended", func() bool { _, err := d.Dir(tok(1)).ReadResult(); return err == nil })
	d.Store.SetAway(false)
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 10 {
		t.Errorf("%+v", r)
	}
	if refs := d.names()["jobs/main/train/1/1-1"]; d.content(refs["output"])["x"] != "x" {
		t.Errorf("the store has %v", refs)
	}
}

// TestHowFarItIsIsToldAgain: an operator that comes back tells it, though the subjob has said nothing new.
func TestHowFarItIsIsToldAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done"))
	told := func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.reached[tok(1)] == 5 }
	d.Until("it is told", told)
	d.mu.Lock()
	began := d.starts[tok(1)][0]
	d.reached[tok(1)] = 0
	d.mu.Unlock()
	if f := d.open()[tok(1)]; !f.Alive || f.Started != began {
		t.Errorf("%+v, want it alive since %d", f, began)
	}
	d.Until("it is told again", told)
}

// TestAStoreThatIsAwayAtTheEnd: neither the Pod's words nor what it leaves can be stored then, and still its home hears that it is to wait.
func TestAStoreThatIsAwayAtTheEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	m := d.lease(tok(1), job.Range{To: 10}, func(w *protocol.Work) {
		w.End, w.Spec.Launch.Grace = w.Start.Add(12*time.Second), 500*time.Millisecond
	}, "trap 'exit 85' TERM; echo x > $SLUICE_OUTPUT_DIR/x; p 5; while :; do sleep 0.05; done")
	d.do(m)
	d.Until("it is half way", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.reached[tok(1)] == 5 })
	d.Store.SetAway(true)
	d.Until("it is said that something is being stored", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.storing[tok(1)] > 1 })
	d.Store.SetAway(false)
	if r := d.result(tok(1)); r.Outcome != job.Yielded || r.Progress != 5 {
		t.Errorf("%+v", r)
	}
	if refs := d.names()["jobs/main/train/1/1-1"]; d.content(refs["output"])["x"] != "x" {
		t.Errorf("the store has %v", refs)
	}
}

// TestNobodyIsDeafForSayingThatItStores: a program can put the word that its supervisor puts when all of it is gone. It is let alone for
// as long as storing may take, and not at all where its end is to be at once.
func TestNobodyIsDeafForSayingThatItStores(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	for i, now := range []bool{false, true} {
		at := tok(i + 1)
		d.do(d.lease(at, job.Range{To: 10}, nil, "trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done"))
		d.Until("it is half way", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.reached[at] == 5 })
		url, err := d.Store.LendPut(t.Context(), "pods/main/"+at.String()+"/progress", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPut, url,
			strings.NewReader(`{"Started":1,"Progress":6,"Storing":true}`))
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.DefaultClient.Do(q)
		if err != nil || r.StatusCode != http.StatusOK {
			t.Fatal(r, err)
		}
		_ = r.Body.Close()
		d.Until("that is believed", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.storing[at] > 1 })
		d.do(protocol.Message{Kind: protocol.Stop, Token: at, Job: "train", Body: &protocol.Halt{Text: "enough", Now: now}})
		if !now {
			d.later(11 * time.Second) // what storing may take, on this desk
		}
		if r := d.result(at); r.Outcome != map[bool]job.Outcome{false: job.Yielded, true: job.Stopped}[now] || r.Progress != 5 {
			t.Errorf("now: %v: %+v", now, r)
		}
	}
}

// TestALeaseWithoutAnEndEndsWithItsMachine: the cluster says that the machine is no more, or a person that the Pod is not. Only then can
// it be known.
func TestALeaseWithoutAnEndEndsWithItsMachine(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	forever := func(w *protocol.Work) { w.End = quantity.Never }
	for i := range 2 {
		d.do(d.lease(tok(i+1), job.Range{To: 10}, forever, "trap '' TERM; p 5; while :; do sleep 0.05; done"))
		d.begun(tok(i + 1))
		d.Until("its Pod runs", func() bool { p := d.Pod(tok(i + 1)); return p != nil && p.Status.Phase == corev1.PodRunning })
	}
	d.Kubelet.Silence(true)
	client := d.Client.CoreV1().Pods("default")
	collected := d.Pod(tok(1))
	collected.Status.Phase = corev1.PodFailed
	collected.Status.Conditions = append(collected.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget,
		Status: corev1.ConditionTrue, Reason: "DeletionByPodGC"})
	if _, err := client.UpdateStatus(t.Context(), collected, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	now := int64(0)
	if err := client.Delete(t.Context(), d.PodName(tok(2)), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Patch(t.Context(), d.PodName(tok(2)), types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.Delete(t.Context(), d.PodName(tok(2)), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil &&
		!apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // long enough for whoever does not wait
	d.mu.Lock()
	if len(d.results) > 0 {
		t.Errorf("%+v, though both may run still", d.results)
	}
	d.mu.Unlock()
	d.later(5*time.Second + 10*time.Second + 5*time.Second + time.Second)
	for i := range 2 {
		if r := d.result(tok(i + 1)); r.Outcome != job.NodeFailed || r.Start == 0 {
			t.Errorf("%d: %+v", i+1, r)
		}
	}
}

// TestOthersContainersInAPodHoldNothingUp: a sidecar that a webhook has put there runs on when the subjob's container has ended, and the
// phase says nothing of that. Its Pod is deleted, so that it ends; its home hears meanwhile that it is to wait; and how it ended is told
// once its kubelet has said that the Pod is over.
func TestOthersContainersInAPodHoldNothingUp(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.Kubelet.Silence(true)
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "true"))
	d.Until("there is a Pod", func() bool { return d.Pod(tok(1)) != nil })
	client := d.Client.CoreV1().Pods("default")
	if _, err := client.Patch(t.Context(), d.PodName(tok(1)), types.MergePatchType, []byte(`{"spec":{"nodeName":"main-machine"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	said := pod.Said{Result: job.Result{Outcome: job.Done, Progress: 10, Start: quantity.At(time.Now()), End: quantity.At(time.Now())}}
	status := func(phase corev1.PodPhase, sidecar corev1.ContainerState) {
		t.Helper()
		p := d.Pod(tok(1))
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []corev1.ContainerStatus{
			{Name: cluster.Container,
				State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(said.Encode()),
					StartedAt: metav1.Now(), FinishedAt: metav1.Now()}}},
			{Name: "proxy", State: sidecar},
		}
		if _, err := client.UpdateStatus(t.Context(), p, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	status(corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	d.Until("its Pod is to end", func() bool { return d.Pod(tok(1)).DeletionTimestamp != nil })
	if g := d.Pod(tok(1)).DeletionGracePeriodSeconds; *g != 10 {
		t.Errorf("others have %d s to end in, want as many as storing may take", *g)
	}
	d.Until("its home hears that it is to wait", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.storing[tok(1)] > 2 })
	if f := d.open()[tok(1)]; !f.Alive { // nor does one that comes back take it for over
		t.Errorf("%+v", f)
	}
	d.Until("it hears so again", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.storing[tok(1)] > 4 })
	d.mu.Lock()
	if len(d.results[tok(1)]) > 0 {
		t.Errorf("%+v, though its kubelet has not said that the Pod is over", d.results[tok(1)])
	}
	d.mu.Unlock()
	status(corev1.PodSucceeded, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 10 {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{})
	if p := d.Pod(tok(1)); p != nil && len(p.Finalizers) > 0 { // the rest is its kubelet's
		t.Errorf("the Pod is held by %v", p.Finalizers)
	}
}
