package process

import (
	"sync/atomic"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// watcher is the executor's side of the machine's watcher (docs/adr/0047-watcher.md): it keeps one alive, tells it which subjobs there
// are, and passes its readings to the nodes in place of the executor's own sensors'.
type watcher struct {
	// path is where supervisors find it; empty: the memory is not watched. keeper is nil where there is none.
	path   string
	keeper *watch.Keeper
	// survival is the executor's.
	survival survival.Survival
	// before is the board as this daemon found it, of watchers of earlier daemons.
	before watch.Board
	// board is the last one that was read; like rows it belongs to the sensing goroutine.
	board watch.Board
	rows  []watch.Row
	// news wakes the sensing goroutine while a watcher lives: its board has changed, or there are changes to tell it.
	news chan struct{}
	// found: Find has returned, so all running subjobs are known.
	found atomic.Bool
	// last describes its last act, for people; nil: none since this daemon began.
	last atomic.Pointer[string]
}

// lives reports whether there is a watcher.
func (w *watcher) lives() bool { return w.keeper != nil && w.keeper.Lives() }

// wake has the sensing goroutine look at once: a subjob has changed, or the watcher has acted.
func (w *watcher) wake() {
	if w.news == nil {
		return
	}
	select {
	case w.news <- struct{}{}:
	default: // a look is due anyway
	}
	w.survival.Wake()
}

// keep starts a watcher and keeps one alive, if one is wanted; base is the control group of subjobs. Without one the node decides.
func (w *watcher) keep(o *Options, base string) {
	w.path = watch.Path(o.DataDir)
	if !o.Watch {
		return
	}
	w.survival, w.news = o.Survival, make(chan struct{}, 1)
	k, err := watch.Keep(watch.Options{
		Path: w.path, Program: o.ShimPath, Kind: o.Survival.Capability().Kind, Base: base, Config: o.Airlock, Now: o.now, Changed: w.wake,
		Log: o.Logger,
	})
	if err != nil {
		if errkind.Of(err) == errkind.Conflict { // supervisors would take another's watcher for theirs
			w.path = ""
		}
		o.Logger.Error("the machine's memory has no watcher of its own: the daemon looks after it as long as it lives", "err", err)
		return
	}
	w.keeper, w.before = k, k.Before()
}

// use is what the watcher knows of a subjob, for its node.
func (w *watcher) use(t job.Token) protocol.Use {
	u := protocol.Use{Token: t}
	s, ok := w.board.Of(t)
	if !ok {
		return u
	}
	u.Resident, u.Parked, u.Growth = s.Resident, s.Parked, s.Growth
	u.Stand = protocol.Stand{Since: s.Since, Resumed: s.Resumed, Times: s.Entries}
	switch s.State {
	case airlock.Suspending, airlock.Suspended:
		u.Stand.State = protocol.IsSuspended
	case airlock.Readdressing:
		u.Stand.State = protocol.IsToYield
	case airlock.Reclaiming:
		u.Stand.State = protocol.IsEnded
	default:
	}
	return u
}

// lastStand is what the watchers of earlier daemons had last done with a subjob.
func (w *watcher) lastStand(t job.Token) (stand watch.Stand, ok bool) {
	if s, known := w.before.Of(t); known {
		return *s, true
	}
	return stand, false
}
