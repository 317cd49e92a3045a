package pages

import (
	"context"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/observe"
	"sluice.dev/sluice/internal/host/archivist"
	"sluice.dev/sluice/internal/host/datadir"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/watches"
)

// pageTurn is how many jobs one look from within the loop shows at most: well below a millisecond's worth, so that no other call waits for
// a long list.
const pageTurn = 128

// Pages asks the actors from within the loop, and reads the archive beside it. Safe for concurrent use.
type Pages struct {
	inbox    *inbox.Inbox
	views    *Views // looked at from within the loop alone
	archive  *archivist.Archivist
	watches  *watches.Watches
	observer *observe.Observer
	fresh    func() actor.Set
	full     func(job.SliceID) job.SliceID
	dataDir  string
}

// New returns the pages of a daemon. fresh makes actors without state, full returns the name of a slice of this machine in the cluster,
// and errors name dataDir.
func New(b *inbox.Inbox, v *Views, a *archivist.Archivist, w *watches.Watches, o *observe.Observer, fresh func() actor.Set,
	full func(job.SliceID) job.SliceID, dataDir string) *Pages {
	return &Pages{b, v, a, w, o, fresh, full, dataDir}
}

// adoption is how long a job may be on its way from the gate to its home before a question about it is given up.
const adoption = 5 * time.Second

// one looks a job up at its home, or in the archive once it has left there. Between its acceptance and its adoption only the gate
// knows it: a person who has just submitted it must not be told that it does not exist, nor one who has just requeued it how its last life
// ended.
func one[T any](ctx context.Context, p *Pages, name job.ID, view func(quantity.Instant, job.ID) (T, bool),
	filed func([]protocol.Fact) (T, bool, error), life func(*T) job.Generation) (T, error) {
	type result struct {
		// value is what the home shows, if it has it (ok), of life shown; present is the gate's.
		value          T
		ok             bool
		shown, present job.Generation
		// forgotten lives are on their way out of the archive.
		forgotten job.Generation
	}
	var zero T
	limit := time.NewTimer(adoption)
	defer limit.Stop()
	changed, stop := p.watches.Watch(name)
	defer stop()
	for {
		r, err := inbox.Ask(ctx, p.inbox, func(now quantity.Instant) result {
			r := result{present: p.views.Life(name), forgotten: p.views.forgotten(name)}
			if v, ok := view(now, name); ok {
				r.value, r.ok, r.shown = v, true, life(&v)
			}
			return r
		})
		if err != nil {
			return zero, err
		}
		// The actors first, the archive after: a job that has left memory by now is in the archive.
		cold := r.present == 0
		if cold {
			if r.present, err = p.archive.Life(name); err != nil {
				return zero, err
			}
			if r.present <= r.forgotten {
				r.present = 0
			}
		}
		if r.ok && r.shown == r.present {
			return r.value, nil
		}
		if r.present == 0 {
			return zero, errkind.Errorf(errkind.NotFound, "there is no job %q; see the list of jobs for those there are", name)
		}
		v, of, err := archivedView(p, name, filed, life)
		if err != nil || of == r.present {
			return v, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return zero, errkind.Errorf(errkind.Unavailable, "job %s was accepted and is on its way to its home: ask again: %w", name,
				ctx.Err())
		case <-limit.C:
			if cold && of == 0 && !r.ok { // the gate has left it to the archive, and its home did so before
				return zero, errkind.Errorf(errkind.Corrupt,
					"archive %s: what the home of job %q filed is missing: restore the archive's directory from a backup; or go on "+
						"without the job: `sluice delete %s`",
					filepath.Join(p.dataDir, datadir.ArchiveDir), name, name)
			}
			return zero, errkind.Errorf(errkind.Unavailable, "job %s was accepted and is on its way to its home: ask again", name)
		case <-p.inbox.Done():
			return zero, inbox.ErrStopping()
		}
	}
}

// archivedView shows a job that its home has left to the archive, and which life of it that is; 0 for none.
func archivedView[T any](p *Pages, name job.ID, filed func([]protocol.Fact) (T, bool, error), life func(*T) job.Generation) (v T,
	of job.Generation, err error) {
	if p.archive == nil {
		return v, 0, nil
	}
	facts, _, err := p.archive.Filed(protocol.Zone, name)
	if err != nil || facts == nil {
		return v, 0, err
	}
	v, ok, err := filed(facts)
	if err == nil && !ok {
		err = errkind.Errorf(errkind.Corrupt, "what was archived of job %s does not show it", name)
	}
	return v, life(&v), err
}

// shown returns what a zone that has nothing but the job shows of it.
func shown[T any](p *Pages, name job.ID, view func(actor.Zone, quantity.Instant, job.ID) (T, bool)) func([]protocol.Fact) (T, bool, error) {
	return func(facts []protocol.Fact) (T, bool, error) {
		v, ok := view(folded(p.fresh, facts), quantity.At(time.Now()), name)
		return v, ok, nil
	}
}

// folded is a zone that has nothing but what was filed: what it shows follows from the facts alone.
func folded(actors func() actor.Set, facts []protocol.Fact) actor.Zone {
	z := actors().Zones[0].Zone // any would show the same
	for _, f := range facts {
		z.Apply(f)
	}
	return z
}
