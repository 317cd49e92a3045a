package giving

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/core/status"
)

const t0 = quantity.Instant(1_000_000 * time.Second)

func after(s int) quantity.Instant { return t0.Add(time.Duration(s) * time.Second) }

// TestATakenSliceCostsWhatIsDoneSinceItsLastGain: progress that is reported again is no gain, and what is worth nothing before its end
// loses all since its start.
func TestATakenSliceCostsWhatIsDoneSinceItsLastGain(t *testing.T) {
	var g Giver
	gains, whole, over := job.Token{Seq: 1}, job.Token{Seq: 2}, job.Token{Seq: 3}
	for _, token := range []job.Token{gains, whole, over} {
		g.Report(after(10), token, 5)
		g.Report(after(30), token, 5)
	}
	g.Over(over)
	for _, c := range []struct {
		name  string
		sold  []Sold
		want  reclaim.Cost
		known bool
	}{
		{"nothing", nil, reclaim.Cost{}, false},
		{"not started", []Sold{{Token: gains, End: after(100)}}, reclaim.Cost{Left: 60 * time.Second}, true},
		{"since its gain", []Sold{{Token: gains, Since: t0, End: after(100)}},
			reclaim.Cost{Lost: 30 * time.Second, Left: 60 * time.Second}, true},
		{"since its start, which is later", []Sold{{Token: gains, Since: after(20), End: after(100)}},
			reclaim.Cost{Lost: 20 * time.Second, Left: 60 * time.Second}, true},
		{"whole", []Sold{{Token: whole, Since: t0, End: after(100), Whole: true}},
			reclaim.Cost{Lost: 40 * time.Second, Left: 60 * time.Second}, true},
		{"of a token that was over", []Sold{{Token: over, Since: t0, End: after(100)}},
			reclaim.Cost{Lost: 40 * time.Second, Left: 60 * time.Second}, true},
		{"past its end", []Sold{{Token: gains, Since: t0, End: after(20)}}, reclaim.Cost{Lost: 30 * time.Second}, true},
		{"two, without an end", []Sold{{Token: gains, Since: t0, End: quantity.Never},
			{Token: whole, Since: t0, End: quantity.Never, Whole: true}},
			reclaim.Cost{Lost: 70 * time.Second, Left: mostLeft}, true},
	} {
		if got, known := g.loss(after(40), c.sold); got != c.want || known != c.known {
			t.Errorf("%s: %+v, %v; want %+v, %v", c.name, got, known, c.want, c.known)
		}
	}
}

// TestADecisionWaitsForMoreAndUntilItIsKnownWhatRuns: what comes later does not put it off.
func TestADecisionWaitsForMoreAndUntilItIsKnownWhatRuns(t *testing.T) {
	var g Giver
	g.Hear(t0, &protocol.Wishes{Lost: []string{"m"}})
	g.Hear(t0.Add(Gathers/2), &protocol.Wishes{Lost: []string{"m"}})
	if g.Due() != t0.Add(Gathers) {
		t.Errorf("due at %v, want %v", g.Due(), t0.Add(Gathers))
	}
	asked := func(job.SliceID) []Sold { t.Error("it decides, and nobody knows what runs"); return nil }
	keep := func(job.SliceID, []protocol.Reservation) { t.Error("it keeps a slice that nobody wishes for") }
	if g.Decide(after(1), Node{Sold: asked, Keep: keep}); g.Due() != after(1).Add(blind) {
		t.Errorf("due at %v, want %v", g.Due(), after(1).Add(blind))
	}
	if g.Decide(after(2), Node{Confirmed: true, Sold: asked, Keep: keep}); g.Due() != 0 {
		t.Errorf("due at %v, and there are no wishes", g.Due())
	}
}

// TestHowLongAHostWaitedForWhatSubjobsHad: from when its wish was heard until all that ended for it is gone, once for each; also where it
// has its devices before that was seen.
func TestHowLongAHostWaitedForWhatSubjobsHad(t *testing.T) {
	machine := func(ours ...job.SliceID) reclaim.Machine {
		m := reclaim.Machine{Name: "m", Resources: []reclaim.Resource{{Name: "gpu", N: 2, Slices: []job.SliceID{"a", "b"},
			Others: make([]quantity.Instant, 2)}}}
		for _, id := range []job.SliceID{"a", "b"} {
			m.Slices = append(m.Slices, reclaim.Slice{ID: id, Notice: time.Minute, Pool: "of-" + string(id)})
		}
		for _, id := range ours {
			m.Tenants = append(m.Tenants, reclaim.Tenant{Slice: id, Asks: []reclaim.Ask{{Resource: "gpu", N: 1}}, End: quantity.Never})
		}
		return m
	}
	wish := func(id string) reclaim.Wish {
		return reclaim.Wish{ID: reclaim.ID(id), Who: "pod x/" + id + ", which waits for it", Equiv: reclaim.Equiv{Owner: id}, Since: t0,
			Asks: []reclaim.Ask{{Resource: "gpu", N: 1}}}
	}
	node := Node{Confirmed: true, Keep: func(job.SliceID, []protocol.Reservation) {}, Sold: func(id job.SliceID) []Sold {
		return []Sold{{Token: job.Token{Seq: uint64(id[0])}, Job: "j-" + job.ID(id), Since: t0, End: after(1000)}}
	}}
	var g Giver
	step := func(s int, b *protocol.Wishes) {
		g.Hear(after(s), b)
		g.Decide(after(s), node)
	}
	step(0, &protocol.Wishes{Machines: []reclaim.Machine{machine("a", "b")}, Wishes: []reclaim.Wish{wish("p"), wish("q")}})
	if got := g.Waits(0); got != nil {
		t.Errorf("over are %+v", got)
	}
	step(3, &protocol.Wishes{Wishes: []reclaim.Wish{wish("p")}})
	step(5, &protocol.Wishes{Machines: []reclaim.Machine{machine("b")}})
	step(6, &protocol.Wishes{Machines: []reclaim.Machine{machine("b")}})
	step(7, &protocol.Wishes{Dropped: []protocol.Dropped{{ID: "p", Served: true}, {ID: "q", Served: true}}})
	want := []status.HostWait{
		{Number: 1, Wish: "p", Who: "pod x/p", Job: "j-a", Pool: "of-a", From: t0, Until: after(5)},
		{Number: 2, Wish: "q", Who: "pod x/q", Job: "j-b", Pool: "of-b", From: t0, Until: after(7)},
	}
	if got := g.Waits(0); !slices.Equal(got, want) {
		t.Errorf("over are\n%+v, want\n%+v", got, want)
	}
	if got := g.Waits(1); !slices.Equal(got, want[1:]) {
		t.Errorf("after the first over are %+v", got)
	}
	step(8, &protocol.Wishes{Machines: []reclaim.Machine{machine("a", "b")}, Wishes: []reclaim.Wish{wish("r")}})
	step(9, &protocol.Wishes{Dropped: []protocol.Dropped{{ID: "r"}}})
	if got := g.Waits(2); got != nil {
		t.Errorf("one that gave up is over: %+v", got)
	}
	if n := len(g.waits.heard) + len(g.waits.begun); n > 0 {
		t.Errorf("%d that are gone are remembered", n)
	}
}
