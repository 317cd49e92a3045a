package auction

import (
	"testing"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/throughput"
)

// TestWhoBidsByTheIndexNeedsFewToBeAsked: the audience of an objective that is weighed by its index is small, and of none that says its
// own.
func TestWhoBidsByTheIndexNeedsFewToBeAsked(t *testing.T) {
	for _, c := range []struct {
		p    policy.Policy
		set  int
		want int
	}{{shortest.Policy{}, 0, 64}, {shortest.Policy{}, 256, 256}, {throughput.Policy{}, 0, 64}, {fifo.Policy{}, 0, 256}} {
		if got := (Config{Audience: c.set}).Under(c.p).Audience; got != c.want {
			t.Errorf("%s, %d said: an audience of %d, want %d", c.p.Name(), c.set, got, c.want)
		}
	}
}
