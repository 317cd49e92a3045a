// Package zone is the home of jobs with a market beside it: it is composed of the ledger (home.Ledger), which owns their progress,
// claims and what was learned of them, of the floor (market.Floor), which turns idle slice-time into windows and windows into subjobs
// (SJA as published: one market at the zone, every waiting job is asked), of the planner of rigid jobs (backfill.Planner), and of the
// view, which answers what people ask (view.View). Its own are the views of slices and what is sold on them, and the order of a step.
// It is a deterministic state machine: what is durable is the ledger's, everything else is soft and forgotten by a crash. It knows no
// clock, no store and no transport.
package zone

import (
	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/view"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Zone is one zone. It implements protocol.Actor and is not safe for concurrent use.
type Zone struct {
	cfg  Config
	self protocol.Address

	// home is the ledger: all that is durable, and what is only known of jobs until the next crash.
	home *home.Ledger
	// sites are all slices that the zone's nodes have ever offered, and those of others while it has something there.
	sites map[job.SliceID]*slice
	// last is the one that was looked up last; nil: none.
	last *slice
	// foreign are those that were touched in this step and that nobody offers.
	foreign []*slice

	// floor is where windows are offered and sold. It knows nothing that a crash must keep.
	floor *market.Floor
	// planner keeps placements for rigid jobs.
	planner *backfill.Planner
	// view answers what people ask (answers.go). It changes nothing.
	view *view.View

	// search has the tickets of jobs; nil where windows are offered. index is the zone's number there.
	search *search.Home
	index  flow.ZoneID
	beat   beat
	// tour is where jobs negotiate at nodes; nil where they do not.
	tour *tour

	soft
	// pass replaces what follows every input; nil but in tests, which put the plain pass in its place.
	pass func(now quantity.Instant, out *protocol.Out)
}

// soft is what a crash forgets.
type soft struct {
	// kept is the gang of a queue that waits for the cap to have room; what comes after it in the queue waits too. keeping are all
	// of these, spareKept is room for the next such list.
	kept               map[*home.Queue]*home.Job
	keeping, spareKept []*home.Job
	// foresight is what is learned of waits.
	foresight foresight.Learner
	// ends is what is learned of the ends of gaps; nil: nothing is.
	ends *ends.Learner
	// stales are when slices that are left alone are to be looked at.
	stales alarm.Heap[*slice]
	// guests are parts of gangs for which places are kept here, borrowers the gangs that are too large for the zone.
	guests    guests
	borrowers borrowers
	// woken is the earliest wake-up already asked for.
	woken quantity.Instant
}

// New makes a zone without jobs.
func New(cfg Config) (*Zone, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	z := &Zone{
		cfg: cfg, self: protocol.Address{Role: protocol.Zone, ID: string(cfg.ID)},
		sites: map[job.SliceID]*slice{}, soft: soft{kept: map[*home.Queue]*home.Job{}},
	}
	z.floor = market.NewFloor(z.floorConfig(), (*seller)(z))
	z.planner = backfill.New(z.plannerConfig(), z.floor, (*placer)(z))
	if cfg.Ends > 0 {
		z.ends = ends.New(cfg.Ends)
	}
	z.home = home.New(z.ledgerConfig(), (*watcher)(z), (*fleet)(z))
	z.view = view.New(z.viewConfig(), z.viewed())
	z.beginSearch()
	z.beginVisits()
	return z, nil
}

// ledgerConfig is how the zone's ledger works.
func (z *Zone) ledgerConfig() home.Config {
	c := home.Config{
		Self: z.self, Gates: z.cfg.Gates, Archive: z.cfg.Archive, Retry: z.cfg.Retry, AskTTL: z.cfg.AskTTL, Skew: z.cfg.Skew, Backoff: z.cfg.Backoff, MaxKills: z.cfg.MaxKills,
	}
	if m := z.cfg.Market; m != nil {
		trust := m.Trust()
		c.Trust, c.Refill, c.PurseTime = &trust, m.Refill, market.PurseTime
	}
	return c
}

// Digest is a hash of the durable state.
func (z *Zone) Digest() uint64 { return z.home.Digest() }

// Apply folds one fact into the durable state.
func (z *Zone) Apply(f protocol.Fact) { z.home.Apply(f) }

// Capture implements capture.Source.
func (z *Zone) Capture() capture.Run { return z.home.Capture() }

// Kept implements actor.Keeper.
func (z *Zone) Kept() int { return z.home.Kept() }

// Recalls implements protocol.Archivist.
func (z *Zone) Recalls(m *protocol.Message) (name job.ID, ok bool) { return z.home.Recalls(m) }
