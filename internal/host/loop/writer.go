package loop

import (
	"time"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/edge/wire"
)

// writer appends the facts of a turn to the journal: one record holds the facts of one step, so that a step is in the journal whole or not
// at all.
type writer struct {
	journal  journal.Journal
	observer *observe.Observer
	position journal.Position // behind the last record that is durable
	records  [][]byte         // of this turn that are not durable yet
	buffer   []byte
}

// append makes the facts of a turn durable, with one sync. After an error it may be called again and goes on where it was.
func (w *writer) append(t *turn) error {
	if len(w.records) == 0 {
		w.encode(t)
	}
	for len(w.records) > 0 {
		n, size := 0, 0
		for n < len(w.records) && (n == 0 || size+len(w.records[n]) <= journal.MaxBatch) {
			size += len(w.records[n])
			n++
		}
		begin := time.Now()
		position, err := w.journal.Append(w.records[:n])
		if err != nil {
			return err
		}
		w.position = position
		w.observer.Appended(time.Since(begin), n, size)
		w.records = w.records[n:]
	}
	return nil
}

// encode fills records, one for each step that has facts.
func (w *writer) encode(t *turn) {
	w.buffer, w.records = w.buffer[:0], nil
	var ends []int
	from := 0
	for _, s := range t.steps {
		w.buffer = wire.AppendFacts(w.buffer, t.out.Facts[from:s.facts])
		ends = append(ends, len(w.buffer))
		from = s.facts
	}
	at := 0
	for _, end := range ends {
		w.records = append(w.records, w.buffer[at:end:end])
		at = end
	}
}
