// Package zone is the home of jobs with a market beside it: it is composed of the ledger (home.Ledger), which owns their progress,
// claims and what was learned of them, of the floor (market.Floor), which turns idle slice-time into windows and windows into subjobs
// (SJA as published: one market at the zone, as if every waiting job were asked), of the planner of rigid jobs (backfill.Planner), and of
// the view, which answers what people ask (view.View). What is known of slices is in zone/sites; where there are several zones, or
// tickets, a federation is beside it (federation.go). Its own is the order of a step, and what passes between its parts.
// It is a deterministic state machine: what is durable is the ledger's, everything else is soft and forgotten by a crash. It knows no
// clock, no store and no transport.
package zone

import (
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/federation/borrow"
	"sluice.dev/sluice/internal/core/federation/lend"
	"sluice.dev/sluice/internal/core/federation/seek"
	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/view"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone/bets"
	"sluice.dev/sluice/internal/core/zone/caps"
	"sluice.dev/sluice/internal/core/zone/reach"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// Zone is one zone. It implements protocol.Actor and is not safe for concurrent use.
type Zone struct {
	cfg  Config
	self protocol.Address

	// home is the ledger: all that is durable, and what is only known of jobs until the next crash. The rest a crash forgets.
	home *home.Ledger
	// floor is where windows are offered and sold, planner keeps placements for rigid jobs.
	floor   *market.Floor
	planner *backfill.Planner
	// sites are what is known of slices, bets on what subjobs were sold there, caps which gangs the queues' caps keep waiting, reach what
	// could run.
	sites *sites.Sites
	bets  *bets.Bets
	caps  *caps.Caps
	reach *reach.Reach
	// gangs is room for those of the planner.
	gangs []*home.Job
	// foresight is what is learned of waits.
	foresight foresight.Learner
	// view answers what people ask (answers.go). It changes nothing.
	view *view.View
	federation

	// woken is the earliest wake-up already asked for.
	woken quantity.Instant
	// pass replaces what follows every input; nil but in tests, which put the plain pass in its place.
	pass func(now quantity.Instant, out *protocol.Out)
}

// federation is what a zone has where there are several, or tickets (federation.go). All of it is soft.
type federation struct {
	// seek makes jobs look for places with tickets; nil where windows are offered.
	seek *seek.Seek
	// guests are parts of gangs for which places are kept here, borrowers the gangs that are too large for the zone; nil where there is no
	// other zone.
	guests    *lend.Guests
	borrowers *borrow.Borrowers
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
