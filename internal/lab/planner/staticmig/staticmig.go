// Package staticmig is what a cluster with a fixed MIG layout does: a task takes the smallest class, by memory, that holds
// it and has room; of two with the same memory the one of less weight. If none has room it waits for that class or a
// larger one, first-come with skipping. It is the static partition that MISO (SoCC'22) and others compare with, and it
// looks at no run time.
package staticmig

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/greedy"
)

// Kind is the kind. It serves no live cluster, whose slices the market sells whatever their layout.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "staticmig",
		Summary: "a fixed MIG layout with best fit: the smallest free class that holds the task, first-come with skipping",
		New: func(o planner.Options) (planner.Planner, error) {
			rank := rankBySize(o.Cluster.Classes)
			p, err := greedy.New(o, func(_ *book.Entry, class int) int64 { return rank[class] })
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}

// rankBySize numbers classes from the smallest up.
func rankBySize(classes []planner.Class) []int64 {
	rank := make([]int64, len(classes))
	for i, a := range classes {
		for j, b := range classes {
			if b.Memory < a.Memory || b.Memory == a.Memory && (b.Weight < a.Weight || b.Weight == a.Weight && j < i) {
				rank[i]++
			}
		}
	}
	return rank
}
