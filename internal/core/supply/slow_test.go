package supply

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestAHostThatStartsSeldom: a host starts what waits each half minute, and has gaps that end in a reservation. Whatever its passes' phase
// to the gaps is, what was learned in the first gaps serves in the later ones: most of them is pilots' time.
func TestAHostThatStartsSeldom(t *testing.T) {
	const gap, gaps, first = 20*time.Minute + 15*time.Second, 8, 2
	for phase := time.Duration(0); phase < 30*time.Second; phase += 4 * time.Second {
		h := &hosted{t: t, r: rand.New(rand.NewPCG(1, 1)), now: noon, seen: noon, pool: Pool{
			Name: "p", Most: 2, Lengths: []time.Duration{2 * time.Minute, 30 * time.Minute}, Step: time.Minute,
			Idle: 2 * time.Minute, Start: 30 * time.Second, HandOver: 20 * time.Second, Slices: make([]Slice, 1),
		}}
		m := &machine{}
		for i := range gaps { // the rest of each hour is others'
			from := noon.Add(time.Duration(i)*time.Hour + gap + phase)
			m.busy = append(m.busy, [2]quantity.Instant{from, noon.Add(time.Duration(i+1)*time.Hour + phase)})
		}
		m.busy[gaps-1][1] = quantity.Never
		h.machines = append(h.machines, m)
		work := Demand{Job: "j", Left: 1000 * time.Hour, Least: 30 * time.Second, Costs: 2 * time.Second}
		h.jobs = []*task{{Demand: work, width: 1, due: noon}}
		var learned, share time.Duration
		pass := noon
		for end := noon.Add(gaps * time.Hour); h.now < end; h.now = h.now.Add(tick) {
			if h.now == noon.Add(first*time.Hour) {
				learned = h.lived
			}
			h.pass = quantity.Never // live looks no further
			if h.now >= pass {
				h.pass, pass = h.now, pass.Add(30*time.Second)
			}
			h.live()
			h.sell()
			o := Decide(h.now, h.sight(), h.demand(), h.slots())
			h.obey(&o)
		}
		share = (h.lived - learned) * 100 / ((gaps - first) * gap)
		t.Logf("passes %v before the gaps: %d%% of the later gaps is pilots' time; %+v", phase, share, h.count)
		if share < 90 {
			t.Errorf("passes %v before the gaps: %d%% of the later gaps is pilots' time, want 90%%", phase, share)
		}
	}
}
