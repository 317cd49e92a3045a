package ranked

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// WFP3 is WFP3 of Tang, Lan, Desai and Buettner, "Fault-aware, utility-based job scheduling on Blue Gene/P systems"
// (Cluster 2009), with EASY's reservation for the first that does not fit: the greatest of
//
//	(wait / run)^3 x devices
//
// goes first, with the time that a task has waited and its declared run time, on the class where that is shortest. It favours
// short, old and wide tasks, and nobody waits for ever. Scores change with time, and are found anew in every plan.
func WFP3() planner.Kind {
	return Kind("wfp3", "by (wait / declared run time)^3 x devices, with EASY's reservation (Tang et al., Cluster'09)", wfp3Rule)
}

func wfp3Rule(c planner.Cluster) Rule {
	roots := []int64{0} // of all numbers of devices that a task can have
	for _, n := range c.Nodes {
		for range n.Devices {
			roots = append(roots, cubeRoot(int64(len(roots))))
		}
	}
	return Rule{Ages: true, Keeps: true, First: func(now quantity.Instant, e *book.Entry) int64 {
		return wfp3Rank(now, e, roots[e.Task.Devices])
	}}
}

// wfp3Rank is the cube root of the score, which has the same order, in negative billionths: wait / run x root, the cube root of the
// devices in millionths. A run time counts as a second at least, and one that nobody knows is without end.
func wfp3Rank(now quantity.Instant, e *book.Entry, root int64) int64 {
	run := e.Shortest()
	if run == book.Unknown {
		return 0
	}
	return -quantity.MulDiv(int64(now.Sub(e.Since)), root*1000, max(int64(time.Second), run))
}

// cubeRoot in millionths, rounded down.
func cubeRoot(n int64) int64 {
	root := int64(0)
	for bit := int64(1) << 30; bit > 0; bit >>= 1 {
		if r := root | bit; r*r <= quantity.MulDiv(n, 1e18, r) { // r^3 <= n 10^18
			root = r
		}
	}
	return root
}
