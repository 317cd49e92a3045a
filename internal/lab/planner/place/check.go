package place

import (
	"fmt"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
)

// Check returns what is wrong with options, all of it at once, as an error of kind Invalid.
func Check(o planner.Options) error {
	var bad []string
	add := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	c := o.Cluster
	if len(c.Nodes) == 0 {
		add("cluster: there is no node; give at least one")
	}
	if len(c.Classes) > planner.MaxClasses {
		add("cluster: %d classes of devices; merge some, there may be %d", len(c.Classes), planner.MaxClasses)
	}
	for i, class := range c.Classes {
		if class.Weight < 0 || class.Memory < 0 {
			add("class %d (%s): weight %d and memory %d must not be negative", i, class.Name, class.Weight, class.Memory)
		}
	}
	for i, n := range c.Nodes {
		if n.CPU < 0 || n.Memory < 0 {
			add("node %d (%s): CPU %d and memory %d must not be negative", i, n.Name, n.CPU, n.Memory)
		}
		for j, class := range n.Devices {
			if int(class) >= len(c.Classes) {
				add("node %d (%s): device %d is of class %d; there are %d classes", i, n.Name, j, class, len(c.Classes))
				break
			}
		}
	}
	bad = append(bad, checkRanks(o.Ranks, len(c.Nodes))...)
	if bad == nil {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "%s", strings.Join(bad, "\n"))
}

// checkRanks wants every number below n once, or no ranks at all.
func checkRanks(ranks []int32, n int) []string {
	if ranks == nil {
		return nil
	}
	if len(ranks) != n {
		return []string{fmt.Sprintf("ranks: %d ranks for %d nodes; give each node one", len(ranks), n)}
	}
	var bad []string
	seen := make([]bool, n)
	for node, rank := range ranks {
		switch {
		case rank < 0 || int(rank) >= n:
			bad = append(bad, fmt.Sprintf("ranks: node %d has rank %d; ranks go from 0 to %d", node, rank, n-1))
		case seen[rank]:
			bad = append(bad, fmt.Sprintf("ranks: node %d has rank %d, which another node has too", node, rank))
		default:
			seen[rank] = true
		}
	}
	return bad
}
