//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/inventory"
)

// TestAPlaceThatSomebodyElseHasTakenIsGivenAnew: between the end of a subjob and the scheduler's next look at the Pod that waits, a Pod
// that has just come may be faster. Who waits is given the next place then, and not left until a minute is over.
func TestAPlaceThatSomebodyElseHasTakenIsGivenAnew(t *testing.T) {
	const first, second = "w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it",
		"w/gpu-0-mig-3g-0 at 30s for pod a/p, which waits for it"
	c := serve(append(filled(), newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"))...)
	o := options(c)
	o.Pools, o.Now = []Pool{migs("3g.40gb")}, func() quantity.Instant { return at(0) }
	inv := opened(t, o)
	f := follow(t, inv)
	inv.touch()
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held")
	if got := cut(f.kept()); !slices.Equal(got, []string{first}) {
		t.Fatalf("cut are %q, want %q", got, first)
	}

	ctx := t.Context()
	if err := c.CoreV1().Pods("s").Delete(ctx, "sluice-op-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.ResourceV1().ResourceClaims("s").Delete(ctx, "sluice-op-2", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { _, there := get[*claim](inv.claims, "s/sluice-op-2"); return !there })
	inv.touch()
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held") // the place is there: it is the scheduler's turn

	if _, err := c.CoreV1().Pods("a").Create(ctx, newPod("a", "q", "w", claims("d")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ResourceV1().ResourceClaims("a").Create(ctx, resourceClaim("a", "d", allocated("w", "gpu-0-mig-3g-3", "q")),
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return slices.Equal(cut(f.kept()), []string{second}) })
}

// clocked is an inventory whose clock the test moves.
func clocked(t *testing.T, objects ...runtime.Object) (inv *Inventory, look func(time.Duration) []string) {
	t.Helper()
	o := options(serve(append(filled(), objects...)...))
	now := at(0)
	o.Pools, o.Now = []Pool{migs("3g.40gb"), small()}, func() quantity.Instant { return now }
	inv = opened(t, o)
	g := gives(inv)
	return inv, func(d time.Duration) []string {
		now = at(d)
		g.look()
		return cut(g.held())
	}
}

// TestRoomThatTheSchedulerDoesNotTakeIsNone: one slice of the machine is free, and its Pod can't go there for what is not looked at. It
// has the scheduler's longest pause to take it; then others are given up elsewhere.
func TestRoomThatTheSchedulerDoesNotTakeIsNone(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	_, look := clocked(t, newPod("a", "p", "", asks(mig, 1), unplaced), node("v", has(mig, 1)),
		newPod("s", "sluice-op-8", "v", ours("v/mig-1g.10gb.0"), asks(mig, 1)))
	for _, d := range []time.Duration{0, 2 * time.Second, 11 * time.Second} {
		if got := look(d); len(got) != 0 {
			t.Fatalf("after %v cut are %q", d, got)
		}
	}
	if got, want := look(14*time.Second), []string{"v/mig-1g.10gb.0 at 44s for pod a/p, which waits for it"}; !slices.Equal(got, want) {
		t.Errorf("cut are %q, want %q", got, want)
	}
}

// TestWhatIsGoneIsHeldUntilItIsKnownToBe: a machine that is drained and goes is not offered, nor begun on, in between.
func TestWhatIsGoneIsHeldUntilItIsKnownToBe(t *testing.T) {
	inv := opened(t, options(serve(node("v", has("nvidia.com/mig-1g.10gb", 1), func(n *corev1.Node) { n.Spec.Unschedulable = true }))))
	inv.mu.Lock()
	inv.dirty["v"] = true
	inv.mu.Unlock()
	if err := inv.nodes.GetStore().Delete(inv.slim.machine(node("v"))); err != nil {
		t.Fatal(err)
	}
	var said []string
	for _, s := range inv.look() {
		if s.Wishes == nil {
			said = append(said, fmt.Sprint(s.Slice, s.Restocked, len(s.Closures)))
		}
	}
	if want := []string{"true 0", "v/mig-1g.10gb.0false 0"}; !slices.Equal(said, want) {
		t.Errorf("it said %q, want %q", said, want)
	}
}

// TestNothingIsStartedBlindly: once the API server has been away for a while the node is told, and when it is back.
func TestNothingIsStartedBlindly(t *testing.T) {
	inv := opened(t, options(serve(node("v", has("nvidia.com/mig-1g.10gb", 1)))))
	if err := inv.Close(); err != nil { // nobody pings any more
		t.Fatal(err)
	}
	answered := func(before time.Duration) {
		inv.mu.Lock()
		inv.away.answered = time.Now().Add(-before)
		inv.mu.Unlock()
		inv.touch()
	}
	said := make(chan string, 10)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	answered(30 * time.Second)
	go func() {
		done <- inv.Watch(ctx, nil, func(s inventory.Sighting) { said <- fmt.Sprint(s.Condition.Unhealthy, " ", s.Condition.Text) })
	}()
	answered(time.Hour)
	if got, want := <-said, "true who holds what in the cluster is not known any more: it does not answer"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	answered(0)
	if got := <-said; got != "false " {
		t.Errorf("it says %q", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestOursHaveTimeToStoreWhatTheyDid: the place is kept for as long as a Pod of ours is still there, and a minute beyond.
func TestOursHaveTimeToStoreWhatTheyDid(t *testing.T) {
	inv, look := clocked(t, newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"))
	look(0)
	if got := look(5 * time.Minute); len(got) != 1 {
		t.Fatalf("while it stores cut are %q", got)
	}
	ends := func(name string) {
		inv.loses(t, inv.pods, newPod("s", name, ""))
		inv.loses(t, inv.claims, resourceClaim("s", name))
	}
	ends("sluice-op-2")
	look(5*time.Minute + time.Second)
	if got := look(5*time.Minute + 50*time.Second); len(got) != 1 {
		t.Fatalf("it is not kept for who waits: %q", got)
	}
	if got := look(7 * time.Minute); len(got) != 0 {
		t.Errorf("it is kept for ever: %q", got)
	}
}
