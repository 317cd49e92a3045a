package host

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
)

// commit makes the facts of the batch durable, with one sync. One record holds the facts of one step, so that a step is
// in the log whole or not at all. While the disk is full, or no file descriptor is left, it keeps the batch, answers
// queries and tries again; it returns without having committed only when ctx is done, and then no effect may leave. Any
// other error is final.
func (h *Host) commit(ctx context.Context) error {
	wait := retryFirst
	for {
		err := h.append()
		if err == nil {
			h.clearTrouble()
			return nil
		}
		if errkind.Of(err) != errkind.Exhausted {
			return errkind.Errorf(errkind.Of(err), "the log takes no more, and nothing may be decided without it (nothing was lost; running subjobs go on): %w", err)
		}
		h.setTrouble(err)
		if !h.sleep(ctx, wait) {
			return nil
		}
		wait = min(2*wait, retryLast)
	}
}

// append hands the facts of the batch to the log. After an error it may be called again and goes on where it was.
func (h *Host) append() error {
	if len(h.steps) == 0 {
		return nil
	}
	if len(h.records) == 0 {
		h.encode()
	}
	for len(h.records) > 0 {
		n, size := 0, 0
		for n < len(h.records) && (n == 0 || size+len(h.records[n]) <= journal.MaxBatch) {
			size += len(h.records[n])
			n++
		}
		begin := time.Now()
		position, err := h.journal.Append(h.records[:n])
		if err != nil {
			return err
		}
		h.position = position
		h.observer.Appended(time.Since(begin), n, size)
		h.records = h.records[n:]
	}
	h.committed()
	return nil
}

// encode fills records, one for each step that has facts.
func (h *Host) encode() {
	h.buffer, h.records = h.buffer[:0], nil
	var ends []int
	from := 0
	for _, s := range h.steps {
		h.buffer = wire.AppendFacts(h.buffer, h.out.Facts[from:s.facts])
		ends = append(ends, len(h.buffer))
		from = s.facts
	}
	at := 0
	for _, end := range ends {
		h.records = append(h.records, h.buffer[at:end:end])
		at = end
	}
}

// committed tells those who watch.
func (h *Host) committed() {
	from := 0
	for _, s := range h.steps {
		for i := from; i < s.facts; i++ {
			f := &h.out.Facts[i]
			h.observer.Fact(s.now, f)
			h.needs(f)
			h.agents.fact(f)
		}
		h.tidy(s.now)
		from = s.facts
	}
	h.watches.wake(h.out.Facts[:from])
}

// sleep waits for d and goes on answering queries. It says false if ctx was done first.
func (h *Host) sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		for len(h.queries) > 0 {
			h.answerQueries()
		}
		select {
		case <-timer.C:
			return true
		case <-ctx.Done():
			return false
		case <-h.inbox.ping:
			_, h.queries = h.inbox.take(0, maxLooks, nil, h.queries)
		}
	}
}

// snapshot replaces the log by the actors' state when it has grown enough. It runs between batches, when state and log
// are the same. What it writes is first folded into fresh actors: a snapshot that would not come back is not written.
func (h *Host) snapshot() error {
	bytes, records := h.journal.Size()
	if records < h.snapshotAt && (bytes < h.opts.SnapshotBytes || records < h.snapshotAt/8+1) {
		return nil
	}
	begin := time.Now()
	facts, err := h.state()
	if err != nil {
		h.snapshotAt = records + h.opts.SnapshotRecords
		h.log.Error("no snapshot was written, the log stays as it is; please report this", "error", err)
		return nil
	}
	if facts == nil {
		h.snapshotAt = ^uint64(0) // the actors can't
		return nil
	}
	switch err := h.journal.Snapshot(wire.AppendFacts(nil, facts)); {
	case err == nil:
		h.snapshotAt = max(h.opts.SnapshotRecords, 2*uint64(len(facts)))
		h.log.Info("wrote a snapshot", "facts", len(facts), "records", records, "bytes", bytes, "took", time.Since(begin))
	case errkind.Of(err) == errkind.Exhausted:
		h.snapshotAt = records + h.opts.SnapshotRecords/8 + 1
		h.log.Warn("no snapshot could be written; the journal goes on growing, and it is tried again", "error", err)
	default:
		return errkind.Errorf(errkind.Of(err), "write a snapshot: %w", err)
	}
	return nil
}

// state is the durable state of all actors as facts, proven by folding it; nil if an actor can't say it.
func (h *Host) state() ([]protocol.Fact, error) {
	var facts []protocol.Fact
	for _, p := range h.parties {
		s, ok := p.Actor.(capture.Source)
		if !ok {
			return nil, nil
		}
		from := len(facts)
		facts = append(facts, capture.All(s)...)
		for i := from; i < len(facts); i++ {
			facts[i].Actor = p.Address
		}
	}
	if facts == nil {
		facts = []protocol.Fact{}
	}
	fresh := h.opts.Actors().Parties(h.opts.ZoneID, h.opts.NodeID)
	err := wire.DecodeFacts(wire.AppendFacts(nil, facts), func(f protocol.Fact) error {
		fresh[h.index[f.Actor]].Actor.Apply(f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, p := range h.parties {
		if got, want := fresh[i].Actor.Digest(), p.Actor.Digest(); got != want {
			return nil, fmt.Errorf("the snapshot of %s folds to digest %016x, the actor has %016x", actor.Name(p.Address), got, want)
		}
	}
	return facts, nil
}

// neverWakes has no Tick wanted of n parties.
func neverWakes(n int) []quantity.Instant {
	w := make([]quantity.Instant, n)
	for i := range w {
		w[i] = quantity.Never
	}
	return w
}
