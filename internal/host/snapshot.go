package host

import (
	"errors"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
)

const (
	// turnParts is how many parts of an actor's state one turn of the loop captures at most: about half a millisecond.
	turnParts = 512
	// rooms for facts are between the loop and the writer of a snapshot: all that is ever on the way.
	rooms = 4
	// mostEarly facts of parts that changed before their turn are held before the loop waits for the writer.
	mostEarly = 8192
)

// snapshotting is a snapshot that is being taken: the loop captures a piece in each of its turns, and the writer beside it
// encodes, proves and stores them (docs/adr/0025-snapshots-beside-the-loop.md).
type snapshotting struct {
	writer *snapshotWriter
	// runs are the captures of the actors, nil where one is done; left counts the others, turn is whose turn it is.
	runs       []capture.Run
	left, turn int
	begun      time.Time
	// size and records of the journal when it began.
	size    int64
	records uint64
}

// snapshot begins a snapshot when the journal has grown enough, and goes on with the one that is being taken. It runs between
// batches, when state and journal are the same.
func (h *Host) snapshot() error {
	s := h.taking
	if s == nil {
		return h.beginSnapshot()
	}
	select {
	case err := <-s.writer.done:
		return h.endSnapshot(err)
	default:
	}
	early := 0
	for _, r := range s.runs {
		if r != nil {
			early += r.Early()
		}
	}
	if early > mostEarly { // nothing may grow for ever
		select {
		case room := <-s.room():
			s.capture(room)
		case err := <-s.writer.done:
			return h.endSnapshot(err)
		}
		return nil
	}
	select {
	case room := <-s.room():
		s.capture(room)
	default:
	}
	return nil
}

// room has room for the next piece; nobody waits for it when all is captured.
func (s *snapshotting) room() <-chan []protocol.Fact {
	if s == nil || s.left == 0 {
		return nil
	}
	return s.writer.free
}

// over says that the snapshot is written, or why it is not.
func (s *snapshotting) over() <-chan error {
	if s == nil {
		return nil
	}
	return s.writer.done
}

// capture takes a piece of the next actor that has more.
func (s *snapshotting) capture(room []protocol.Fact) {
	for s.runs[s.turn] == nil {
		s.turn = (s.turn + 1) % len(s.runs)
	}
	facts, done := s.runs[s.turn].Take(turnParts, room[:0])
	s.writer.full <- captured{s.turn, facts}
	if done {
		s.runs[s.turn] = nil
		if s.left--; s.left == 0 {
			close(s.writer.full)
			return
		}
	}
	s.turn = (s.turn + 1) % len(s.runs)
}

func (h *Host) beginSnapshot() error {
	size, records := h.journal.Size()
	if records < h.snapshotAt && (size < h.opts.SnapshotBytes || records < h.snapshotAt/8+1) {
		return nil
	}
	for _, p := range h.parties {
		if _, ok := p.Actor.(capture.Source); !ok {
			h.snapshotAt = ^uint64(0) // the actors can't
			return nil
		}
	}
	to, err := h.journal.Snapshot()
	if err != nil {
		return h.noSnapshot(err)
	}
	s := &snapshotting{begun: time.Now(), left: len(h.parties), size: size, records: records}
	for _, p := range h.parties {
		s.runs = append(s.runs, p.Actor.(capture.Source).Capture())
	}
	s.writer = newSnapshotWriter(to, h.parties, func() []actor.Party { return h.opts.Actors().Parties() })
	h.taking = s
	go s.writer.run()
	return nil
}

// endSnapshot takes note of what became of a snapshot.
func (h *Host) endSnapshot(err error) error {
	s := h.taking
	h.letGo()
	if err != nil {
		return h.noSnapshot(err)
	}
	collect(false)
	h.snapshotAt = h.opts.due(s.writer.facts)
	h.log.Info("wrote a snapshot beside the loop", "facts", s.writer.facts, "records", s.records, "bytes", s.size, "took", time.Since(s.begun))
	return nil
}

// noSnapshot says why there is none. The journal stays as it is.
func (h *Host) noSnapshot(err error) error {
	_, records := h.journal.Size()
	var bad unfoldable
	switch {
	case errors.As(err, &bad):
		h.snapshotAt = records + h.opts.SnapshotRecords
		h.log.Error("no snapshot was written, the journal stays as it is; please report this", "error", err)
	case errkind.Of(err) == errkind.Exhausted:
		h.snapshotAt = records + h.opts.SnapshotRecords/8 + 1
		h.log.Warn("no snapshot could be written; the journal goes on growing, and it is tried again", "error", err)
	default:
		return errkind.Errorf(errkind.Of(err), "write a snapshot: %w", err)
	}
	return nil
}

// letGo lets the actors forget the captures.
func (h *Host) letGo() {
	for _, r := range h.taking.runs {
		if r != nil {
			r.Release()
		}
	}
	h.taking = nil
}

// giveUp gives up the snapshot that is being taken, since there is no room besides.
func (h *Host) giveUp(why error) error {
	err := h.taking.writer.end(h.taking.left > 0)
	if errors.Is(err, errStopped) {
		err = why
	}
	return h.endSnapshot(err)
}

// stopSnapshot gives up the one that is being taken, if there is one, and waits until nothing of it is there.
func (h *Host) stopSnapshot() error {
	if h.taking == nil {
		return nil
	}
	err := h.taking.writer.end(h.taking.left > 0)
	h.letGo()
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}
