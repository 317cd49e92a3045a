//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// TestWhatAWatchShows: what was removed while nobody looked is said to be gone, and that nobody saw how it was at last.
func TestWhatAWatchShows(t *testing.T) {
	var told []string
	b := newBoard(func(p *corev1.Pod, gone, unsure bool) {
		told = append(told, fmt.Sprintf("%s/%s on %q gone %v unsure %v", p.Namespace, p.Name, p.Spec.NodeName, gone, unsure))
	})
	pod := func(name, node string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
			Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}}}
	}
	step := func(what string, err error, want ...string) {
		t.Helper()
		if err != nil || !slices.Equal(told, want) {
			t.Errorf("%s: %v, told %q, want %q", what, err, told, want)
		}
		told = nil
	}
	step("listed", b.Replace([]any{pod("a", ""), pod("b", "")}, "1"), `n/a on "" gone false unsure false`,
		`n/b on "" gone false unsure false`)
	select {
	case <-b.listed:
	default:
		t.Error("nobody knows that it was listed")
	}
	step("bound", b.Update(pod("a", "w")), `n/a on "w" gone false unsure false`)
	step("listed anew", b.Replace([]any{pod("b", "w"), pod("c", "")}, "9"), `n/b on "w" gone false unsure false`,
		`n/c on "" gone false unsure false`, `n/a on "w" gone true unsure true`)
	step("removed", b.Delete(pod("c", "x")), `n/c on "x" gone true unsure false`)
	if l := b.list(); len(l) != 1 || l[0].Name != "b" || l[0].Spec.Containers != nil {
		t.Errorf("it shows %v", l)
	}
	if b.Add("no Pod") == nil || b.Delete("no Pod") == nil {
		t.Error("what is no Pod is one")
	}
}

// TestAWordIsReadMoreSeldomUntilThereIsNews, and that a subjob stores counts for as long as storing may take.
func TestAWordIsReadMoreSeldomUntilThereIsNews(t *testing.T) {
	h, at := hearing{every: firstPeek}, quantity.Instant(1_000_000_000)
	for i, c := range []struct {
		word  pod.Word
		ok    bool
		news  bool
		every time.Duration
	}{
		{pod.Word{}, false, false, 2 * firstPeek},
		{pod.Word{}, true, false, 4 * firstPeek},
		{pod.Word{Started: 1}, true, true, time.Second},
		{pod.Word{Started: 1}, true, false, 2 * time.Second},
		{pod.Word{Started: 1, Storing: true}, true, true, time.Second},
		{pod.Word{Started: 1, Storing: true}, true, true, time.Second},
		{pod.Word{}, false, false, 2 * time.Second},
	} {
		if news := h.hear(c.word, c.ok, time.Second); news != c.news || h.every != c.every {
			t.Errorf("%d: news %v, read again after %v; want %v, %v", i, news, h.every, c.news, c.every)
		}
	}
	for range 10 {
		h.hear(pod.Word{}, false, time.Second)
	}
	if h.every != seldom {
		t.Errorf("without news it is read every %v", h.every)
	}
	if !h.stores(at, time.Minute) || !h.stores(at.Add(time.Minute-1), time.Minute) || h.stores(at.Add(time.Minute), time.Minute) {
		t.Error("it is left alone for less than storing may take, or for more")
	}
	if h.word.Storing = false; h.stores(at.Add(time.Minute), time.Minute) {
		t.Error("it does not store")
	}
	if h.word.Storing = true; !h.stores(at.Add(time.Hour), time.Minute) {
		t.Error("it stores anew")
	}
}

// TestAStrangersOrderKeepsWhatItHad: one that was already told to end as we would is not told again.
func TestAStrangersOrderKeepsWhatItHad(t *testing.T) {
	r := asked(t, counted)
	r.rec.Journal = "another"
	of := newRun(r.e, *r.rec)
	of.plan = r.plan
	of.plan.rec = of.rec
	p, err := of.plan.makePod("", r.plan.asked)
	if err != nil {
		t.Fatal(err)
	}
	had := pod.Order{End: r.rec.End.Add(-time.Second), Cut: true, Stop: true, Now: true, Why: "it is of another journal of this operator"}
	text, err := json.Marshal(had)
	if err != nil {
		t.Fatal(err)
	}
	p.Annotations[cluster.AnnotationNotice] = string(text)
	r.e.meet(p)
	r.e.mu.Lock()
	s := r.e.strangers[keyOf(p)]
	r.e.mu.Unlock()
	if s == nil {
		t.Fatal("it is not ended")
	}
	if got := s.view().want.order; got != had {
		t.Errorf("it is told %+v, want %+v", got, had)
	}
}
