package host

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/wire"
)

// commit makes the facts of the batch durable, with one sync. One record holds the facts of one step, so that a step is
// in the journal whole or not at all. While the disk is full, or no file descriptor is left, it keeps the batch, answers
// queries and tries again; it returns without having committed only when ctx is done, and then no effect may leave. Any
// other error is final.
func (h *Host) commit(ctx context.Context) error {
	wait := retryFirst
	for {
		err := h.append()
		h.space.noteAppend(err)
		if err == nil {
			h.clearTrouble()
			return nil
		}
		if errkind.Of(err) != errkind.Exhausted {
			return errkind.Errorf(errkind.Of(err), "the journal takes no more, and nothing may be decided without it (nothing was lost; running subjobs go on): %w", err)
		}
		if h.taking != nil { // what it has written so far is room
			if bad := h.giveUp(err); bad != nil {
				return bad
			}
			continue
		}
		h.setTrouble(err)
		if !h.sleep(ctx, wait) {
			return nil
		}
		wait = min(2*wait, retryLast)
	}
}

// append hands the facts of the batch to the journal. After an error it may be called again and goes on where it was.
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

// neverWakes has no Tick wanted of n parties.
func neverWakes(n int) []quantity.Instant {
	w := make([]quantity.Instant, n)
	for i := range w {
		w[i] = quantity.Never
	}
	return w
}
