package process

import (
	"sync"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// gathered syncs one directory for all who ask: who asks while a sync is under way shares the next one with all others who do, so
// that many subjobs that start and end together cost few syncs, and one that is alone waits for nobody. It is safe for concurrent
// use.
type gathered struct {
	path string

	mu      sync.Mutex
	busy    bool
	waiting *sharedSync // asked for while busy; nil: nobody has
}

// sharedSync is one sync for all who hold it. err may be read once done is closed.
type sharedSync struct {
	done chan struct{}
	err  error
}

// ask has the directory synced once more, as it is now or later, and returns at once.
func (g *gathered) ask() *sharedSync {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == nil {
		g.waiting = &sharedSync{done: make(chan struct{})}
		if !g.busy {
			g.busy = true
			go g.work()
		}
	}
	return g.waiting
}

// work syncs until nobody waits.
func (g *gathered) work() {
	for {
		g.mu.Lock()
		next := g.waiting
		g.waiting = nil
		g.busy = next != nil
		g.mu.Unlock()
		if next == nil {
			return
		}
		next.err = shim.SyncDir(g.path)
		close(next.done)
	}
}

// wait returns when the sync is done, with its error.
func (s *sharedSync) wait() error {
	<-s.done
	return s.err
}
