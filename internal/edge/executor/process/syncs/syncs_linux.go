// Package syncs shares the syncs of one directory among concurrent callers.
package syncs

import (
	"sync"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Shared syncs one directory. Callers that ask while a sync is under way share the next one, so that many subjobs that start and end
// together cost few syncs, and a lone caller waits for no other. Safe for concurrent use.
type Shared struct {
	// Path of the directory.
	Path string

	mu      sync.Mutex
	busy    bool
	waiting *Sync // asked for while busy; nil: none
}

// Sync is one sync, shared by its callers. err may be read once done is closed.
type Sync struct {
	done chan struct{}
	err  error
}

// Ask begins a sync of the directory that covers its present state, and returns at once.
func (g *Shared) Ask() *Sync {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = &Sync{done: make(chan struct{})}
		if !g.busy {
			g.busy = true
			go g.work()
		}
	}
	return g.waiting
}

// work syncs until no caller waits.
func (g *Shared) work() {
	for {
		g.mu.Lock()
		next := g.waiting
		g.waiting = nil
		g.busy = next != nil
		g.mu.Unlock()
		if next == nil {
			return
		}
		next.err = shim.SyncDir(g.Path)
		close(next.done)
	}
}

// Wait returns when the sync is done, with its error.
func (s *Sync) Wait() error {
	<-s.done
	return s.err
}
