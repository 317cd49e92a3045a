package peers

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// tasks is a port that knows tasks and nothing else.
type tasks struct {
	swarm.Port
	of map[swarm.TaskID]swarm.Task
}

// Task implements swarm.Port.
func (p tasks) Task(id swarm.TaskID) (swarm.Task, bool) {
	t, ok := p.of[id]
	return t, ok
}

// TestLine compares it with a list that is searched from end to end: of the classes that fit the first deadline is served, those that
// have passed are not.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		port := tasks{of: map[swarm.TaskID]swarm.Task{}}
		l := newLine(port)
		var now quantity.Instant
		waits := map[swarm.TaskID]bool{}
		for i := range rapid.IntRange(1, 100).Draw(t, "steps") {
			now += quantity.Instant(rapid.IntRange(1, 3).Draw(t, "later"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				class := uint8(rapid.IntRange(0, 3).Draw(t, "largest"))
				fits := func(c uint8) bool { return c <= class }
				var want swarm.Task
				for id := range waits {
					x := port.of[id]
					if fits(x.Class) && x.Deadline > now && (want.ID == 0 || x.Deadline < want.Deadline || x.Deadline == want.Deadline &&
						x.Arrived < want.Arrived) {
						want = x
					}
				}
				got, ok := l.Take(now, fits)
				if ok != (want.ID != 0) || ok && got != want {
					t.Fatalf("took %+v (%v), want %+v", got, ok, want)
				}
				delete(waits, got.ID)
				if ok && rapid.Bool().Draw(t, "back") {
					l.PutBack(got)
					waits[got.ID] = true
				}
			case 1: // one is over elsewhere
				for id := range waits {
					if uint64(id)%7 == 0 {
						delete(port.of, id)
						delete(waits, id)
					}
				}
			default:
				x := swarm.Task{ID: swarm.NewTaskID(uint32(i), 1), Arrived: now, Class: uint8(rapid.IntRange(0, 3).Draw(t, "class")),
					Long: rapid.Bool().Draw(t, "long")}
				if x.Deadline = now + 10; x.Long {
					x.Deadline = now + 50
				}
				port.of[x.ID] = x
				l.Put(x)
				waits[x.ID] = true
			}
			alive := 0
			for id := range waits {
				if port.of[id].Deadline > now {
					alive++
				}
			}
			if l.Len() < alive {
				t.Fatalf("%d wait, and it counts %d", alive, l.Len())
			}
		}
	})
}
