package reclaim

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// nominatedWish is one for which its scheduler makes room on a machine.
func nominatedWish(id string, n int64, machine string) *Wish {
	w := wish(id, n)
	w.Nominated = machine
	return w
}

// leaves is a machine on which the subjobs of some slices are being ended by somebody else.
func leaves(m *Machine, tenants ...int) *Machine {
	for _, i := range tenants {
		m.Tenants[i].Leaving = true
	}
	return m
}

// TestWhatASchedulerFreesIsKeptForItsWish, and nothing else is stopped, whatever that would cost.
func TestWhatASchedulerFreesIsKeptForItsWish(t *testing.T) {
	blocked := nominatedWish("p", 1, "m")
	blocked.Blocked = true
	keeps := leaves(counted("m", 2, 2), 1)
	keeps.Slices = nil
	older := wish("a", 1)
	older.Since = at(-time.Hour)
	for name, c := range map[string]struct {
		machine *Machine
		wishes  []*Wish
		want    string
	}{
		"the one that leaves": {leaves(counted("m", 3, 3), 1), []*Wish{nominatedWish("p", 1, "m")},
			"m/1 for pod p"},
		"two of them": {leaves(counted("m", 3, 3), 1, 2), []*Wish{nominatedWish("p", 1, "m"), nominatedWish("q", 1, "m")},
			"m/1 for pod p\nm/2 for pod q"},
		"one leaves, one is free": {leaves(counted("m", 3, 2), 1), []*Wish{nominatedWish("p", 2, "m")},
			"m/1 for pod p\nm/2 for pod p"},
		"free there": {counted("m", 3, 2), []*Wish{nominatedWish("p", 1, "m")},
			"m/2 for pod p"},
		"before who has waited longer": {leaves(counted("m", 2, 2), 1), []*Wish{older, nominatedWish("p", 1, "m")},
			"m/1 for pod p\nm/0 for pod a\nm/0 from 30s cut for pod a"},
		"another has no scheduler that does: what leaves costs nothing": {leaves(counted("m", 2, 2), 1), []*Wish{wish("p", 1)},
			"m/1 for pod p\nm/1 from 30s cut for pod p"},
		"nobody leaves yet":            {counted("m", 2, 2), []*Wish{nominatedWish("p", 1, "m")}, ""},
		"fewer leave than it wants":    {leaves(counted("m", 3, 3), 1), []*Wish{nominatedWish("p", 2, "m")}, ""},
		"a machine that is not known":  {leaves(counted("m", 2, 2), 1), []*Wish{nominatedWish("p", 1, "x")}, ""},
		"what it wants is not known":   {leaves(counted("m", 2, 2), 1), []*Wish{blocked}, ""},
		"the slices give nothing back": {keeps, []*Wish{nominatedWish("p", 1, "m")}, ""},
		"a device that a claim may have": {leaves(board("m", 0, 1, 2, 3, 4, 5, 6), 1), []*Wish{nominatedDevice("p", "1g", "m")},
			"m/1g-1 for pod p"},
	} {
		t.Run(name, func(t *testing.T) {
			k := New()
			k.Hear(c.machine)
			for _, w := range c.wishes {
				k.Wish(w)
			}
			k.Decide(at(0), nil)
			if got := told(k, "m"); !same(got, c.want) {
				t.Errorf("held are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// nominatedDevice is the same for one device of a profile.
func nominatedDevice(id, profile, machine string) *Wish {
	w := deviceWish(id, 1, profile)
	w.Nominated = machine
	return w
}

// TestAPreemptionIsWaitedFor: what leaves may be seen after the nomination. If nothing does the wish is like any other.
func TestAPreemptionIsWaitedFor(t *testing.T) {
	k := New()
	k.Hear(counted("m", 1, 1))
	k.Hear(counted("n", 1, 1))
	k.Wish(nominatedWish("p", 1, "m"))
	for _, d := range []time.Duration{0, time.Second, 11 * time.Second} {
		if next := k.Decide(at(d), nil).Again; next != at(d+time.Second) {
			t.Errorf("it is looked at again at %v", next)
		}
		if w := k.Why(at(d), "p"); w.Verdict != Preempting || w.Machine != "m" || w.Until != at(12*time.Second) {
			t.Fatalf("after %v it is %+v", d, w)
		}
	}
	k.Hear(leaves(counted("m", 1, 1), 0))
	k.Decide(at(11*time.Second), nil)
	expect(t, k, "m/0 for pod p\nm/0 for pod p", "m", "n")
	k.Hear(counted("m", 1, 0)) // it is gone: its slice is not sold before the wish has it
	k.Decide(at(12*time.Second), nil)
	k.Decide(at(30*time.Second), nil)
	expect(t, k, "m/0 for pod p\nm/0 for pod p", "m", "n")
	k.Withdraw("p", true)
	k.Decide(at(31*time.Second), nil)
	expect(t, k, "", "m", "n")

	k.Hear(counted("m", 1, 1))
	k.Wish(nominatedWish("q", 1, "m"))
	k.Decide(at(40*time.Second), nil)
	k.Wish(nominatedWish("q", 1, "n")) // it is nominated elsewhere, and the time begins anew
	k.Decide(at(50*time.Second), nil)
	k.Decide(at(61*time.Second), nil)
	expect(t, k, "", "m", "n")
	k.Decide(at(62*time.Second), nil)
	if got := k.Places(); len(got) != 1 || len(got[0].Stops) != 1 {
		t.Errorf("nothing comes of its nomination, and kept are %v", got)
	}
}

// TestANominationMovesWhatIsKept: room that is free elsewhere is not what its scheduler means.
func TestANominationMovesWhatIsKept(t *testing.T) {
	k := New()
	k.Hear(counted("m", 2, 1))
	k.Hear(leaves(counted("n", 1, 1), 0))
	k.Wish(wish("p", 1))
	k.Decide(at(0), nil)
	expect(t, k, "m/1 for pod p", "m", "n")
	k.Wish(nominatedWish("p", 1, "n"))
	k.Decide(at(time.Second), nil)
	expect(t, k, "n/0 for pod p\nn/0 for pod p", "m", "n")
}

// TestANominationThatGoesTakesWhatWasKeptAlong: what leaves is kept where the scheduler means to put its Pod, and nowhere else.
func TestANominationThatGoesTakesWhatWasKeptAlong(t *testing.T) {
	k := New()
	k.Hear(leaves(counted("m", 1, 1), 0))
	k.Hear(leaves(counted("n", 1, 1), 0))
	k.Wish(nominatedWish("p", 1, "m"))
	k.Decide(at(0), nil)
	expect(t, k, "m/0 for pod p\nm/0 for pod p", "m", "n")
	k.Wish(nominatedWish("p", 1, "n"))
	k.Decide(at(time.Second), nil)
	expect(t, k, "n/0 for pod p\nn/0 for pod p", "m", "n")
	k.Wish(wish("p", 1))
	k.Decide(at(2*time.Second), nil)
	if got := k.Places(); len(got) != 1 || got[0].preempted {
		t.Errorf("kept are %+v", got)
	}
}

// TestWhatASchedulerFreesIsNotKeptForEver: a subjob that never ends, or another that is quicker, and the wish is like any other.
func TestWhatASchedulerFreesIsNotKeptForEver(t *testing.T) {
	k := New()
	k.Hear(leaves(counted("m", 1, 1), 0))
	k.Wish(nominatedWish("p", 1, "m"))
	k.Decide(at(0), nil)
	k.Decide(at(stopTimeout), nil)
	if got := k.Places(); len(got) != 1 || !got[0].preempted {
		t.Fatalf("after %v kept are %+v", stopTimeout, got)
	}
	k.Decide(at(stopTimeout+time.Second), nil)
	if got := k.Places(); len(got) > 0 && got[0].preempted {
		t.Errorf("after more than %v kept is %+v", stopTimeout, got[0])
	}
	k = New()
	k.Hear(leaves(counted("m", 1, 1), 0))
	k.Hear(counted("n", 1, 0))
	k.Wish(nominatedWish("p", 1, "m"))
	k.Decide(at(0), nil)
	m := counted("m", 1, 0)
	m.Tenants = []Tenant{{Asks: []Ask{{"gpu", 1}}, End: quantity.Never}}
	m.Resources[0].Others = []quantity.Instant{quantity.Never}
	k.Hear(m)
	k.Decide(at(time.Second), nil)
	expect(t, k, "", "m")
}

// stranger is a machine with a tenant that is not ours on one more device, and is being ended.
func stranger(m *Machine, end time.Duration) *Machine {
	m.Resources[0].N++
	m.Resources[0].Others = append(m.Resources[0].Others, at(end))
	m.Tenants = append(m.Tenants, Tenant{Asks: []Ask{{"gpu", 1}}, Began: at(-time.Hour), End: at(end), Leaving: true})
	return m
}

// TestASchedulerWaitsForStrangersToo: as long as one of them has its grace nothing of ours is stopped anywhere for the Pod that is to have
// its place, and what of ours left for it is kept; nobody is blamed for that.
func TestASchedulerWaitsForStrangersToo(t *testing.T) {
	k := New()
	k.Hear(stranger(leaves(counted("m", 1, 1), 0), 5*time.Minute))
	k.Hear(counted("n", 2, 2))
	k.Wish(nominatedWish("p", 2, "m"))
	for d := time.Duration(0); d < 5*time.Minute; d += 10 * time.Second {
		if k.Decide(at(d), nil); len(k.Places()) > 0 {
			t.Fatalf("after %v kept are %v", d, k.Places())
		}
	}
	k.Hear(counted("m", 2, 0))
	k.Decide(at(5*time.Minute), nil)
	expect(t, k, "m/0 for pod p\nm/1 for pod p", "m", "n")

	k = New()
	k.Hear(stranger(leaves(counted("m", 1, 1), 0), 5*time.Minute))
	k.Wish(nominatedWish("q", 1, "m")) // it wants processors, too
	k.Decide(at(0), nil)
	k.Hear(stranger(counted("m", 1, 0), 5*time.Minute))
	for d := time.Second; d < 5*time.Minute; d += 10 * time.Second {
		k.Decide(at(d), nil)
		expect(t, k, "m/0 for pod q\nm/0 for pod q", "m")
	}
	k.Wish(wish("q", 1)) // nothing came of it
	k.Decide(at(5*time.Minute), nil)
	k.Decide(at(7*time.Minute), nil)
	if w := k.Why(at(7*time.Minute), "q"); len(k.backoffs)+len(k.unused) > 0 {
		t.Errorf("it does without for what it did not use: %+v", w)
	}
}

// TestOneThatIsStuckCostsWhatItWould: a subjob that should be gone by now is no better a place than another.
func TestOneThatIsStuckCostsWhatItWould(t *testing.T) {
	m := leaves(counted("m", 2, 2), 0)
	m.Tenants[0].End = at(10 * time.Second)
	costs := func(id job.SliceID) (Cost, bool) {
		return Cost{Lost: map[job.SliceID]time.Duration{"m/0": time.Hour}[id]}, true
	}
	for d, want := range map[time.Duration]job.SliceID{0: "m/0", 30 * time.Second: "m/0", 2 * time.Minute: "m/1"} {
		k := New()
		k.Hear(m)
		k.Wish(wish("p", 1))
		k.Decide(at(d), costs)
		if got := k.Places(); len(got) != 1 || got[0].Stops[0] != want {
			t.Errorf("after %v it is %+v, want %s", d, got, want)
		}
	}
}
