//go:build kubernetes

package kubernetes

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestAPlaceThatSomebodyElseHasTakenIsGivenAnew: between the end of a subjob and the scheduler's next look at the Pod that waits, a Pod that has just come may be
// faster. Who waits is given the next place then, and not left until a minute is over.
func TestAPlaceThatSomebodyElseHasTakenIsGivenAnew(t *testing.T) {
	const first, second = "w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it", "w/gpu-0-mig-3g-0 at 30s for pod a/p, which waits for it"
	c := serve(append(filled(), pod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"))...)
	o := options(c)
	o.Pools, o.Now = []Pool{migs("3g.40gb")}, func() quantity.Instant { return at(0) }
	inv := opened(t, o)
	f := follow(t, inv)
	inv.touch()
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held")
	if got := cut(inv.Held()); !slices.Equal(got, []string{first}) {
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

	if _, err := c.CoreV1().Pods("a").Create(ctx, pod("a", "q", "w", claims("d")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.ResourceV1().ResourceClaims("a").Create(ctx, resourceClaim("a", "d", allocated("w", "gpu-0-mig-3g-3", "q")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(t, func() bool { return slices.Equal(cut(inv.Held()), []string{second}) })
}
