//go:build kubernetes

package kubernetes_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
)

// TestALostJournal: whoever comes after it begins with the same tokens. What ran before is ended and put away and counts for nothing,
// whether it runs still, has ended with an output, or has left one under its name; the same tokens then are other subjobs, and what they
// leave is theirs.
func TestALostJournal(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Journal = "first1"
	d.open()
	write := func(text string) string { return "echo " + text + " > $SLUICE_OUTPUT_DIR/x; p $SLUICE_TO" }
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done"))
	d.do(d.lease(tok(2), job.Range{From: 10, To: 20}, nil, write("old")))
	d.do(d.lease(tok(3), job.Range{From: 20, To: 30}, nil, write("old")))
	d.Until("one is half way", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.reached[tok(1)] == 5 })
	d.result(tok(2))
	d.result(tok(3))
	d.settle(tok(3), job.Range{From: 20, To: 30})
	old := []string{d.PodName(tok(1)), d.PodName(tok(2)), d.PodName(tok(3))}
	d.forgetAll()

	d.Journal = "second"
	if found := d.open(); len(found) > 0 {
		t.Fatalf("found %+v, which are of another journal", found)
	}
	for i := range 3 {
		d.do(d.lease(tok(i+1), job.Range{From: int64(30 + 10*i), To: int64(40 + 10*i)}, nil, write(fmt.Sprint("new", i))))
	}
	for i := range 3 {
		from := int64(30 + 10*i)
		if r := d.result(tok(i + 1)); r.Outcome != job.Done || r.Progress != from+10 {
			t.Errorf("%+v", r)
		}
		d.settle(tok(i+1), job.Range{From: from, To: from + 10})
		refs := d.names()[fmt.Sprintf("outputs/main.second/train/1/%012d-%012d.%s", from, from+10, tok(i+1))]
		if d.content(refs["output"])["x"] != fmt.Sprint("new", i) {
			t.Errorf("the store names %v", d.names())
		}
	}
	d.Until("what was there before is gone", func() bool {
		list, err := d.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{LabelSelector: cluster.LabelOperator})
		return err == nil && len(list.Items) == 0
	})
	for _, name := range old {
		if d.api.Created()[name] != 1 {
			t.Errorf("%s was made %d times", name, d.api.Created()[name])
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range 3 {
		if n := len(d.results[tok(i+1)]); n != 1 {
			t.Errorf("subjob %d was told to have ended %d times", i+1, n)
		}
	}
	kept := 0
	for name := range d.names() {
		if strings.HasPrefix(name, "outputs/main.first1/") {
			kept++
		}
	}
	if kept != 1 {
		t.Errorf("the store names %v, want the output that was committed before still there", d.names())
	}
}

// TestAnotherOperatorOfThisName: what was made since our journal was is of somebody who lives, and nothing is done to it.
func TestAnotherOperatorOfThisName(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Journal = "other1"
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done"))
	d.begun(tok(1))
	name := d.PodName(tok(1))
	d.close()
	d.Journal, d.Made = "mine01", time.Now().Add(-time.Hour)
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	if r := d.result(tok(1)); r.Outcome != job.Done {
		t.Errorf("%+v", r)
	}
	p, err := d.Client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
	if err != nil || p.DeletionTimestamp != nil || p.Annotations[cluster.AnnotationNotice] != "" || len(p.Finalizers) == 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestAStartIsHeldAgainstWhatItRepeats: a token stands for one range of one job. What has another is refused, and does not get the other's
// answer.
func TestAStartIsHeldAgainstWhatItRepeats(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "p 10"))
	d.result(tok(1))
	d.do(d.lease(tok(1), job.Range{From: 10, To: 20}, nil, "p 20"))
	d.Until("there is a second answer", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.results[tok(1)]) == 2 })
	if r := d.results[tok(1)][1]; r.Outcome != job.NodeFailed || r.Progress != 10 || !strings.Contains(r.Detail, "another") {
		t.Errorf("%+v", r)
	}
}

// TestAForgedPodIsNobodysWord: whoever may create Pods can give one the labels of another's, and a record as it likes: a witness that the
// journal lacks would keep the daemon from starting, and its end would be another subjob's. It is left alone, wherever it is, and what is
// true is found beside it.
func TestAForgedPodIsNobodysWord(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.Journal, d.Key = "first1", []byte("a key of tests, and of nobody else")
	d.open()
	d.do(d.lease(tok(1), job.Range{To: 10}, nil, "trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done"))
	d.begun(tok(1))
	d.close()
	own := d.Pod(tok(1))
	forge := func(namespace, name, token string, change func(p *corev1.Pod)) {
		t.Helper()
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: maps.Clone(own.Labels),
			Annotations: maps.Clone(own.Annotations)}, Spec: own.Spec}
		p.Spec.NodeName, p.Labels[cluster.LabelToken] = "", token
		change(p)
		if _, err := d.Client.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	forge("elsewhere", "copy", "1-1", func(*corev1.Pod) {})
	forge("default", d.PodName(tok(9)), "1-9", func(p *corev1.Pod) {
		p.Annotations[cluster.AnnotationRun] = strings.Replace(strings.Replace(p.Annotations[cluster.AnnotationRun], `"Seq":1,`,
			`"Seq":1000000,`, 1), `"Token":{"Epoch":1,"Seq":1}`, `"Token":{"Epoch":1,"Seq":9}`, 1)
	})
	found := d.open()
	if f := found[tok(1)]; len(found) != 1 || !f.Alive || f.Witness.Seq != 1 {
		t.Errorf("found %+v", found)
	}
	d.do(d.lease(tok(9), job.Range{From: 10, To: 20}, nil, "p 20")) // a name that somebody has taken
	if r := d.result(tok(9)); r.Outcome != job.NodeFailed || !strings.Contains(r.Detail, "is not ours") {
		t.Errorf("%+v", r)
	}
	d.do(protocol.Message{Kind: protocol.Stop, Token: tok(1), Job: "train", Body: &protocol.Halt{Text: "enough"}})
	if r := d.result(tok(1)); r.Outcome != job.Yielded || r.Progress != 5 {
		t.Errorf("%+v", r)
	}
}
