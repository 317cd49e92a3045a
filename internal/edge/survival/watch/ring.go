package watch

import (
	"fmt"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Act is one step of the watcher, as the ring has it: written before it is done.
type Act struct {
	// Life of the watcher, and when by the node's clock.
	Life  uint64
	At    quantity.Instant
	Token job.Token
	Step  airlock.Step
	Cause airlock.Cause
	Level airlock.Level
	// Relief that is expected of it, and what was Used of the machine's memory.
	Relief, Used quantity.Amount
}

// String is an act for people.
func (a *Act) String() string {
	return fmt.Sprintf("%v %v (%d MiB), since %v: %v, %d MiB used", a.Step, a.Token, a.Relief>>20, a.Cause, a.Level, a.Used>>20)
}

const (
	// actWords of one act: its number, five words, Life, and their sum.
	actWords = 8
	// ringActs is room for every subjob to stand still and go on, some times over.
	ringActs  = 4096
	ringWords = ringActs * actWords
)

// ring is what the watcher did, the last ringActs of it. It tells people why; what is so is on the board, so that what a slow reader
// misses here changes nothing.
type ring struct {
	// next is the number of the next act, from 0.
	next  words
	slots words
}

// add writes the next act.
func (r *ring) add(a *Act) {
	n := r.next.load(0)
	at := int(n%ringActs) * actWords
	w := [actWords]uint64{
		1: a.Life, 2: uint64(a.At), 3: uint64(a.Token.Epoch) | uint64(a.Step)<<32 | uint64(a.Cause)<<40 | uint64(a.Level)<<48,
		4: a.Token.Seq,
		5: uint64(a.Relief), 6: uint64(a.Used),
	}
	w[7] = sum(n+1, w[1:7])
	r.slots.store(at, 0)
	r.slots.write(at+1, w[1:])
	r.slots.store(at, n+1)
	r.next.store(0, n+1)
}

// read gives every act from a number on to each, in order, and returns the number to go on from, and how many were lost: overwritten
// before they were read, or damaged.
func (r *ring) read(from uint64, each func(*Act)) (next, lost uint64) {
	next = r.next.load(0)
	if from > next { // not this ring's
		from = next - min(next, ringActs)
	}
	for ; from < next; from++ {
		if behind := r.next.load(0); behind > from && behind-from > ringActs {
			jump := min(behind-ringActs, next)
			lost += jump - from
			if from = jump; from == next {
				break
			}
		}
		at := int(from%ringActs) * actWords
		var w [actWords]uint64
		r.slots.read(at, w[:])
		a := Act{
			Life: w[1], At: quantity.Instant(w[2]), Token: job.Token{Epoch: uint32(w[3]), Seq: w[4]}, Step: airlock.Step(w[3] >> 32),
			Cause: airlock.Cause(w[3] >> 40), Level: airlock.Level(w[3] >> 48),
			Relief: quantity.Amount(w[5]), Used: quantity.Amount(w[6]),
		}
		if w[0] != from+1 || r.slots.load(at) != from+1 || w[7] != sum(from+1, w[1:7]) ||
			a.Step < airlock.Suspend || a.Step > airlock.Reclaim || a.Cause < airlock.Deficit || a.Cause >= airlock.Causes ||
			w[3]>>48 > uint64(airlock.Emergency) {
			lost++
			continue
		}
		each(&a)
	}
	return next, lost
}
