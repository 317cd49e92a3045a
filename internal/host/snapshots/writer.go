package snapshots

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
)

// captured is one piece of an actor's state in the snapshot: its facts, and the actor's index among the parties. The facts can be folded
// alone into a fresh actor.
type captured struct {
	actor int
	facts []protocol.Fact
}

// writer is the goroutine that writes a snapshot beside the loop. What it writes it decodes again and folds, piece by
// piece, into fresh actors that are thrown away: a digest is a sum, so there is never a second state, and a snapshot that
// would not come back is not used.
type writer struct {
	to    journal.Snapshot
	fresh func() []actor.Party
	// names of the actors, whose digests were want when the snapshot began.
	names []string
	want  []uint64

	// full carries pieces to write, closed after the last; free carries empty buffers, as many as there are pieces at most. The capacity
	// of full is that number, so sending never blocks. done gets the outcome.
	full chan captured
	free chan []protocol.Fact
	done chan error
	stop atomic.Bool

	// facts written; to be read when it is done.
	facts  uint64
	buffer []byte
	// decoder reads what was written, as a recovery does.
	decoder wire.Decoder
}

// rooms is how many buffers of facts there are between the loop and the writer.
const rooms = 4

// makeWay is after how many facts the writer lets others run, the loop first: the scheduler would take it off its processor after
// 10 ms only, and every waiting call would meet that at every step.
const makeWay = 32

// errStopped is the outcome of an abandoned snapshot.
var errStopped = errors.New("the daemon stops")

// unfoldable is the error of a snapshot that can't be recovered from: our bug, and no reason to stop the daemon.
type unfoldable struct{ error }

func newWriter(to journal.Snapshot, parties []actor.Party, fresh func() []actor.Party) *writer {
	w := &writer{
		to: to, fresh: fresh, full: make(chan captured, rooms), free: make(chan []protocol.Fact, rooms), done: make(chan error, 1),
	}
	for _, p := range parties {
		w.names, w.want = append(w.names, actor.Name(p.Address)), append(w.want, p.Actor.Digest())
	}
	for range rooms {
		w.free <- nil
	}
	return w
}

func (w *writer) run() {
	err := w.write()
	if err == nil {
		err = w.to.Commit()
	}
	if err != nil {
		err = errors.Join(err, w.to.Abort())
	}
	w.done <- err
}

// end stops the writer, and returns what became of the snapshot. more: not all pieces were sent yet.
func (w *writer) end(more bool) error {
	w.stop.Store(true)
	if more {
		close(w.full)
	}
	return <-w.done
}

func (w *writer) write() error {
	none := make([]uint64, len(w.want))
	for i, p := range w.fresh() {
		none[i] = p.Actor.Digest()
	}
	got := append([]uint64(nil), none...)
	for c := range w.full {
		if w.stop.Load() {
			return errStopped
		}
		w.buffer = wire.AppendFacts(w.buffer[:0], c.facts)
		w.facts += uint64(len(c.facts))
		clear(c.facts)
		w.free <- c.facts
		if _, err := w.to.Write(w.buffer); err != nil {
			return err
		}
		digest, err := w.fold(c.actor)
		if err != nil {
			return unfoldable{err}
		}
		got[c.actor] += digest - none[c.actor]
	}
	if w.stop.Load() {
		return errStopped
	}
	for i := range got {
		if got[i] != w.want[i] {
			return unfoldable{fmt.Errorf("the snapshot of %s folds to digest %016x, it had %016x", w.names[i], got[i], w.want[i])}
		}
	}
	return nil
}

// fold is the digest of a fresh actor with what is in the buffer.
func (w *writer) fold(i int) (digest uint64, err error) {
	defer func() {
		if broken := recover(); broken != nil { // the actor that is thrown away, not the one that decides
			err = fmt.Errorf("fold the snapshot of %s: %v", w.names[i], broken)
		}
	}()
	a := w.fresh()[i].Actor
	var f protocol.Fact
	n := 0
	if err := wire.EachFact(w.buffer, func(encoded []byte) error {
		if n++; n%makeWay == 0 {
			runtime.Gosched()
		}
		f = protocol.Fact{}
		if err := w.decoder.Fact(encoded, &f); err != nil {
			return err
		}
		a.Apply(f)
		return nil
	}); err != nil {
		return 0, err
	}
	return a.Digest(), nil
}
