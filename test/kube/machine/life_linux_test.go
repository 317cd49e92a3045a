//go:build kubernetes && machine

package machine_test

import (
	"io"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/test/kube/machine"
)

// units is what `program count` writes for some.
func units(from, to int) (all string) {
	for i := from; i < to; i++ {
		all += "unit " + string(rune('0'+i)) + "\n"
	}
	return all
}

// TestASubjobsLife: it starts, says how far it is, shows what it writes, and what it has done lies in the store; nothing of it is left in
// the cluster.
func TestASubjobsLife(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	asked := time.Now()
	d.start(tok(1), nil, "count", "1s")
	d.reaches(tok(1), 3)
	d.mu.Lock()
	began := d.starts[tok(1)]
	d.mu.Unlock()
	t.Logf("began %s after it was asked for", began.Sub(quantity.At(asked)))
	logs, err := d.ex.Files().OpenLogs("train", tok(1))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(logs[0])
	if err != nil || !strings.Contains(string(text), units(0, 2)) {
		t.Errorf("logs %q, %v", text, err)
	}
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 10 {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 10})
	if got := d.outputs(); got != units(0, 10) {
		t.Errorf("output %q", got)
	}
}

// TestTheEndThatComesEarlier: what a running Pod is told reaches it through the kubelet's file within seconds, by its own clock it ends
// then, and gives back.
func TestTheEndThatComesEarlier(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.start(tok(1), nil, "polite")
	d.reaches(tok(1), 5)
	told := time.Now()
	end := quantity.At(told).Add(15 * time.Second)
	d.ex.Do(protocol.Message{Kind: protocol.Deadline, Token: tok(1), Job: "train", Body: &protocol.Shift{Range: job.Range{To: 10}, End: end,
		Text: "somebody waits"}}, journal.Position{})
	d.Until("its program can read that", func() bool {
		n, ok := d.Notice(tok(1))
		return ok && n.Kind == executor.NoticeTruncated && n.Why == "somebody waits"
	})
	t.Logf("the program could read it %s after it was told", time.Since(told).Round(time.Millisecond))
	r := d.result(tok(1))
	if r.Outcome != job.Yielded || r.Progress != 5 || r.End > end {
		t.Errorf("%+v, want it given back by %d", r, end)
	}
	d.settle(tok(1), job.Range{To: 5})
	if got := d.outputs(); got != "told\n" {
		t.Errorf("output %q", got)
	}
}

// TestWhoHasToEnd: a stop reaches the polite, and ends the stubborn when their grace is over; without grace it is over at once. A Pod that
// somebody deletes is stopped.
func TestWhoHasToEnd(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, way := range []string{"polite", "stubborn", "stubborn", "polite"} {
		d.start(tok(i+1), func(w *protocol.Work) {
			if i == 2 {
				w.Spec.Launch.Grace = 2 * time.Minute
			}
		}, way)
	}
	for i := range 4 {
		d.reaches(tok(i+1), 5)
	}
	for i := range 3 {
		d.ex.Do(protocol.Message{Kind: protocol.Stop, Token: tok(i + 1), Job: "train", Body: &protocol.Halt{Text: "enough", Now: i == 2}},
			journal.Position{})
	}
	if err := d.Client.CoreV1().Pods(d.Namespace).Delete(t.Context(), d.PodName(tok(4)), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	told := time.Now()
	for i, want := range []job.Outcome{job.Yielded, job.Stopped, job.Stopped, job.Yielded} {
		r := d.result(tok(i + 1))
		if r.Outcome != want || r.Progress != 5 {
			t.Errorf("%d: %+v, want %v", i+1, r, want)
		}
		t.Logf("%d: %v, read %s after it was told: %s", i+1, r.Outcome, time.Since(told).Round(time.Millisecond), r.Detail)
	}
	for i := range 4 {
		d.settle(tok(i+1), job.Range{To: 5})
	}
}

// TestMemoryThatRunsOut: the kernel ends who takes more than its container may have, and that is what is told. It is not the slice's
// memory, and so no reason to look for a larger slice.
func TestMemoryThatRunsOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	// More than a Pod asks for by itself: the API server refuses a limit below that.
	d.limits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("192Mi")})
	d.start(tok(1), nil, "eat")
	r := d.result(tok(1))
	t.Logf("%+v; the kubelet says %+v", r, d.terminated(tok(1)))
	if r.Outcome != job.ExitFailed || r.Signal != 9 || !strings.Contains(r.Detail, "no more memory (not the slice's)") {
		t.Errorf("%+v, want a signal, and why", r)
	}
	d.settle(tok(1), job.Range{})
}

