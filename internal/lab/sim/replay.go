package sim

import (
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/tape"
)

// Tape is a tape being read: Next returns io.EOF after the last entry.
type Tape interface {
	Next() (tape.Entry, error)
}

// Replayed says what was played.
type Replayed struct {
	// Recovered facts, calls of Step and Recover, facts and effects these gave, digests that were compared.
	Recovered, Calls, Facts, Effects, Compared int
}

// Replay plays a tape of the live shell into fresh actors, made with the tape's configuration, and compares the digest
// after every call. Fact, if not nil, is told every fact that the actors decide again. An error names the first call
// whose digest differs (kind Conflict: another build or configuration, or a decision that depends on something that is
// not its input), a gap (kind Unavailable), an actor that is not there (kind Invalid), or what the reader could not read.
func Replay(r Tape, parties []actor.Party, fact func(*protocol.Fact)) (Replayed, error) {
	var done Replayed
	actors := map[protocol.Address]protocol.Actor{}
	for _, p := range parties {
		actors[p.Address] = p.Actor
	}
	var out protocol.Out
	var last tape.Entry
	for {
		e, err := r.Next()
		if errors.Is(err, io.EOF) {
			return done, nil
		}
		if err != nil {
			return done, fmt.Errorf("after %d calls: %w", done.Calls, err)
		}
		at := e.Actor
		switch e.Kind {
		case tape.Lost:
			return done, errkind.Errorf(errkind.Unavailable,
				"after %d calls %d records are missing: what follows can't be played; raise the tape's cap to keep more", done.Calls,
				e.Missing)
		case tape.Recovered:
			at = e.Fact.Actor
		case tape.Digest:
			at = last.Actor
		default: // a call names its actor
		}
		a := actors[at]
		if a == nil {
			return done, errkind.Errorf(errkind.Invalid,
				"after %d calls: the tape has %s, which was not given: make the actors with the tape's names", done.Calls, actor.Name(at))
		}
		out.Reset()
		switch e.Kind {
		case tape.Recovered:
			a.Apply(e.Fact)
			done.Recovered++
		case tape.RecoverCall:
			a.Recover(e.Now, &out)
		case tape.StepCall:
			a.Step(e.Now, e.Message, &out)
		case tape.Digest:
			if got := a.Digest(); got != e.Digest {
				return done, errkind.Errorf(errkind.Conflict,
					"call %d (%s, message kind %d, at %v): the digest is %016x, it was %016x: another build or configuration, or a "+
						"decision that depends on more than its input",
					done.Calls, actor.Name(at), last.Message.Kind, last.Now.Time(), got, e.Digest)
			}
			done.Compared++
		default: // Lost has ended it above
		}
		if e.Kind == tape.StepCall || e.Kind == tape.RecoverCall {
			last = e
			done.Calls++
			done.Facts += len(out.Facts)
			done.Effects += len(out.Effects)
			for i := range out.Facts {
				out.Facts[i].Actor = at
				if fact != nil {
					fact(&out.Facts[i])
				}
			}
		}
	}
}
