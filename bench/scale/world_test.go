package main

import (
	"context"
	"testing"
)

// TestWorldsAreBusy: jobs come and go under both mechanisms, and all three actors have steps that count. A world in which calls are
// refused or nothing is sold would measure something else.
func TestWorldsAreBusy(t *testing.T) {
	for _, q := range []question{
		{Kind: "world", Waiting: 60, Slices: 8, Sold: 120},
		{Kind: "world", Waiting: 60, Slices: 8, Sold: 120, JASDA: true},
	} {
		r := runWorld(t.Context(), q)
		if r.GaveUp != "" || r.Sold < q.Sold || r.Gate.Steps == 0 || r.Zone.Steps < q.Sold || r.Node.Steps < q.Sold {
			t.Errorf("%+v: %+v", q, r)
		}
	}
	q := question{Kind: "node", Slices: 12, Sold: 60}
	if r := runNode(t.Context(), q); r.GaveUp != "" || r.Sold < q.Sold || r.Node.Steps < q.Sold {
		t.Errorf("%+v: %+v", q, r)
	}
}

// TestAWorldIsRefusedNothing that people ask in it, but for what comes too late.
func TestAWorldIsRefusedNothing(t *testing.T) {
	w, err := newWorld(t.Context(), question{Waiting: 40, Slices: 8})
	if err == nil {
		err = w.open(t.Context())
	}
	if err == nil {
		err = w.sell(t.Context(), 200)
	}
	if err != nil {
		t.Fatal(err)
	}
	if w.submitted < 10 || w.refused > w.submitted/6 {
		t.Errorf("%d jobs were submitted, %d calls were refused, the last: %v", w.submitted, w.refused, w.refusal)
	}
}

// TestGivingUp: a world that is not there in time says so.
func TestGivingUp(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if r := runWorld(ctx, question{Waiting: 10, Slices: 4, Sold: 10}); r.GaveUp == "" {
		t.Errorf("%+v", r)
	}
}
