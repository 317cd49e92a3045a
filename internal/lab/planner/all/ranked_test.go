package all_test

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// aging is a rank that turns around as time goes by.
func aging(now quantity.Instant, e *book.Entry) int64 {
	return int64(e.Task.Devices)*7 - int64(now.Sub(e.Since))*int64(1+e.Task.ID%3)
}

// rules are one of each sort.
func rules() map[string]ranked.Rule {
	return map[string]ranked.Rule{
		"passes over":           {First: ranked.Shortest},
		"keeps":                 {First: ranked.Shortest, Keeps: true},
		"another order behind":  {First: ranked.Earliest, Behind: ranked.Shortest, Keeps: true},
		"ages":                  {First: aging, Ages: true},
		"ages and keeps":        {First: aging, Ages: true, Keeps: true},
		"many of the same rank": {First: func(_ quantity.Instant, e *book.Entry) int64 { return int64(e.Task.Devices) }, Keeps: true},
	}
}

func TestRankedConformance(t *testing.T) {
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			Run(t, ranked.Kind("x", "y", func(planner.Cluster) ranked.Rule { return rule }))
		})
	}
}

// rankOf is a rank as the definition asks for it.
func rankOf(r ranked.Rank) Rank {
	if r == nil {
		return nil
	}
	return func(now quantity.Instant, w *Waiter) int64 {
		return r(now, &book.Entry{Task: w.Task, Seq: w.Seq, Since: w.Since})
	}
}

func TestRankedAgainstDefinition(t *testing.T) {
	for name, rule := range rules() {
		t.Run(name, func(t *testing.T) {
			d := Definition{First: rankOf(rule.First), Behind: rankOf(rule.Behind), Keeps: rule.Keeps}
			rapid.Check(t, func(t *rapid.T) {
				Against(t, d, func(o planner.Options) ([]planner.Planner, error) {
					p, err := ranked.New(o, rule)
					return []planner.Planner{p}, err
				})
			})
		})
	}
}
