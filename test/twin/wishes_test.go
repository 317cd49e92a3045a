package twin_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/internal/lab/sim"
)

// wishful is an inventory that sees somebody who waits for one of its slices from a moment on.
type wishful struct {
	fixed
	after time.Duration
}

// Held is nothing: nobody is there yet.
func (wishful) Held() []inventory.Sighting { return nil }

// Watch tells once of who waits, with the machine as it is: nobody else is on it.
func (f wishful) Watch(ctx context.Context, _ func(job.SliceID, int) bool, report func(inventory.Sighting)) error {
	select {
	case <-ctx.Done():
		return nil
	case <-time.After(f.after):
	}
	m := reclaim.Machine{Name: "m", Resources: []reclaim.Resource{{Name: "gpu"}}}
	r := &m.Resources[0]
	for i := range f.fixed {
		id := f.fixed[i].ID
		r.N, r.Slices, r.Others = r.N+1, append(r.Slices, id), append(r.Others, 0)
		m.Slices = append(m.Slices, reclaim.Slice{ID: id, Notice: 20 * time.Second})
		m.Tenants = append(m.Tenants, reclaim.Tenant{Slice: id, Asks: []reclaim.Ask{{Resource: "gpu", N: 1}}, End: quantity.Never})
	}
	slices.SortFunc(m.Slices, func(a, b reclaim.Slice) int { return cmp.Compare(a.ID, b.ID) })
	w := reclaim.Wish{ID: "p", Who: "pod a/p, which waits for it", Equiv: reclaim.Equiv{Owner: "p"},
		Asks: []reclaim.Ask{{Resource: "gpu", N: 1}}}
	report(inventory.Sighting{Wishes: &protocol.Wishes{Machines: []reclaim.Machine{m}, Wishes: []reclaim.Wish{w}}})
	<-ctx.Done()
	return nil
}

// TestATapeGivesBackTheSame: what a live daemon gave back to who waits, its tape gives back when it is played, of the same subjob and at
// the same time; and a restart in between cuts nothing twice.
func TestATapeGivesBackTheSame(t *testing.T) {
	jobs := scenario(t)
	l := newLive(t)
	l.options = func(o *host.Options) { o.Inventory = wishful{fixed(machine("")), 30 * time.Second} }
	synctest.Test(t, func(t *testing.T) {
		if err := l.open(); err != nil {
			t.Fatal(err)
		}
		for _, a := range jobs {
			if _, err := l.host.Submit(context.Background(), a.request(), a.spec, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(35 * time.Second)
		if err := l.stop(); err != nil {
			t.Fatal(err)
		}
		runLive(t, l, nil, len(jobs))
	})
	checkOnce(t, l.facts, jobs)
	cut := truncations(l.facts)
	if len(cut) == 0 {
		t.Fatal("nothing was given back: the story shows nothing")
	}
	var played []protocol.Fact
	for back := 1; back >= 0; back-- {
		r, err := sim.Replay(l.openTape(back), l.build().Parties(), func(f *protocol.Fact) { played = append(played, *f) })
		if err != nil {
			t.Fatal(err)
		}
		if r.Compared != r.Calls || r.Calls == 0 {
			t.Errorf("%d of %d calls compared", r.Compared, r.Calls)
		}
	}
	if got := truncations(played); !slices.Equal(got, cut) {
		t.Errorf("played, cut are %v; they were %v", got, cut)
	}
}

// cutShort is a subjob whose end was moved closer for who waits.
type cutShort struct {
	token job.Token
	end   quantity.Instant
	why   string
}

func truncations(facts []protocol.Fact) (list []cutShort) {
	for _, f := range facts {
		if c, ok := f.Body.(*protocol.Truncation); ok {
			list = append(list, cutShort{f.Token, c.End, c.Text})
		}
	}
	return list
}
