package peers

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
	"sluice.dev/sluice/internal/lab/swarm/queue"
)

// line is waiting tasks by class. The one whose deadline comes first is served first; at a scheduler where tasks of one patience
// wait that is first come, first served.
type line struct {
	port swarm.Port
	// of is by class and whether they are long.
	of [2 * swarm.MaxClasses]queue.Ring[swarm.TaskID]
	n  int
}

// newLine makes an empty one.
func newLine(port swarm.Port) *line { return &line{port: port} }

func (l *line) ring(t *swarm.Task) *queue.Ring[swarm.TaskID] {
	i := 2 * int(t.Class)
	if t.Long {
		i++
	}
	return &l.of[i]
}

// Put adds a task at the end of its class.
func (l *line) Put(t swarm.Task) {
	l.n++
	l.ring(&t).Put(t.ID)
}

// PutBack adds one that had been taken in front of its class.
func (l *line) PutBack(t swarm.Task) {
	l.n++
	l.ring(&t).PutBack(t.ID)
}

// Len is how many wait, those whose deadline has passed unseen among them.
func (l *line) Len() int { return l.n }

// Take removes the task with the first deadline among those of classes that fit; ok is false if there is none.
func (l *line) Take(now quantity.Instant, fits func(class uint8) bool) (best swarm.Task, ok bool) {
	if l.n == 0 {
		return best, false
	}
	from := -1
	for i := range l.of {
		if l.of[i].Len() == 0 || !fits(uint8(i/2)) {
			continue
		}
		t, waits := l.head(now, i)
		if waits && (from < 0 || t.Deadline < best.Deadline || t.Deadline == best.Deadline && t.Arrived < best.Arrived) {
			best, from = t, i
		}
	}
	if from < 0 {
		return best, false
	}
	l.of[from].Take()
	l.n--
	return best, true
}

// head is the first of a ring whose deadline has not passed.
func (l *line) head(now quantity.Instant, i int) (swarm.Task, bool) {
	for r := &l.of[i]; r.Len() > 0; {
		if t, ok := l.port.Task(r.First()); ok && t.Deadline > now {
			return t, true
		}
		r.Take()
		l.n--
	}
	return swarm.Task{}, false
}

// look is how far down its queue a node looks for what fits.
const look = 16
