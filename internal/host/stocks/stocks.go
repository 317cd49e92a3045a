// Package stocks remembers at a cluster's head which slices the machines that have joined it have, as they told last. Nodes tell it again
// when they are linked; until then, after a restart of the head, a machine that is away has the slices that it had.
package stocks

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/wire"
	"sluice.dev/sluice/internal/host/nodes"
)

// FileName is the file below the data directory. It is a cache: who removes it loses what machines that are away have, until they are back.
const FileName = "stocks.json"

// version is that of the file. One of another version is not read.
const version = 1

// Stocks are those of the machines that have joined. Make it with Open; a nil one is that of a daemon that no machine may join, and has
// nothing. Safe for concurrent use.
type Stocks struct {
	path      string
	elsewhere nodes.Elsewhere
	log       *slog.Logger

	mu    sync.Mutex
	known map[job.NodeID][]byte // the encoded message
	dirty bool

	changed chan struct{} // capacity 1
	done    chan struct{}
	writing sync.WaitGroup
}

// content of the file.
type content struct {
	Version int
	// Told are the last messages of machines, as wire.AppendMessage encodes them.
	Told map[job.NodeID][]byte
}

// Open reads what is remembered below a data directory, and keeps it from then on until Close. What can't be read is forgotten.
func Open(dataDir string, elsewhere nodes.Elsewhere, log *slog.Logger) *Stocks {
	s := &Stocks{path: filepath.Join(dataDir, FileName), elsewhere: elsewhere, log: log, known: map[job.NodeID][]byte{},
		changed: make(chan struct{}, 1), done: make(chan struct{})}
	text, err := os.ReadFile(s.path)
	var c content
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	switch {
	case err == nil && c.Version == version:
		for name, told := range c.Told {
			if _, err = decode(name, told); err == nil {
				s.known[name] = told
			}
		}
	case !errors.Is(err, fs.ErrNotExist):
		log.Warn("which slices machines have that are away is forgotten until they are back", "file", s.path, "error", err)
	}
	s.writing.Go(s.write)
	return s
}

// decode reads one of the messages, as the machine's own.
func decode(name job.NodeID, told []byte) (protocol.Message, error) {
	m, err := wire.DecodeMessage(told)
	if err == nil && !says(&m, name) {
		err = errkind.Errorf(errkind.Corrupt, "it is not what node %s has", name)
	}
	return m, err
}

// says reports whether a message is what a node has.
func says(m *protocol.Message, name job.NodeID) bool {
	stock, ok := m.Body.(*protocol.Stock)
	return ok && m.Kind == protocol.Inventory && m.From == protocol.Address{Role: protocol.Node, ID: string(name)} &&
		m.To.Role == protocol.Gate && len(stock.Slices) <= protocol.MostSlices
}

// Hear takes note of what a machine tells a gate. It may be called with any message.
func (s *Stocks) Hear(m *protocol.Message) {
	name := job.NodeID(m.From.ID)
	if s == nil || !says(m, name) {
		return
	}
	told := wire.AppendMessage(nil, m)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.known[name], told) {
		s.known[name] = told
		s.change()
	}
}

// Forget drops a machine that has left for good.
func (s *Stocks) Forget(name job.NodeID) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.known[name]; ok {
		delete(s.known, name)
		s.change()
	}
}

// change has the file written. The caller holds mu.
func (s *Stocks) change() {
	s.dirty = true
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Told are the last messages of machines that have joined and were not removed, by their names.
func (s *Stocks) Told() (all []protocol.Message) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, told := range s.known {
		if errkind.Of(s.elsewhere.Away(name)) == errkind.NotFound {
			continue
		}
		if m, err := decode(name, told); err == nil {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b protocol.Message) int { return cmp.Compare(a.From.ID, b.From.ID) })
	return all
}

// Close writes what is not written yet. It may be called twice.
func (s *Stocks) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	if !closed(s.done) {
		close(s.done)
	}
	s.mu.Unlock()
	s.writing.Wait()
}

func closed(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// write writes the file whenever something has changed.
func (s *Stocks) write() {
	for {
		select {
		case <-s.changed:
			s.save()
		case <-s.done:
			s.save()
			return
		}
	}
}

func (s *Stocks) save() {
	s.mu.Lock()
	c := content{Version: version, Told: map[job.NodeID][]byte{}}
	for name, told := range s.known {
		c.Told[name] = told
	}
	dirty := s.dirty
	s.dirty = false
	s.mu.Unlock()
	if !dirty {
		return
	}
	text, err := json.Marshal(c)
	if err == nil {
		err = durable.Replace(s.path, text, 0o600)
	}
	if err != nil {
		s.mu.Lock()
		s.dirty = true // the next change, or Close, tries again
		s.mu.Unlock()
		s.log.Warn("which slices machines have is not kept; a restart knows those of machines that are linked alone", "error", err)
	}
}
