package status

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Provider is how a pool of pilots stands, and why nothing more is asked for.
type Provider struct {
	// Name of the pool, Kind of its provider, and Describes it.
	Name, Kind, Describes string
	// Paused is who paused it, and why; empty: nobody did.
	Paused string
	// Silent says why the host does not answer now; empty: it does. Seen is when it answered last; 0: not since the daemon came up.
	Silent string
	Seen   quantity.Instant
	// Blind: the host does not show gaps.
	Blind bool
	// Most is how many pilots there may be, Lengths are those that may be asked for, Slices is how many each has.
	Most    int
	Lengths []time.Duration
	Slices  int
	// Why is the newest decision in a sentence, Decided when it was taken, and Next when the next one is at the latest; 0: there was none.
	Why           string
	Decided, Next quantity.Instant
	// Pilots that may be there, by name.
	Pilots []Pilot
	// Ended are how many have ended in which way, by the words of ways; none that never was.
	Ended []Ended
	// Endings are the latest, newest first.
	Endings []PilotEnd
}

// Pilot is one that may be there. Instants are 0 where it has not come to that, or nobody knows.
type Pilot struct {
	Name string
	// State is sent, waiting, starting, joined or leaving.
	State  string
	Length time.Duration
	// ID is the host's own, for people.
	ID                                            string
	Asked, Started, Joined, Until, Expected, Idle quantity.Instant
	// Why it waits, in the host's words, or why it leaves.
	Why string
}

// Ended counts pilots that have ended in one way.
type Ended struct {
	How   string
	Count int
}

// PilotEnd is how a pilot has ended.
type PilotEnd struct {
	Name, How, Why         string
	Length                 time.Duration
	Asked, Started, Joined quantity.Instant
	Ended                  quantity.Instant
}

// Trial is what a pool would do now, and what its host says to it.
type Trial struct {
	Provider Provider
	// Length of the pilot that the host was asked about; Wanted: one would be asked for now, else it is tried all the same.
	Length time.Duration
	Wanted bool
	// Taken: the host would take it, and begin it at Starts; 0: it does not say. Else Why not, in its words. Command is what was asked.
	Taken        bool
	Starts       quantity.Instant
	Why, Command string
}
