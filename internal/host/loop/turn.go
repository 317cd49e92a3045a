package loop

import (
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// turn is what the actors have produced in this turn of the loop: facts, in the order of their steps, and effects, none of which has left
// yet.
type turn struct {
	out   protocol.Out
	steps []step
	// relayed is how many of the effects were looked through for messages to actors of this journal.
	relayed int
	// leaving: some effects go elsewhere, so the facts must be synced. gathering is since when facts wait for others to share their sync
	// with; zero: none wait.
	leaving   bool
	gathering time.Time
}

// step is one call of an actor within a turn: the end of its facts in out.Facts, and when it was.
type step struct {
	facts int
	now   quantity.Instant
}

// mark is where the next step's facts and effects begin.
func (t *turn) mark() [2]int { return [2]int{len(t.out.Facts), len(t.out.Effects)} }

// sign sets the author of what an actor produced in a step since from, so that no actor can send in another's name.
func (t *turn) sign(by protocol.Address, now quantity.Instant, from [2]int) {
	for i := from[0]; i < len(t.out.Facts); i++ {
		t.out.Facts[i].Actor = by
	}
	for i := from[1]; i < len(t.out.Effects); i++ {
		t.out.Effects[i].From = by
	}
	if len(t.out.Facts) > from[0] {
		t.steps = append(t.steps, step{facts: len(t.out.Facts), now: now})
	}
}

// gatherFor is how long facts that nobody waits for may wait for others, to share their sync.
const gatherFor = 25 * time.Millisecond

// gather is how long the facts may wait for others from now on.
func (t *turn) gather() time.Duration {
	if t.gathering.IsZero() {
		t.gathering = time.Now()
	}
	return max(0, gatherFor-time.Since(t.gathering))
}

// reset begins the next turn.
func (t *turn) reset() {
	clear(t.out.Effects) // so that the messages can be collected
	clear(t.out.Facts)
	t.out.Reset()
	t.steps, t.relayed, t.leaving, t.gathering = t.steps[:0], 0, false, time.Time{}
}
