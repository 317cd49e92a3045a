package zone_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/lateness"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestTheLateAreOverWithinTheBound is the bound of adr 0035 in small worlds in which short jobs come without end and the shortest is
// first: long jobs, wide ones and gangs are over within what those before them in turn take of the budget, and as many longest leases as
// these and they themselves are given.
func TestTheLateAreOverWithinTheBound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		whole := func(name string, least, most int) int { return rapid.IntRange(least, most).Draw(rt, name) }
		n := whole("slices", 1, 2)
		w := newWorld(rt, []int64{512, 1024}[2-n:]...)
		w.config.Starvation = starvation.Limit{
			After: time.Duration(whole("after", 40, 150)) * time.Second, Slowdown: int64(whole("slowdown", 1, 2)),
			Share: int64(whole("share", 150, 500)), Places: whole("places", 1, 2),
		}
		w.config.Policy, w.config.Rigid = shortest.Policy{}, rapid.SampledFrom([]backfill.Discipline{{Overtake: true}, byDefault(rt)}).Draw(
			rt, "rigid")
		if rapid.Bool().Draw(rt, "jasda") {
			w.config.Market = &auction.Config{Payment: auction.Free}
		}
		w.z = w.make()
		var long []*job.Spec
		for i := range whole("long", 1, 3) {
			name := fmt.Sprintf("long%d", i)
			switch whole("kind", 0, 2) {
			case 0:
				long = append(long, steps(t, name, int64(whole("total", 40, 150)), 10, 300))
			case 1:
				long = append(long, rigid(t, name, time.Duration(whole("walltime", 40, 120))*time.Second,
					int64(300+600*whole("wide", 0, 1)), 1))
			default:
				long = append(long, rigid(t, name, time.Duration(whole("walltime", 30, 90))*time.Second, 300, n))
			}
		}
		wides := n > 1 && rapid.Bool().Draw(rt, "wides") // every other short job is a gang
		came, ended := map[job.ID]quantity.Instant{}, map[job.ID]quantity.Instant{}
		submit := func(s *job.Spec) { came[s.Name] = w.now; w.submit(s) }
		for len(ended) < len(long) {
			if w.now > quantity.Instant(40*time.Hour) {
				rt.Fatalf("after %v only %v are over", w.now, ended)
			}
			for len(w.adopted)-len(w.closed) < len(long)+5 {
				if name := fmt.Sprintf("short%05d", len(w.adopted)); wides && len(w.adopted)%2 == 0 {
					submit(rigid(t, name, 20*time.Second, 100, n))
				} else {
					submit(items(t, name, 20, 100, 1))
				}
			}
			if i := len(came) / 20; i <= len(long) && i > 0 && came[long[i-1].Name] == 0 {
				submit(long[i-1])
			}
			w.tick()
			for _, s := range long {
				if _, over := w.closed[s.Name]; over && ended[s.Name] == 0 {
					ended[s.Name] = w.now
				}
			}
		}
		due := func(id job.ID) quantity.Instant {
			return w.config.Starvation.Due(came[id], lateness.Length(w.adopted[id], w.config.Horizon))
		}
		longest := time.Duration(0)
		for _, f := range w.claims() {
			longest = max(longest, f.End.Sub(f.Start))
		}
		longest += 10 * time.Second // for messages
		for _, s := range long {
			cost, leases := time.Duration(0), time.Duration(2*len(long)+2)
			for _, f := range w.claims() {
				if f.At < due(f.Job) ||
					(lateness.Turn{Due: due(s.Name), Name: s.Name}).Before(lateness.Turn{Due: due(f.Job), Name: f.Job}) {
					continue
				}
				leases++
				if cost += f.End.Sub(f.Start); len(f.Also) > 0 {
					cost += f.End.Sub(f.Start) + 2*longest // both slices, and while they are held
				}
			}
			bound := due(s.Name).Add(cost*1000/time.Duration(w.config.Starvation.Share)/time.Duration(n) + leases*longest)
			if ended[s.Name] > bound {
				rt.Fatalf("%s came at %v, was late at %v, and over at %v: after %v", s.Name, came[s.Name], due(s.Name), ended[s.Name],
					bound)
			}
		}
	})
}

// byDefault is the discipline that is had when none is named.
func byDefault(t fataler) backfill.Discipline {
	d, err := backfill.Named(backfill.Default)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return d
}
