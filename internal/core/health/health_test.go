package health

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

const now = quantity.Instant(1_000_000 * time.Second)

// TestWhatXidsMean for the instance that the driver named and for the others of the card: whether what runs ends, and whether the slice is
// closed.
func TestWhatXidsMean(t *testing.T) {
	type of struct{ closed, ends, brief bool }
	gone, drained, none := of{closed: true, ends: true}, of{closed: true}, of{}
	for _, c := range []struct {
		xids         []uint32
		here, beside of
	}{
		{[]uint32{46, 62, 79, 95, 110, 119, 120, 140, 143, 158}, gone, gone},
		{[]uint32{48, 171, 172}, gone, drained},
		{[]uint32{64, 74, 136, 155, 156}, drained, drained},
		{[]uint32{94}, of{true, true, true}, none},
		// the device plugin's list of application errors
		{[]uint32{13, 31, 43, 45, 68, 109}, none, none},
		// RESTART_APP, IGNORE, the driver's word, unknown
		{[]uint32{0, 8, 32, 37, 39, 63, 69, 92, 93, 106, 137, 144, 154, 160, 999}, none, none},
	} {
		for _, xid := range c.xids {
			for here, want := range map[bool]of{true: c.here, false: c.beside} {
				f, closed := Of(now, xid, here, "boot")
				if got := (of{closed, closed && f.Ends, closed && f.Brief}); got != want {
					t.Errorf("Xid %d, here %v: %+v, want %+v", xid, here, got, want)
				}
				if closed && (f.Text != Describe(xid) || f.Cause != ByXid || f.Life != "boot" || f.Since != now) {
					t.Errorf("Xid %d: %+v", xid, f)
				}
			}
		}
	}
}

func TestTheWorstStateDecides(t *testing.T) {
	if _, bad := Worst(now, nil); bad {
		t.Error("nothing is wrong")
	}
	for _, c := range []struct {
		states []State
		text   string
		ends   bool
	}{
		{[]State{{RowsPending, "rows"}, {NeedsDrain, "drain"}}, "rows", false},
		{[]State{{RowsPending, "rows"}, {NeedsReset, "reset"}, {Lost, "lost"}}, "reset", true},
		{[]State{{Closed, "taint"}}, "taint", false},
		{[]State{{Closed, "taint"}, {Evicted, "evicts"}}, "evicts", true},
		{[]State{{RowsFailed, "failed"}}, "failed", false},
	} {
		f, bad := Worst(now, c.states)
		if !bad || f.Text != c.text || f.Ends != c.ends || f.Since != now {
			t.Errorf("%+v: %+v", c.states, f)
		}
	}
}

// TestWhenAFaultIsOver: of a state at once; of an Xid not within a minute, and then by the driver's word or since the machine was started
// again.
func TestWhenAFaultIsOver(t *testing.T) {
	xid, _ := Of(now, 119, true, "boot 1")
	brief, _ := Of(now, 94, true, "boot 1")
	state, _ := Worst(now, []State{{Lost, "lost"}})
	told, silent := Look{Told: true}, Look{}
	for name, c := range map[string]struct {
		f        Fault
		after    time.Duration
		look     Look
		life     string
		relapses int
		over     bool
	}{
		"a state is said no more":                {state, 0, silent, "boot 1", 0, true},
		"another state is":                       {state, time.Hour, Look{States: []State{{RowsPending, ""}}}, "boot 1", 0, false},
		"the driver needs nothing, too soon":     {xid, 59 * time.Second, told, "boot 1", 0, false},
		"the driver needs nothing":               {xid, time.Minute, told, "boot 1", 0, true},
		"the driver needs something":             {xid, time.Hour, Look{Told: true, States: []State{{NeedsReset, ""}}}, "boot 1", 0, false},
		"a driver that does not say":             {xid, 1000 * time.Hour, silent, "boot 1", 0, false},
		"the machine was started again":          {xid, time.Second, silent, "boot 2", 0, true},
		"nobody knows whether it was":            {xid, time.Hour, silent, "", 0, false},
		"contained, too soon":                    {brief, 59 * time.Second, silent, "boot 1", 0, false},
		"contained":                              {brief, time.Minute, silent, "boot 1", 0, true},
		"contained for the fourth time, early":   {brief, 7 * time.Minute, silent, "boot 1", 3, false},
		"contained for the fourth time":          {brief, 8 * time.Minute, silent, "boot 1", 3, true},
		"contained for the hundredth time":       {brief, 64 * time.Minute, silent, "boot 1", 99, true},
		"contained for the hundredth time, soon": {brief, 63 * time.Minute, silent, "boot 1", 99, false},
	} {
		if why, _ := c.f.Over(now.Add(c.after), &c.look, c.life, c.relapses); (why != "") != c.over {
			t.Errorf("%s: over %q", name, why)
		}
	}
}

func TestNames(t *testing.T) {
	for c := ByXid; c < Causes; c++ {
		if c.String() == "" || c.String() == "unknown" {
			t.Errorf("cause %d has no name", c)
		}
	}
	for f, want := range map[Fault]string{{Cause: ByXid, Xid: 79}: "xid-79", {Cause: ByXid, Xid: 70000}: "xid-other",
		{Cause: Lost}: "lost"} {
		if f.Name() != want {
			t.Errorf("%q, want %q", f.Name(), want)
		}
	}
	if Describe(79) != "Xid 79 (the GPU has fallen off the bus)" || Describe(13) != "Xid 13" {
		t.Errorf("%q, %q", Describe(79), Describe(13))
	}
}
