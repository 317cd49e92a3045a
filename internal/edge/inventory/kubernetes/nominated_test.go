//go:build kubernetes

package kubernetes

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/quantity"
)

func nominated(machine string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.NominatedNodeName = machine }
}

// TestWhatTheSchedulerFreesIsKept: kube-scheduler preempts for an extended resource by itself. What it ends is not sold again before the
// Pod that it ends it for is bound, nothing else is stopped for that, and nothing is told to what it ends.
func TestWhatTheSchedulerFreesIsKept(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	waits := newPod("a", "p", "", asks(mig, 2), unplaced, nominated("w"))
	victim := func(change ...func(*corev1.Pod)) *corev1.Pod {
		return newPod("s", "sluice-op-3", "w", append(change, ours("w/mig-1g.10gb.0"), asks(mig, 1), began(-3*time.Minute),
			lasts(time.Hour))...)
	}
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0.Add(40 * time.Second)} }

	o := options(serve(append(filled(), waits)...))
	o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return at(0) }
	inv := opened(t, o)
	g := gives(inv)
	kept := func() (list []string) {
		for _, s := range g.held() {
			for _, r := range s.Closures {
				if text := string(s.Slice) + " for " + r.Source; !slices.Contains(list, text) {
					list = append(list, text)
				}
			}
		}
		return list
	}
	step := func(what string, want ...string) {
		t.Helper()
		g.look()
		if got := kept(); !slices.Equal(got, want) {
			t.Errorf("%s: kept are %q, want %q", what, got, want)
		}
		if got := cut(g.held()); len(got) > 0 {
			t.Errorf("%s: cut are %q", what, got)
		}
	}
	step("nothing is seen of its preemption")
	if got := strings.Join(g.reasons(), "\n"); !strings.HasPrefix(got, "pod a/p is preempting: ") {
		t.Errorf("the reasons are %q", got)
	}
	const first, last = "w/mig-1g.10gb.0 for pod a/p, which waits for it", "w/mig-1g.10gb.2 for pod a/p, which waits for it"
	inv.hears(t, inv.pods, victim(deleted))
	step("it ends a subjob", first, last)
	inv.loses(t, inv.pods, victim(deleted))
	step("that is gone", first, last)
	inv.hears(t, inv.pods, newPod("a", "p", "w", asks(mig, 2)))
	step("it is bound", "w/mig-1g.10gb.0 for pod a/p", "w/mig-1g.10gb.2 for pod a/p")
}

// TestWhatIsFreeIsKeptForWhoWaits: the scheduler has passed a Pod over, and comes back to it after some seconds. What is free by then is
// not sold meanwhile, and for no longer.
func TestWhatIsFreeIsKeptForWhoWaits(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	o := options(serve(append(filled(), newPod("a", "p", "", asks(mig, 1), unplaced))...))
	now := at(0)
	o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return now }
	g := gives(opened(t, o))
	for _, c := range []struct {
		at   time.Duration
		want []string
	}{{0, []string{"w/mig-1g.10gb.2"}}, {11 * time.Second, []string{"w/mig-1g.10gb.2"}}, {13 * time.Second, nil}} {
		now = at(c.at)
		g.look()
		var got []string
		for _, s := range g.held() {
			got = append(got, string(s.Slice))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("after %v kept are %q, want %q", c.at, got, c.want)
		}
	}
}
