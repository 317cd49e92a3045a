package peers

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// rate is what so many gates place in a second in so many zones, of much more than they could.
func rate(t *testing.T, gates, zones int) float64 {
	o := Bare(TwoLevel(), zones, 400/zones, 8, 900_000)
	o.Gates, o.Decision, o.Network.Delay, o.Flow.Patience = gates, 5*time.Millisecond, time.Millisecond, time.Second
	o.From, o.Until = quantity.Instant(5*time.Second), quantity.Instant(15*time.Second)
	c := Play(t, o)
	return Rate(&c)
}

// TestOffersLock: what is offered to one scheduler nobody else can use (Omega, EuroSys 2013, section 3.3, of Mesos: "pessimistic
// locking"). With one zone more schedulers decide no more; with a zone for each they decide that much more.
func TestOffersLock(t *testing.T) {
	alone, crowd, apart := rate(t, 1, 1), rate(t, 4, 1), rate(t, 4, 8)
	t.Logf("one gate %.0f a second, four in one zone %.0f, four in eight zones %.0f", alone, crowd, apart)
	if alone > 200 || alone < 180 {
		t.Errorf("one gate places %.0f a second, want nearly one in 5 ms", alone)
	}
	if crowd > 1.1*alone {
		t.Errorf("four gates share the offers of a zone and place %.0f a second, alone one places %.0f", crowd, alone)
	}
	if apart < 3.5*alone {
		t.Errorf("four gates with a zone each place %.0f a second, want nearly four times %.0f", apart, alone)
	}
}
