// Package syncs syncs one directory for many who ask at once, with few syncs.
package syncs

import (
	"sync"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Shared syncs one directory for all who ask: who asks while a sync is under way shares the next one with all others who do, so
// that many subjobs that start and end together cost few syncs, and one that is alone waits for nobody. It is safe for concurrent
// use.
type Shared struct {
	// Path of the directory.
	Path string

	mu      sync.Mutex
	busy    bool
	waiting *Sync // asked for while busy; nil: nobody has
}

// Sync is one sync for all who hold it. err may be read once done is closed.
type Sync struct {
	done chan struct{}
	err  error
}

// Ask has the directory synced once more, as it is now or later, and returns at once.
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

// work syncs until nobody waits.
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
