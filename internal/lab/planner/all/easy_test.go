package all_test

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/easy"
)

// TestIndexedEqualsPlain drives the planner, its plain pass and the definition of EASY through the same life. What makes every plan of the
// second one a plain pass is a task without devices that never ends: counting devices does not answer whether that fits.
func TestIndexedEqualsPlain(t *testing.T) {
	byArrival := func(_ quantity.Instant, w *Waiter) int64 { return w.Seq }
	rapid.Check(t, func(t *rapid.T) {
		Against(t, Definition{First: byArrival, Keeps: true}, func(o planner.Options) ([]planner.Planner, error) {
			fast, err := easy.Kind().New(o)
			if err != nil {
				return nil, err
			}
			plain, err := easy.Kind().New(o)
			if err != nil {
				return nil, err
			}
			var out planner.Out
			plain.Arrive(0, planner.Task{ID: 9999, Share: planner.Whole, Classes: 1})
			if plain.Plan(0, &out); len(out.Decisions) != 1 || out.Decisions[0].Verb != planner.Start {
				t.Fatalf("a task without devices does not start: %+v", out)
			}
			return []planner.Planner{fast, plain}, nil
		})
	})
}
