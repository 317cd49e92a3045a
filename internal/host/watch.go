package host

import (
	"slices"
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// watches are those who wait for a change of certain jobs. A change wakes them and nobody else, so that many who wait cost many
// changes nothing. The API bounds how many calls wait, and for how many jobs each.
type watches struct {
	mu  sync.Mutex
	own map[job.ID]map[*watch]struct{}
	all map[*Changes]struct{}
}

// watch is one who waits: a signal that stays until it is read.
type watch struct{ changed chan struct{} }

// Watch returns a channel that gets a signal when any of these jobs has changed since the channel was last read, or since Watch.
// stop must be called once nobody reads it any more.
func (h *Host) Watch(names ...job.ID) (changed <-chan struct{}, stop func()) {
	w := &watch{make(chan struct{}, 1)}
	h.watches.add(w, names)
	return w.changed, func() { h.watches.remove(w, names) }
}

func (s *watches) add(w *watch, names []job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.own == nil {
		s.own = map[job.ID]map[*watch]struct{}{}
	}
	for _, name := range names {
		if s.own[name] == nil {
			s.own[name] = map[*watch]struct{}{}
		}
		s.own[name][w] = struct{}{}
	}
}

func (s *watches) remove(w *watch, names []job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if delete(s.own[name], w); len(s.own[name]) == 0 {
			delete(s.own, name)
		}
	}
}

// awaited says whether somebody waits for one of the jobs that these facts are about.
func (s *watches) awaited(facts []protocol.Fact) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.own) > 0 && slices.ContainsFunc(facts, func(f protocol.Fact) bool { return len(s.own[f.Job]) > 0 })
}

// wake tells everybody who waits for one of the jobs that these facts are about.
func (s *watches) wake(facts []protocol.Fact) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.all {
		c.add(facts)
	}
	if len(s.own) == 0 {
		return
	}
	for i := range facts {
		for w := range s.own[facts[i].Job] {
			select {
			case w.changed <- struct{}{}:
			default: // it has a signal that it has not read
			}
		}
	}
}
