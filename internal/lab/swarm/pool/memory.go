package pool

import "sluice.dev/sluice/internal/lab/swarm"

// Memory is what nodes remember of the tasks that they have started, so that an order that comes twice is answered twice and followed
// once. It is kept by task: only the node that has started one looks at its place.
type Memory struct{ of []started }

type started struct {
	task swarm.TaskID
	node int32
}

// Start starts a task at the node here, unless that has been done. It is false if the task does not run and has not run there.
func (m *Memory) Start(port swarm.Port, node int32, t swarm.TaskID) bool {
	for len(m.of) <= t.Slot() {
		m.of = append(m.of, started{})
	}
	x := &m.of[t.Slot()]
	if *x == (started{t, node}) {
		return true
	}
	if port.Start(node, t) != swarm.Started {
		return false
	}
	*x = started{t, node}
	return true
}
