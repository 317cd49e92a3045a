// Package watches wakes callers that wait for a job to change.
package watches

import (
	"slices"
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Watches are callers that wait for a change of certain jobs. A change wakes the callers of that job alone, so that its cost does not grow
// with the number of waiting callers. Safe for concurrent use; the zero value is ready. The API bounds how many calls wait, and for how
// many jobs each.
type Watches struct {
	mu  sync.Mutex
	own map[job.ID]map[*watch]struct{}
	all map[*Changes]struct{}
}

// watch is one waiting caller: a signal that stays until it is read.
type watch struct{ changed chan struct{} }

// Watch returns a channel that gets a signal when any of these jobs has changed since the channel was last read, or since Watch.
// stop must be called once nobody reads it any more.
func (s *Watches) Watch(names ...job.ID) (changed <-chan struct{}, stop func()) {
	w := &watch{make(chan struct{}, 1)}
	s.add(w, names)
	return w.changed, func() { s.remove(w, names) }
}

// Changes begins to follow all jobs. stop must be called once nobody takes them any more.
func (s *Watches) Changes() (c *Changes, stop func()) {
	c = &Changes{signal: make(chan struct{}, 1), jobs: map[job.ID]struct{}{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*Changes]struct{}{}
	}
	s.all[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.all, c)
	}
}

func (s *Watches) add(w *watch, names []job.ID) {
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

func (s *Watches) remove(w *watch, names []job.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if delete(s.own[name], w); len(s.own[name]) == 0 {
			delete(s.own, name)
		}
	}
}

// Awaited reports whether a caller waits for one of the jobs that these facts are about.
func (s *Watches) Awaited(facts []protocol.Fact) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.own) > 0 && slices.ContainsFunc(facts, func(f protocol.Fact) bool { return len(s.own[f.Job]) > 0 })
}

// Wake signals every caller that waits for one of the jobs that these facts are about.
func (s *Watches) Wake(facts []protocol.Fact) {
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
			default: // it has an unread signal
			}
		}
	}
}

// Changes are the jobs that have changed since somebody last took them, each once however often it has: for one who follows all jobs,
// where Watch is for one who follows some.
type Changes struct {
	signal chan struct{}

	mu   sync.Mutex
	jobs map[job.ID]struct{}
}

// Some gets a signal when there are any, which stays until it is read.
func (c *Changes) Some() <-chan struct{} { return c.signal }

// Take returns those that have changed since the last time, in no order. What they changed to is durable.
func (c *Changes) Take() []job.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]job.ID, 0, len(c.jobs))
	for name := range c.jobs {
		out = append(out, name)
	}
	clear(c.jobs)
	return out
}

// add notes the jobs that these facts are about.
func (c *Changes) add(facts []protocol.Fact) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range facts {
		if facts[i].Job != "" {
			c.jobs[facts[i].Job] = struct{}{}
		}
	}
	if len(c.jobs) == 0 {
		return
	}
	select {
	case c.signal <- struct{}{}:
	default: // it has an unread one
	}
}
