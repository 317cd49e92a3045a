// Package snapshots replaces the journal by a snapshot now and then, beside the loop: the loop captures a piece in each of its turns, and a
// writer encodes, proves and stores them (docs/adr/0025-snapshots-beside-the-loop.md).
package snapshots

import (
	"errors"
	"log/slog"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host/heap"
)

const (
	// turnParts is how many parts of an actor's state one turn of the loop captures at most: about half a millisecond.
	turnParts = 512
	// mostEarly facts of parts that changed before their turn are held before the loop waits for the writer.
	mostEarly = 8192
)

// Limits say when the journal is replaced by a snapshot: after so many records, or after an eighth of them beyond so many bytes.
type Limits struct {
	Records uint64
	Bytes   int64
	// Grow: after twice as many records as the last snapshot has facts, if that is more.
	Grow bool
}

// due is the number of records after which a snapshot follows one of this many facts.
func (l *Limits) due(facts uint64) uint64 {
	if l.Grow {
		return max(l.Records, 2*facts)
	}
	return l.Records
}

// Snapshots takes at most one snapshot at a time, of what state and journal are between two batches. It belongs to the goroutine of the
// loop; only the writer of the snapshot that is being taken has one of its own.
type Snapshots struct {
	journal journal.Journal
	limits  Limits
	log     *slog.Logger
	parties []actor.Party
	fresh   func() []actor.Party
	// dueAt is the number of records since the last snapshot at which the next is due.
	dueAt  uint64
	taking *snapshotting // nil: none is being taken
}

// New takes snapshots of actors whose last snapshot has so many facts. fresh makes actors without state, to verify a snapshot.
func New(j journal.Journal, limits Limits, facts uint64, parties []actor.Party, fresh func() []actor.Party, log *slog.Logger) *Snapshots {
	return &Snapshots{journal: j, limits: limits, log: log, parties: parties, fresh: fresh, dueAt: limits.due(facts)}
}

// snapshotting is a snapshot that is being taken.
type snapshotting struct {
	writer *writer
	// runs are the captures of the actors, nil where one is done; left counts the others, turn is whose turn it is.
	runs       []capture.Run
	left, turn int
	begun      time.Time
	// size and records of the journal when it began.
	size    int64
	records uint64
}

// Turn begins a snapshot when the journal has grown enough, and goes on with the one that is being taken. It runs between
// batches, when state and journal are the same.
func (t *Snapshots) Turn() error {
	s := t.taking
	if s == nil {
		return t.begin()
	}
	select {
	case err := <-s.writer.done:
		return t.End(err)
	default:
	}
	early := 0
	for _, r := range s.runs {
		if r != nil {
			early += r.Early()
		}
	}
	if early > mostEarly { // bounds the memory
		select {
		case room := <-s.room():
			s.capture(room)
		case err := <-s.writer.done:
			return t.End(err)
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

// Room receives when the writer can take the next piece, Over when the snapshot is written or has failed. Both are nil channels while
// there is nothing to wait for.
func (t *Snapshots) Room() <-chan []protocol.Fact { return t.taking.room() }

// Over receives the outcome of the snapshot, to be handed to End.
func (t *Snapshots) Over() <-chan error { return t.taking.over() }

// Capture takes a piece of the next actor that has more.
func (t *Snapshots) Capture(room []protocol.Fact) { t.taking.capture(room) }

// room receives a buffer for the next piece; nil once all is captured.
func (s *snapshotting) room() <-chan []protocol.Fact {
	if s == nil || s.left == 0 {
		return nil
	}
	return s.writer.free
}

// over receives the outcome of the snapshot.
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

func (t *Snapshots) begin() error {
	size, records := t.journal.Size()
	if records < t.dueAt && (size < t.limits.Bytes || records < t.dueAt/8+1) {
		return nil
	}
	for _, p := range t.parties {
		if _, ok := p.Actor.(capture.Source); !ok {
			t.dueAt = ^uint64(0) // the actors can't
			return nil
		}
	}
	to, err := t.journal.Snapshot()
	if err != nil {
		return t.none(err)
	}
	s := &snapshotting{begun: time.Now(), left: len(t.parties), size: size, records: records}
	for _, p := range t.parties {
		s.runs = append(s.runs, p.Actor.(capture.Source).Capture())
	}
	s.writer = newWriter(to, t.parties, t.fresh)
	t.taking = s
	go s.writer.run()
	return nil
}

// End notes the outcome of a snapshot.
func (t *Snapshots) End(err error) error {
	s := t.taking
	t.letGo()
	if err != nil {
		return t.none(err)
	}
	heap.Adjust()
	t.dueAt = t.limits.due(s.writer.facts)
	t.log.Info("wrote a snapshot beside the loop", "facts", s.writer.facts, "records", s.records, "bytes", s.size, "took",
		time.Since(s.begun))
	return nil
}

// none logs why there is no snapshot. The journal stays as it is.
func (t *Snapshots) none(err error) error {
	_, records := t.journal.Size()
	var bad unfoldable
	switch {
	case errors.As(err, &bad):
		t.dueAt = records + t.limits.Records
		t.log.Error("no snapshot was written, the journal stays as it is; please report this", "error", err)
	case errkind.Of(err) == errkind.Exhausted:
		t.dueAt = records + t.limits.Records/8 + 1
		t.log.Warn("no snapshot could be written; the journal goes on growing, and it is tried again", "error", err)
	default:
		return errkind.Errorf(errkind.Of(err), "write a snapshot: %w", err)
	}
	return nil
}

// letGo ends the actors' captures.
func (t *Snapshots) letGo() {
	for _, r := range t.taking.runs {
		if r != nil {
			r.Release()
		}
	}
	t.taking = nil
}

// GiveUp abandons the snapshot that is being taken, to free its space; false: none is.
func (t *Snapshots) GiveUp(why error) (was bool, err error) {
	if t.taking == nil {
		return false, nil
	}
	err = t.taking.writer.end(t.taking.left > 0)
	if errors.Is(err, errStopped) {
		err = why
	}
	return true, t.End(err)
}

// Stop abandons the one that is being taken, if there is one, and waits until it is removed.
func (t *Snapshots) Stop() error {
	if t.taking == nil {
		return nil
	}
	err := t.taking.writer.end(t.taking.left > 0)
	t.letGo()
	if errors.Is(err, errStopped) {
		return nil
	}
	return err
}
