package recovery

import (
	"errors"
	"io"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
)

// batchFacts is how many facts the reader of the journal hands over at once, and batches how many of these lists there are.
const batchFacts, batches = 512, 4

// reader reads and decodes the journal beside the goroutine that folds it. Its memory is bounded, however long the journal is.
type reader struct {
	journal journal.Journal
	decoder wire.Decoder
	renames protocol.Renames
	// facts that were read and not handed over yet; told receives each of them, with its encoding.
	facts []protocol.Fact
	told  func(f *protocol.Fact, encoded []byte)

	full chan []protocol.Fact
	free chan []protocol.Fact

	// To be read when full is closed: where the journal ends, how many facts its snapshot has, and why it could not be read.
	end      journal.Position
	snapshot uint64
	err      error
}

func (r *reader) run() {
	defer close(r.full)
	r.facts = <-r.free
	r.end, r.err = r.journal.Replay(r.state, r.record)
	if r.err == nil {
		r.hand()
	}
}

// hand passes the facts that were read on, and takes an empty list for more.
func (r *reader) hand() {
	if len(r.facts) > 0 {
		r.full <- r.facts
		r.facts = <-r.free
	}
}

// state reads a snapshot.
func (r *reader) state(in io.Reader) error {
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
func (r *reader) record(p journal.Position, data []byte) error {
	if err := wire.EachFact(data, r.fact); err != nil {
		return errkind.Errorf(errkind.Of(err), "record %d: %w", p.Seq, err)
	}
	return nil
}

// fact decodes one.
func (r *reader) fact(encoded []byte) error {
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
