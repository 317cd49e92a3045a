package easy

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/plannertest"
)

// TestIndexedEqualsPlain drives the planner, its plain pass and the definition of EASY through the same life.
func TestIndexedEqualsPlain(t *testing.T) {
	byArrival := func(_ quantity.Instant, w *plannertest.Waiter) int64 { return w.Seq }
	rapid.Check(t, func(t *rapid.T) {
		plannertest.Against(t, plannertest.Definition{First: byArrival, Keeps: true}, func(o planner.Options) ([]planner.Planner, error) {
			fast, err := newEasy(o)
			if err != nil {
				return nil, err
			}
			plain, err := newEasy(o)
			if err != nil {
				return nil, err
			}
			plain.plain = true
			return []planner.Planner{fast, plain}, nil
		})
	})
}
