// Package provider is the contract of who lends machines for a while: a host scheduler that runs pilots for us (docs/glossary.md). What to
// ask for is decided in core/supply, when and how often in host/pilots; a provider only translates. Kinds live in folders below; every
// kind passes providertest.
//
// A host's own id of a pilot is no identity: it may be given to others after a crash, a pilot that was cancelled may come back, and two
// copies of one may run at once. Who a pilot is says its name, which the caller draws and gives to nobody else, and a kind's mark, which
// tells this daemon's pilots from all else there.
package provider

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/pilot"
)

// Provider asks one host for pilots of one pool. Its methods are safe for concurrent use, and none waits longer than its context.
//
// Errors: Unavailable: the host did not answer, or not in words that are understood; what was asked may have been done or not. Any other
// kind: it was surely not done. Of these Invalid and Unsupported are for people to mend, Exhausted is a limit that may lift by itself,
// Denied a right that the user has not.
type Provider interface {
	// Look is what the host shows now. One call asks the host as little as it can, however many pilots there are.
	Look(ctx context.Context) (Look, error)
	// Submit asks for a pilot. It may run any time from then on, also when Submit returned an error of kind Unavailable. Not idempotent.
	Submit(ctx context.Context, p Pilot) error
	// Cancel ends pilots, by name: all copies. Those that are not there are no error, and one that comes back is to be cancelled again.
	Cancel(ctx context.Context, names []string) error
	// Try says whether the host would take a pilot, without asking for it. Unsupported: the host can't be asked that.
	Try(ctx context.Context, p Pilot) (Trial, error)
	// Describe is the provider for people: `slurm: partition preempt, gpu:1g.10gb:1`.
	Describe() string
	Close() error
}

// Pilot is what is asked for.
type Pilot struct {
	// Name is of lower-case letters, digits and hyphens, at most 40 bytes.
	Name string
	// Length is how long it may run, in whole steps of the host (Step).
	Length time.Duration
	// Head is the address that its machine calls.
	Head string
	// Token that its machine joins by. It must not be readable by other users of the host.
	Token string
}

// Look is what a host shows at one moment.
type Look struct {
	// Seen are all copies of pilots with our mark that the host knows, in order of name; also ended ones, for as long as it tells of them.
	Seen []Seen
	// Gaps are when a pilot that is asked for now could be there, in order of Start, then End. Blind: the host does not show them.
	Gaps  []Gap
	Blind bool
}

// Gap is room for Count pilots, half-open. A zero End: no end is known.
type Gap struct {
	Start, End time.Time
	Count      int
}

// State is how far a copy of a pilot is at its host.
type State = pilot.State

// The states that are shown.
const (
	Waiting = pilot.Waiting
	Running = pilot.Running
	Ending  = pilot.Ending
	Ended   = pilot.Ended
)

// Seen is one copy of a pilot.
type Seen struct {
	// Name of the pilot, ID the host's own of this copy, for people.
	Name, ID string
	State    State
	// Began is when it began to run, End when it is gone at the latest, or ended, Expected when its host means to start it. Zero: nobody
	// knows.
	Began, End, Expected time.Time
	// Preempted: its host takes it back, or did. Failed: it ended otherwise than by its own exit 0 or a Cancel.
	Preempted, Failed bool
	// Limited: it waits since a limit of its host's on how much its users may have keeps it back, and not for room.
	Limited bool
	// Never: it waits, and can never start as it was asked for.
	Never bool
	// Why it waits or ended, in the host's words.
	Why string
}

// Trial is what a host would do.
type Trial struct {
	// Taken: it would take the pilot. Starts is when, zero: it does not say.
	Taken  bool
	Starts time.Time
	// Why it would not, in the host's words; Command is what was asked, for people.
	Why, Command string
}
