package host

import (
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Changes are the jobs that have changed since somebody last took them: for one who follows all jobs, where Watch is for who follows some. However many change
// how often, a job is there once.
type Changes struct {
	signal chan struct{}

	mu   sync.Mutex
	jobs map[job.ID]struct{}
}

// Changes begins to follow all jobs. stop must be called once nobody takes them any more.
func (h *Host) Changes() (c *Changes, stop func()) {
	c = &Changes{signal: make(chan struct{}, 1), jobs: map[job.ID]struct{}{}}
	h.watches.mu.Lock()
	defer h.watches.mu.Unlock()
	if h.watches.all == nil {
		h.watches.all = map[*Changes]struct{}{}
	}
	h.watches.all[c] = struct{}{}
	return c, func() {
		h.watches.mu.Lock()
		defer h.watches.mu.Unlock()
		delete(h.watches.all, c)
	}
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
	default: // it has one that was not read
	}
}
