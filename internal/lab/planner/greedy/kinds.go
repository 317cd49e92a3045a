package greedy

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// Skip is first-come with skipping: everything that fits now starts, in the order of arrival. Among classes with
// room a task takes the one where it ends first. It never idles a device that somebody who waits could use, and lets large
// tasks wait for ever behind small ones.
func Skip() planner.Kind {
	return planner.Kind{
		Name:    "skip",
		Summary: "first-come with skipping: everything that fits now starts, in order of arrival",
		New: func(o planner.Options) (planner.Planner, error) {
			return New(o, (*book.Entry).Run)
		},
	}
}

// StaticMIG is what a cluster with a fixed MIG layout does: a task takes the smallest class, by memory, that holds
// it and has room; of two with the same memory the one of less weight. If none has room it waits for that class or a
// larger one, first-come with skipping. It is the static partition that MISO (SoCC'22) and others compare with, and it
// looks at no run time.
//
// It serves no live cluster, whose slices the market sells whatever their layout.
func StaticMIG() planner.Kind {
	return planner.Kind{
		Name:    "staticmig",
		Summary: "a fixed MIG layout with best fit: the smallest free class that holds the task, first-come with skipping",
		New: func(o planner.Options) (planner.Planner, error) {
			rank := rankBySize(o.Cluster.Classes)
			return New(o, func(_ *book.Entry, class int) int64 { return rank[class] })
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
