package host

import (
	"errors"
	"fmt"
	"io"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
)

const (
	// batchFacts is how many facts the reader of the journal hands over at once, and batches how many of these lists there are.
	batchFacts, batches = 512, 4
	// collectEvery facts it is looked at how large the heap has become.
	collectEvery = 1 << 16
)

// journalReader reads and decodes the journal beside the one who folds it. What it holds is bounded, however long the journal is.
type journalReader struct {
	journal journal.Journal
	decoder wire.Decoder
	renames protocol.Renames
	// facts that were read and not handed over yet; told is who is told each of them, with its encoding.
	facts []protocol.Fact
	told  func(f *protocol.Fact, encoded []byte)

	full chan []protocol.Fact
	free chan []protocol.Fact

	// To be read when full is closed: where the journal ends, how many facts its snapshot has, and why it could not be read.
	end      journal.Position
	snapshot uint64
	err      error
}

// replay folds the journal into the actors. It decides nothing.
func (h *Host) replay() error {
	begin, facts := time.Now(), 0
	h.workdirs = newWorkdirs()
	h.recovering = recoveredTurns
	collect(true)
	r := &journalReader{
		journal: h.journal, renames: h.renames, told: h.recovered,
		full: make(chan []protocol.Fact, batches), free: make(chan []protocol.Fact, batches),
	}
	for range batches {
		r.free <- make([]protocol.Fact, 0, batchFacts)
	}
	go r.run()
	for list := range r.full {
		for i := range list {
			h.fold(&list[i])
			if facts++; facts%collectEvery == 0 {
				collect(true)
			}
		}
		clear(list)
		r.free <- list[:0]
	}
	if r.err != nil {
		return fmt.Errorf("recover from the journal: %w", r.err)
	}
	h.position, h.fresh = r.end, r.end.Seq == 0
	h.snapshotAt = h.opts.due(r.snapshot)
	h.log.Info("recovered", "facts", facts, "at", h.position.String(), "took", time.Since(begin))
	return nil
}

// fold gives one fact to its actor; whether one that is not there may be missing is known at the end.
func (h *Host) fold(f *protocol.Fact) {
	i, ok := h.index[f.Actor]
	if !ok {
		h.absent.fold(f)
		return
	}
	h.kept[i] = max(h.kept[i], bootedOnly)
	if f.Kind != protocol.Booted {
		h.kept[i] = more
	}
	h.parties[i].Actor.Apply(*f)
}

// What the journal has of an actor. A node that has no more than booted has promised nothing: the first boot of several may be cut off
// between two of them.
const (
	nothing = iota
	bootedOnly
	more
)

// strays refuses zones without one that is the home of a job, and nodes other than those that the journal has: what one of them promised
// nobody would keep, and GPUs that are dealt otherwise could be sold while a subjob of before runs there.
func (h *Host) strays() error {
	if err := h.missing(); err != nil {
		return err
	}
	if g, ok := h.actors.Gates[0].Gate.(actor.Strayer); ok {
		if id, home, found := g.Stray(); found {
			return errkind.Errorf(errkind.Invalid, "job %s has its home in zone %s, which is missing: put it back into zones: of --config (zones: [%s]); "+
				"it may be left out once it was drained (sluice zones drain %s --wait); nothing was changed", id, home, h.zonesWith(home), home)
		}
	}
	var with, without []actor.Party
	for i, p := range h.parties {
		switch {
		case p.Address.Role != protocol.Node:
		case h.kept[i] == more:
			with = append(with, p)
		case h.kept[i] == nothing:
			without = append(without, p)
		}
	}
	if len(with) > 0 && len(without) > 0 {
		return errkind.Errorf(errkind.Invalid, "%s was begun with %s, and GPUs would be dealt to %s too: start it with the nodes it had, or in another directory",
			h.opts.DataDir, actor.Names(with), actor.Names(without))
	}
	return nil
}

// recovered gives one fact to those who keep something of it besides its actor.
func (h *Host) recovered(f *protocol.Fact, encoded []byte) {
	if _, there := h.index[f.Actor]; !there {
		return
	}
	if h.tape != nil {
		h.tape.Recovered(encoded)
	}
	h.observer.Recovered(f)
	h.needs(f)
	h.agents.fact(f)
}

func (r *journalReader) run() {
	defer close(r.full)
	r.facts = <-r.free
	r.end, r.err = r.journal.Replay(r.state, r.record)
	if r.err == nil {
		r.hand()
	}
}

// hand gives away what was read, and takes room for more.
func (r *journalReader) hand() {
	if len(r.facts) > 0 {
		r.full <- r.facts
		r.facts = <-r.free
	}
}

// state reads a snapshot.
func (r *journalReader) state(in io.Reader) error {
	for facts := wire.NewFactReader(in); ; r.snapshot++ {
		encoded, err := facts.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = r.fact(encoded)
		}
		if err != nil {
			return errkind.Errorf(errkind.Of(err), "fact %d of the snapshot: %w", r.snapshot+1, err)
		}
	}
}

// record reads the facts of one step.
func (r *journalReader) record(p journal.Position, data []byte) error {
	if err := wire.EachFact(data, r.fact); err != nil {
		return errkind.Errorf(errkind.Of(err), "record %d: %w", p.Seq, err)
	}
	return nil
}

// fact decodes one.
func (r *journalReader) fact(encoded []byte) error {
	r.facts = append(r.facts, protocol.Fact{})
	f := &r.facts[len(r.facts)-1]
	if err := r.decoder.Fact(encoded, f); err != nil {
		r.facts = r.facts[:len(r.facts)-1]
		return err
	}
	if r.renames.Fact(f) {
		encoded = wire.AppendFact(nil, f) // a tape is played with the present names
	}
	if r.told(f, encoded); len(r.facts) < batchFacts {
		return nil
	}
	r.hand()
	return nil
}
