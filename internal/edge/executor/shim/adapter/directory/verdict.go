// Package directory runs a program that goes on from a directory of its own, stops on SIGTERM and knows nothing of the contract of subjobs
// (job.Directory): what a subjob before has left is put into that directory, the program is told to stop in time, and the directory as it
// then is becomes the subjob's checkpoint.
//
// An exit status says little of how far a program came: many end with 0 after SIGTERM, and some with another after a clean stop. So what
// the program has said, or the name of its newest checkpoint, says how far it is, and the exit status only whether it is done.
package directory

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// mark is the last number that the program had said at a moment.
type mark struct {
	at     time.Time
	number int64
}

// marks are the numbers that the program has said, in order of time. Invariant: neighbours have different numbers.
type marks []mark

// mostMarks are kept; of more, every second is forgotten.
const mostMarks = 1 << 14

// say adds a number.
func (m marks) say(at time.Time, number int64) marks {
	if n := len(m); n > 0 && m[n-1].number == number {
		return m
	}
	if len(m) == mostMarks {
		thin := m[:0]
		for i := 1; i < len(m); i += 2 {
			thin = append(thin, m[i])
		}
		m = thin
	}
	return append(m, mark{at, number})
}

// behind is how much later than a checkpoint what a program says of it may be read.
const behind = time.Second

// by is the number that belongs to a directory that last changed then; false if there is none. Programs say it before they save, or
// behind that: it is the last one that was said before, or the next one, whichever is nearer. So at most one number too many counts.
func (m marks) by(changed time.Time) (number int64, ok bool) {
	next, _ := slices.BinarySearchFunc(m, changed, func(said mark, at time.Time) int {
		if said.at.After(at) {
			return 1
		}
		return -1
	})
	if next < len(m) {
		late := m[next].at.Sub(changed)
		if late <= behind && (next == 0 || late < changed.Sub(m[next-1].at)) {
			return m[next].number, true
		}
	}
	if next == 0 {
		return 0, false
	}
	return m[next-1].number, true
}

// numberIn is what an expression says in a line of output: its first group, or the last number of what it matches.
func numberIn(line string, by *regexp.Regexp) (number int64, ok bool) {
	found := by.FindStringSubmatch(line)
	if found == nil {
		return 0, false
	}
	if len(found) > 1 {
		return lastNumber(found[1])
	}
	return lastNumber(found[0])
}

// numberOf is the last number in a checkpoint's name, its extension apart.
func numberOf(name string) (number int64, ok bool) {
	return lastNumber(strings.TrimSuffix(name, filepath.Ext(name)))
}

// lastNumber is the last whole number in a text: a fraction is cut off, and a comma or low line between digits is none.
func lastNumber(text string) (number int64, ok bool) {
	digits := wholeNumber.FindAllStringSubmatch(text, -1)
	if len(digits) == 0 {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(digits[len(digits)-1][1]), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}

// wholeNumber is a number with groups of three digits or none, and with its fraction if it has one.
var wholeNumber = regexp.MustCompile(`(\d{1,3}(?:[,_]\d{3})+|\d+)(?:\.\d+)?`)

// ending is how a program ended, and what is known of how far it came.
type ending struct {
	// path of its directory, as people gave it.
	path            string
	from, to, total int64
	// told: it was asked to stop, by the supervisor or since it had done its part. status of its exit; signaled: it was killed, by that.
	told     bool
	status   int
	signaled bool
	// reached is how far its directory is; known: something says that. holds: there is a file in it. saved: the program has changed it.
	// torn: what it has saved may be written in half.
	reached            int64
	known              bool
	holds, saved, torn bool
}

// own is the status with which the program itself has ended.
const own = -1

// verdict says up to where its directory counts, from itself if it does not, whether the program is done, and with which status the
// subjob ends, with the reason where that is ours to say. A program that has not ended with 0 is not done, however far it says it is.
func (e *ending) verdict(yield int) (upTo int64, done bool, status int, why string) {
	over := e.status == 0 && !e.signaled
	switch {
	case over && e.known && e.reached >= e.total && e.to == e.total:
		return e.total, true, 0, ""
	case over && !e.told && e.total == job.OpenTotal && e.holds: // a step at least: to have come to the end is one
		return min(max(e.reached, e.from+1), e.to), true, 0, ""
	case !e.saved && (!e.holds || (!over || e.told) && (!e.known || e.reached <= e.from)):
		return e.from, false, e.failed(), e.unsaved()
	case e.saved && e.torn:
		return e.from, false, e.failed(), "the program was killed while it wrote to its checkpoint directory, which does not count: let " +
			"it end by itself on SIGTERM, with more grace if it needs that"
	case !e.holds:
		return e.from, false, e.failed(), fmt.Sprintf("there is no file in %s: the program must leave a checkpoint there when it gets "+
			"SIGTERM", e.path)
	case !e.known:
		return e.from, false, e.failed(), "nothing says how far the program came: give a regular expression that finds it in its output " +
			"(--progress), or have it name its checkpoints by number"
	case over && !e.told && e.reached <= e.from:
		return e.from, false, 1, "the program ended by itself and came no further than it was: if it is done, the number of steps " +
			"(--steps) is too high"
	}
	if upTo = min(e.reached, e.to, e.total-1); upTo <= e.from {
		return e.from, false, e.failed(), "its checkpoint directory is no further than it was"
	}
	switch {
	case !e.told && !over:
		return upTo, false, own, ""
	case upTo == e.to:
		return upTo, false, 0, ""
	}
	return upTo, false, yield, ""
}

// unsaved says that the program has changed nothing in its directory, and what may be the cause.
func (e *ending) unsaved() string {
	nothing := "nothing"
	if e.holds {
		nothing = "nothing new"
	}
	const elsewhere = "if it saves elsewhere, say where (--checkpoint-dir)"
	switch {
	case e.told:
		return fmt.Sprintf("%s was saved in %s before the program had to end: it has to save there when it gets SIGTERM, or often enough "+
			"for its windows (--set minRuntime=30m asks for longer ones); %s", nothing, e.path, elsewhere)
	case e.status != 0 || e.signaled:
		return fmt.Sprintf("%s was saved in %s before the program ended", nothing, e.path)
	}
	return fmt.Sprintf("the program ended by itself, and has saved %s in %s: %s", nothing, e.path, elsewhere)
}

// failed is the status of a subjob whose program came no further: its own, if that says so.
func (e *ending) failed() int {
	if e.status == 0 && !e.signaled {
		return 1
	}
	return own
}
