package play

import (
	"context"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
)

// notBegun is what is wrong with a run that has not begun: nothing, if it was ended before.
func notBegun(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// stage is what a mechanism plays on.
type stage struct {
	scenario  *scenario.Scenario
	mechanism *Mechanism
	seed      uint64
	world     *world
	from      *offered
	to        measure.Observer
	progress  func(now quantity.Instant, live int)
	// market receives what it has done.
	market *measure.Negotiation
	// survival is what became of subjobs where memory ran out.
	survival *measure.Survival
	// visits is what became of guests.
	visits *measure.Visits
	// lent is what became of pilots.
	lent *measure.Lent
	// strains are what each node tells of that itself in the end, where there are nodes of the live program.
	strains *[]status.Strain
	// reclaims are filled where the mechanism is the daemon's.
	reclaims *[]status.ReclaimStep
	// mail counts what actors say; nil: nobody wants it.
	mail *measure.Mail
}
