//go:build kubernetes

package kubernetes

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes/lengths"
)

// TestHowLongOthersRan says until when the next one is likely to; one that stays for longer has no end, nor has one that is always started
// again.
func TestHowLongOthersRan(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	c := serve(node("v", has(mig, 1)))
	var now atomic.Int64
	o := options(c)
	o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return quantity.Instant(now.Load()) }
	inv := opened(t, o)
	ctx, clock := t.Context(), time.Duration(0)
	put := func(d time.Duration, p *corev1.Pod) {
		t.Helper()
		now.Store(int64(at(d)))
		p.Status.StartTime = &metav1.Time{Time: t0.Add(d)}
		check[*corev1.Pod](t)(c.CoreV1().Pods("a").Create(ctx, p, metav1.CreateOptions{}))
		wait(t, func() bool { _, there := get[*pod](inv.pods, "a/"+p.Name); return there })
		wait(t, func() bool { inv.touch("v"); inv.look(); return len(held(inv)) == 1 })
	}
	gone := func(d time.Duration, name string) {
		t.Helper()
		now.Store(int64(at(d)))
		if err := c.CoreV1().Pods("a").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		wait(t, func() bool {
			inv.mu.Lock()
			defer inv.mu.Unlock()
			return inv.lengths.Open() == 0
		})
	}
	end := func() string {
		inv.touch("v")
		inv.look()
		h := held(inv)[0].Closures[0]
		if h.End == quantity.Never {
			return "? " + h.Source
		}
		return fmt.Sprint(h.End.Sub(at(clock)), " ", h.Source)
	}
	like := func(name string, change ...func(*corev1.Pod)) *corev1.Pod {
		return newPod("a", name, "v", append(change, asks(mig, 1), func(p *corev1.Pod) { p.GenerateName = "train-" })...)
	}
	for i := range lengths.Fewest {
		name := fmt.Sprint("train-", i)
		put(clock, like(name))
		if got := end(); got != "? pod a/"+name {
			t.Fatalf("%d have ended, and the next one ends after %s", i, got)
		}
		clock += time.Duration(i+1) * time.Minute
		gone(clock, name)
	}
	put(clock, like("train-x"))
	if got := end(); got != "19m0s pod a/train-x" {
		t.Errorf("it ends after %s", got)
	}
	now.Store(int64(at(clock + 20*time.Minute)))
	if got := end(); got != "? pod a/train-x" {
		t.Errorf("it stays for longer than all before, and ends after %s", got)
	}
	gone(clock+20*time.Minute, "train-x")
	clock += 30 * time.Minute
	put(clock, like("train-y", func(p *corev1.Pod) { p.Spec.RestartPolicy = corev1.RestartPolicyAlways }))
	if got := end(); got != "? pod a/train-y" {
		t.Errorf("it is started again whatever happens, and ends after %s", got)
	}
}
