package place

import "sluice.dev/sluice/internal/lab/planner"

// Best is the highest score a Scorer gives.
const Best = 100

// Scorer says how good a place is. It is asked only where the task fits, and depends on nothing but its arguments.
type Scorer interface {
	// Score of putting t on pool p of node n, 0 to Best; p is nil for a task without devices. For a share of a device, level
	// is the index of the level whose first device it takes; otherwise it is not looked at.
	Score(n *Node, p *Pool, t *planner.Task) (score, level int)
}

// rater scores a place for a piece of a task, in the present cluster.
type rater struct {
	scorer Scorer // nil: all places are alike
	state  *State
	// order is the nodes by rank.
	order []int32
	// tier is added to the score of a place on a device of a class.
	tier [planner.MaxClasses]int16
}

// rating is the best way to put a task on a node.
type rating struct {
	value int16
	pool  int
	level int
}

// rate looks for the best pool of a node for t. Ties go to the smaller devices.
func (r *rater) rate(t *planner.Task, rank int) rating {
	n := &r.state.Nodes[r.order[rank]]
	best := rating{value: none}
	if !n.Host(t) {
		return best
	}
	if t.Devices == 0 {
		score, _ := r.score(n, nil, t)
		return rating{value: int16(score)}
	}
	for i := range n.Pools {
		q := &n.Pools[i]
		if t.Classes>>q.Class&1 == 0 || !q.Room(t.Share, t.Devices) {
			continue
		}
		score, level := r.score(n, q, t)
		if value := r.tier[q.Class] + int16(score); value > best.value {
			best = rating{value, i, level}
		}
	}
	return best
}

func (r *rater) score(n *Node, q *Pool, t *planner.Task) (score, level int) {
	if r.scorer == nil {
		return 0, 0
	}
	return r.scorer.Score(n, q, t)
}

// LeastLevel is the level of a pool that a share takes where the least left is best; 0 for all other tasks.
func LeastLevel(p *Pool, t *planner.Task) int {
	if p == nil || Size(t) > 0 {
		return 0
	}
	return p.Least(t.Share)
}
