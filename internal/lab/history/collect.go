package history

import (
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// Collector keeps what rows are made of when all files were read: samples of one Pod may stand in several.
type Collector interface {
	// Close puts rows into the book. It is called once, before any row is looked at.
	Close()
}

// Samples is what logs of samples need of a book: samples become rows when all were read, and they say of what time anything is known.
type Samples struct {
	book       *Book
	collectors map[string]Collector
	// covers is the time of which all is known; nil where no log says so.
	covers *Gap
	// gauges are what was measured of devices, models what whole ones are, by node.
	gauges gauges
}

// Samples of the book.
func (b *Book) Samples() *Samples { return &b.samples }

// Collect gives the collector of a name, made by the first who asks.
func (m *Samples) Collect(name string, create func() Collector) Collector {
	c := m.collectors[name]
	if c == nil {
		if m.collectors == nil {
			m.collectors = map[string]Collector{}
		}
		c = create()
		m.collectors[name] = c
	}
	return c
}

// close closes the collectors, in order of their names.
func (m *Samples) close() {
	for _, name := range slices.Sorted(maps.Keys(m.collectors)) {
		m.collectors[name].Close()
	}
}

// Rows says whether any run was read by now.
func (m *Samples) Rows() bool { return len(m.book.rows) > 0 }

// Covers says that all work in [from, to) is known. Of several such stretches the hull counts.
func (m *Samples) Covers(from, to quantity.Instant) {
	if m.covers == nil {
		m.covers = &Gap{from, to}
	}
	m.covers.From, m.covers.To = min(m.covers.From, from), max(m.covers.To, to)
}

// Odd counts an oddity of something that has a name instead of a line.
func (m *Samples) Odd(name, done, what string) { m.book.odd(name, done).add(place{text: what}) }