// TestDiskThatRunsOut: the kubelet evicts who writes more than its Pod may have. It is nobody's failure.
func TestDiskThatRunsOut(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.limits(corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("32Mi")})
	d.start(tok(1), nil, "fill", "64")
	r := d.result(tok(1))
	t.Logf("%+v", r)
	if r.Outcome != job.Stopped || r.Start == 0 || !strings.Contains(r.Detail, "Evicted") {
		t.Errorf("%+v, want it begun and evicted", r)
	}
	d.settle(tok(1), job.Range{})
}

// TestAnImageThatIsNotThere: a name that can't be one is refused at once, a registry that does not answer is waited for; both are the
// job's.
func TestAnImageThatIsNotThere(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	image := func(name string) func(*protocol.Work) {
		return func(w *protocol.Work) { w.Spec.Launch.Image = name }
	}
	d.start(tok(1), image("No:Name:At:All"), "true")
	d.start(tok(2), image("127.0.0.1:1/none:1"), "true")
	for i, want := range []job.Outcome{job.StartFailed, job.NodeFailed} { // a registry that is away is no job's failure
		r := d.result(tok(i + 1))
		t.Logf("%+v", r)
		if r.Outcome != want || !strings.Contains(r.Detail, "image") {
			t.Errorf("%+v, want it not started for its image, as %v", r, want)
		}
		d.settle(tok(i+1), job.Range{})
	}
}

// TestTheMachinesProgramsComeAndGo: kubelet and containerd are killed and started again while a subjob runs, and it neither ends nor runs
// twice.
func TestTheMachinesProgramsComeAndGo(t *testing.T) {
	d := newDesk(t)
	d.start(tok(1), nil, "count", "1500ms")
	for i, part := range []machine.Part{machine.Kubelet, machine.Containerd, machine.Kubelet} {
		d.reaches(tok(1), int64(2*i+1))
		d.m.Kill(part)
		if i == 1 {
			d.m.Kill(machine.Kubelet)
			if err := d.m.Start(machine.Containerd); err != nil {
				t.Fatal(err)
			}
			part = machine.Kubelet
		}
		if err := d.m.Start(part); err != nil {
			t.Fatal(err)
		}
	}
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 10 {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 10})
	if got := d.outputs(); got != units(0, 10) {
		t.Errorf("output %q", got)
	}
}

// TestItEndsWhileTheKubeletIsAway: how it ended is read when the kubelet is back, from the machine.
func TestItEndsWhileTheKubeletIsAway(t *testing.T) {
	d := newDesk(t)
	d.start(tok(1), nil, "count", "300ms")
	d.reaches(tok(1), 1)
	d.m.Kill(machine.Kubelet)
	d.Until("its work is done", func() bool { _, err := d.Dir(tok(1)).ReadResult(); return err == nil })
	time.Sleep(time.Second)
	if err := d.m.Start(machine.Kubelet); err != nil {
		t.Fatal(err)
	}
	if r := d.result(tok(1)); r.Outcome != job.Done || r.Progress != 10 {
		t.Errorf("%+v", r)
	}
	d.settle(tok(1), job.Range{To: 10})
	if got := d.outputs(); got != units(0, 10) {
		t.Errorf("output %q", got)
	}
}

// TestAKeyThatIsNew: the operator begins anew, with another key, while a Pod of before runs beside: the installer of the next Pod waits
// for it no longer than a kubelet takes to see that the Secret has changed; also when the kubelet could not look for a while.
func TestAKeyThatIsNew(t *testing.T) {
	d := newDesk(t)
	d.start(tok(1), nil, "polite")
	d.reaches(tok(1), 5)
	for i := range 2 {
		if i == 1 {
			d.m.Away(true)
		}
		d.again()
		began := time.Now()
		d.start(tok(i+2), nil, "true")
		if i == 1 {
			time.Sleep(40 * time.Second) // what a kubelet's ways back to the API server are made of are pauses that grow
			d.m.Away(false)
			began = time.Now()
		}
		if r := d.result(tok(i + 2)); r.Outcome != job.Done {
			t.Errorf("%+v", r)
		}
		secrets, err := d.Client.CoreV1().Secrets(d.Namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(secrets.Items) != 1 || len(secrets.Items[0].Data) < i+2 {
			t.Fatalf("%d secrets, %v: want one with a key for each of the operator's lives", len(secrets.Items), err)
		}
		t.Logf("done %s after it was asked for; the kubelet was away before: %v", time.Since(began).Round(time.Millisecond), i == 1)
	}
	d.ex.Do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough"}}, journal.Position{})
	if r := d.result(tok(1)); r.Outcome != job.Yielded {
		t.Errorf("%+v", r)
	}
}
