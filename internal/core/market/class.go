package market

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/ranking"
	"sluice.dev/sluice/internal/core/tally"
	"sluice.dev/sluice/internal/core/trp"
)

// maxClasses bounds the classes that answers are kept for; with more of them every job is asked each time.
const maxClasses = 64

// Class is slices that are alike to every job.
type Class struct {
	at int
	// Capacity is what pieces may need there now, Whole what the slices have: more, where their host's memory bears less (protocol.Slice).
	Capacity, Whole trp.Vector
	Profile         string
	// Speed of the slices, in parts per thousand.
	Speed int64
	// slices there are of it, and usable ones among them.
	slices, usable int
	// quiet are the places of its slices that are.
	quiet bitset.Set
	// order is the policy's on this class.
	order ranking.Order[*Job]
	// given are the latest windows that somebody got, a ring; gifts counts them.
	given [mostGiven]given
	gifts int
}

// SpeedOf is how fast a job runs on slices of the class, in parts per thousand; 0 if it can not.
func (c *Class) SpeedOf(spec *job.Spec) int64 { return spec.SpeedOn(c.Profile, c.Speed) }

// ClassOf is the class of a slice that may be none of the floor's own.
func (f *Floor) ClassOf(s *protocol.Slice) *Class { return f.classOf(s) }

// classOf finds or makes the class of a slice.
func (f *Floor) classOf(s *protocol.Slice) *Class {
	offered := s.Offered()
	for _, c := range f.classes {
		if c.Capacity == offered && c.Whole == s.Capacity && c.Speed == s.Speed && c.Profile == s.Profile {
			return c
		}
	}
	c := &Class{at: len(f.classes), Capacity: offered, Whole: s.Capacity, Profile: s.Profile, Speed: s.Speed}
	c.order.Compare = func(a, b *Job) int {
		f.pair = [2]policy.Candidate{a.keyOn(c), b.keyOn(c)}
		return f.cfg.Policy.Compare(&f.pair[0], &f.pair[1])
	}
	c.order.Key = func(j *Job) ranking.Key {
		f.pair[0] = j.keyOn(c)
		return f.cfg.Policy.Key(&f.pair[0])
	}
	f.classes, f.asked.classes = append(f.classes, c), append(f.asked.classes, &tally.Tally{})
	f.waits, f.late = append(f.waits, ranking.List[*Job]{}), append(f.late, ranking.List[*Job]{})
	if i, known := slices.BinarySearchFunc(f.speeds, c.Speed, func(a, b int64) int { return cmp.Compare(b, a) }); !known {
		f.speeds = slices.Insert(f.speeds, i, c.Speed)
	}
	var enter []*Job
	for _, j := range f.jobs {
		if f.extend(j, c) {
			enter = append(enter, j)
		}
	}
	f.rankAll(enter, c.at)
	f.lineUp(enter, c.at)
	return c
}

// At is the place of the class among the classes.
func (c *Class) At() int { return c.at }

// Slices is how many there are of it.
func (c *Class) Slices() int { return c.slices }

// Usable is how many slices of it may be sold to somebody.
func (c *Class) Usable() int { return c.usable }

// Classes are those of all slices that ever were. They are only read.
func (f *Floor) Classes() []*Class { return f.classes }
