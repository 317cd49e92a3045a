package reclaim

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// All sentences about wishes are made here, from a Reason or a Place. They name slices and machines, and neither jobs nor those who wait:
// who may read them differs.

var verdictNames = [...]string{
	"pending", "kept", "room-free", "no-room", "backing-off", "blocked", "not-offered", "sharing", "in-turn", "limit", "preempting",
}

// String is a word for programs.
func (v Verdict) String() string { return verdictNames[v] }

// NameOf is who waits, without the remark that it does.
func NameOf(who string) string {
	name, _, _ := strings.Cut(who, ",")
	return name
}

// String is the reason in a sentence.
func (r Reason) String() string {
	switch r.Verdict {
	case Kept:
		return r.Place.String()
	case RoomFree:
		return "there seems to be room for it without stopping anything"
	case NoRoom:
		if r.Wish == "" {
			return "no places were found for all of its members at once"
		}
		return r.Search.String()
	case BackingOff:
		return r.backingOff()
	case Blocked:
		return "what it wants is not known yet"
	case NotOffered:
		return "it wants nothing that is offered here"
	case Sharing:
		return "its claims get their devices on " + r.Machine + ", in the place of another that shares them"
	case InTurn:
		return fmt.Sprintf("it, or others like it, did not use %s kept for them, so a place is kept for one of them at a time",
			number(r.Times, "place"))
	case Limit:
		return number(r.Times, "place") + " are kept for others, which is the most at once"
	case Preempting:
		return "the scheduler makes room for it on " + r.Machine + " by itself"
	default:
		return "not searched for yet"
	}
}

func (r *Reason) backingOff() string {
	switch {
	case r.Wish == "" && r.Class:
		return "backing off: others of its owner did not use places that were kept for them"
	case r.Wish == "":
		return "backing off: it was not admitted when its time came (" + number(r.Times, "time") + ")"
	case r.Class:
		return "backing off: it, or others like it, did not use " + number(r.Times, "place") + " kept for them"
	}
	return "backing off: it did not use " + number(r.Times, "place") + " kept for it"
}

// String says what a search that found no place looked at.
func (s *Search) String() string {
	switch {
	case s.Known == 0:
		return "nothing runs that could be stopped for it"
	case s.Machines == 0:
		return "it may run on none of the " + number(s.Known, "machine") + " where something could be stopped for it"
	case s.Whole:
		return "stopping all that may be stopped would not make room for it; it may run on " + number(s.Machines, "machine") +
			" of " + fmt.Sprint(s.Known)
	}
	return "no room was found for it on the " + number(s.Machines, "machine") + " searched last, even by stopping all that may be stopped"
}

// String says what the place is, and what it costs.
func (pl *Place) String() string {
	text := "a place is kept on " + pl.Machine
	if pl.Group != "" {
		text += " for one that is still to come"
	}
	if len(pl.Stops) == 0 {
		return text + ", where nothing has to be stopped"
	}
	switch {
	case pl.preempted:
		return text + ": the scheduler ends " + on(pl.Stops) + " for it"
	case pl.Open:
		text += ": " + on(pl.Stops) + " stops once that is admitted"
	case pl.scheduled():
		text += ": " + on(pl.Stops) + " stops when its time comes"
	default:
		text += ": " + on(pl.Stops) + " stops"
	}
	return text + ", which loses " + pl.Cost.String() + "; " + pl.Basis()
}

// Basis is why these subjobs stop and no others, as far as others were compared.
func (pl *Place) Basis() string {
	if pl.preempted {
		return "the cluster's scheduler chose it by itself"
	}
	s, n := &pl.Search, pl.Search.Places
	if !s.Last {
		n -= s.Avoided
	}
	var text string
	switch {
	case s.Whole && len(pl.Spared) == 0:
		text = "every way to make room for it stops some of that"
		if len(pl.Stops) == 1 {
			text = "there is no other way to make room for it"
		}
	case s.Whole && (s.Last || s.Avoided == 0):
		text = "nothing else that makes room for it loses less work"
	case s.Whole:
		text = "nothing else that makes room for it loses less work, but on machines where a place for it, or for others like it, was " +
			"not used"
	default:
		text = "of what was compared, on " + number(n, "machine") + ", nothing loses less work"
	}
	if len(pl.Spared) > 0 {
		w := &pl.Spared[0]
		text += "; in its stead stopping " + on(w.Stops) + " (" + w.Machine + ") would lose " + w.Cost.String()
	}
	if s.Last {
		text += "; a place there was not used before, and there was none on another machine"
	}
	if s.Free > 0 {
		text += "; room that seems to be free on " + number(s.Free, "machine") + " was not used"
	}
	return text
}

// Sparing is why a way to make room was not taken, for the subjobs that would have stopped.
func (pl *Place) Sparing(w *Way) string {
	text := "stopping it would lose " + w.Cost.String()
	if len(w.Stops) > 1 {
		text = "stopping " + on(w.Stops) + " would lose " + w.Cost.String()
	}
	if w.Avoided && !pl.Search.Last {
		return text + "; machines where a place for the one that waits, or for others like it, was not used come last"
	}
	text += ", and stopping " + on(pl.Stops) + " (" + pl.Machine + ") loses "
	switch {
	case pl.Cost != w.Cost:
		return text + pl.Cost.String()
	case len(pl.Stops) != len(w.Stops):
		return text + "as much with fewer subjobs"
	}
	return text + "as much"
}

// String is what is lost.
func (c Cost) String() string {
	return fmt.Sprintf("%v of work and %v of sold time", c.Lost.Round(time.Second), c.Left.Round(time.Second))
}

// on names what runs on slices.
func on(ids []job.SliceID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return "what runs on " + strings.Join(names, ", ")
}

// number counts things, in the plural unless there is one.
func number(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
