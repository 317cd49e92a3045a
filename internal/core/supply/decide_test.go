package supply

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	second = time.Second
	minute = time.Minute
	hour   = time.Hour
)

// noon is now in the stories.
const noon = quantity.Instant(1_800_000_000_000_000_000)

func in(d time.Duration) quantity.Instant { return noon + quantity.Instant(d) }

// scavenger is a pool whose pilots take a minute to join and are not sold for their last half minute: 1m30s of each is lost.
func scavenger() Pool {
	return Pool{
		Name: "scavenger", Most: 4, Lengths: []time.Duration{10 * minute, 30 * minute, 2 * hour}, Step: minute, Idle: 2 * minute,
		Start: minute, HandOver: 30 * second, Slices: []Slice{{Speed: 1000}},
	}
}

// open is a host that shows these gaps.
func open(gaps ...Gap) Sight { return Sight{Number: 7, Pool: scavenger(), Seen: noon, Gaps: gaps} }

// blind is one that shows none.
func blind() Sight { return Sight{Number: 7, Pool: scavenger(), Seen: noon, Blind: true} }

func gap(from, to time.Duration, count int) Gap { return Gap{in(from), in(to), count} }

// work is a job of so much, in pieces of at least a minute.
func work(name string, left time.Duration, width int) Demand {
	return Demand{Job: job.ID(name), Left: left, Least: minute, Width: width}
}

// whole is a job that is not divisible.
func whole(name string, left time.Duration) Demand {
	return Demand{Job: job.ID(name), Left: left, Least: left, Whole: true, Width: 1}
}

func slot(node string, free, until time.Duration) Slot {
	return Slot{Node: job.NodeID(node), Free: in(free), Until: in(until), Usable: true}
}

func with(s Sight, change func(*Sight)) Sight {
	change(&s)
	return s
}

// TestStories are situations and what is made of them.
func TestStories(t *testing.T) {
	forever := Gap{Start: noon, End: quantity.Never, Count: 8}
	ended := func(how How, asked, at time.Duration) Ending {
		return Ending{Name: "x", How: how, Asked: in(asked), Ended: in(at), Why: "QOSMaxSubmitJobPerUserLimit"}
	}
	limited := func(asked, at time.Duration) Ending {
		e := ended(Refused, asked, at)
		e.Limited = true
		return e
	}
	waiting := func(name string, length, asked time.Duration) Pilot {
		return Pilot{Name: name, State: Waiting, Length: length, Asked: in(asked)}
	}
	joined := func(name string, until time.Duration) Pilot {
		return Pilot{Name: name, State: Joined, Length: 2 * hour, Asked: in(-hour), Started: in(-hour), Joined: in(-hour + minute),
			Until: in(until)}
	}
	recalled := func(name string) Pilot {
		return Pilot{Name: name, State: Leaving, Length: hour, Started: in(-hour), Joined: in(-hour), Until: in(20 * second),
			Recalled: true}
	}
	idleSince := func(p Pilot, at time.Duration) Pilot { p.Idle = in(at); return p }
	for _, c := range []struct {
		name   string
		s      Sight
		demand []Demand
		slots  []Slot
		ask    []time.Duration
		cancel []string
		idle   []string
		why    string
		next   time.Duration
	}{
		{name: "nothing waits", s: open(forever), why: "nothing is asked for: no job waits", next: 30 * second},
		{name: "a job, and room without an end", s: open(forever), demand: []Demand{work("a", 20*minute, 1)},
			ask: []time.Duration{22 * minute}, why: "asked for 1 pilot of 22m for job a", next: 30 * second},
		{name: "short work, at least the shortest length", s: open(forever), demand: []Demand{work("a", minute, 1)},
			ask: []time.Duration{10 * minute}},
		{name: "more than the longest holds", s: open(forever), demand: []Demand{work("a", 9*hour, 1)}, ask: []time.Duration{2 * hour}},
		{name: "costs of a piece count", s: open(forever), ask: []time.Duration{27 * minute},
			demand: []Demand{{Job: "a", Left: 20 * minute, Least: 6 * minute, Costs: 5 * minute, Width: 1}}},
		{name: "the gap that is there, in whole minutes", s: open(gap(0, 20*minute+15*second, 1)), demand: []Demand{work("a", hour, 1)},
			ask: []time.Duration{20 * minute}},
		{name: "the smallest that holds it", s: open(gap(-hour, hour, 1), gap(0, 15*minute, 1), gap(0, 30*minute, 1)),
			demand: []Demand{whole("a", 20*minute)}, ask: []time.Duration{22 * minute}},
		{name: "the long gap is left to long work", s: open(gap(0, hour, 1), gap(0, 20*minute, 1)),
			demand: []Demand{work("a", 8*minute, 1), whole("b", 50*minute)}, ask: []time.Duration{10 * minute, 52 * minute}},
		{name: "one gap, as often as it has room", s: open(gap(0, 20*minute, 2)), ask: []time.Duration{20 * minute, 20 * minute},
			demand: []Demand{work("a", hour, 1), work("b", hour, 1), work("c", hour, 1)}, why: "for jobs a and b"},
		{name: "spread over its width", s: open(forever), demand: []Demand{work("a", hour, 3)},
			ask: []time.Duration{22 * minute, 22 * minute, 22 * minute}},
		{name: "shares are longer than a pilot costs", s: open(forever), demand: []Demand{work("a", 3*minute, 8)},
			ask: []time.Duration{10 * minute}},
		{name: "no more than there may be", s: open(forever), demand: []Demand{work("a", 9*hour, 8)},
			ask: []time.Duration{2 * hour, 2 * hour, 2 * hour, 2 * hour}},
		{name: "pilots of two slices", s: with(open(forever), func(s *Sight) { s.Pool.Slices = make([]Slice, 2) }),
			demand: []Demand{work("a", hour, 4)}, ask: []time.Duration{17 * minute, 17 * minute}},
		{name: "it is running somewhere else", s: open(forever), demand: []Demand{work("a", hour, 1)},
			slots: []Slot{slot("own", 0, 9*hour)}, why: "what waits is served by the slices that there are"},
		{name: "what runs is over sooner than a pilot is there", s: open(forever), demand: []Demand{work("a", hour, 1)},
			slots: []Slot{slot("own", 80*second, 9*hour)}, why: "what waits is served"},
		{name: "what runs takes longer than a pilot", s: open(forever), demand: []Demand{work("a", 8*minute, 1)},
			slots: []Slot{slot("own", 100*second, 9*hour)}, ask: []time.Duration{10 * minute}},
		{name: "a slot that is not sold is none", s: open(forever), demand: []Demand{work("a", 8*minute, 1)},
			slots: []Slot{{Node: "own", Free: noon, Until: quantity.Never}}, ask: []time.Duration{10 * minute}},
		{name: "a slot that can not serve it is none", s: open(forever), slots: []Slot{slot("own", 0, 9*hour)},
			demand: []Demand{{Job: "a", Left: 8 * minute, Least: minute, Width: 1, Barred: []int{0}}}, ask: []time.Duration{10 * minute}},
		{name: "a slot that ends too soon", s: open(forever), demand: []Demand{whole("a", 8*minute)},
			slots: []Slot{slot("own", 0, 7*minute)}, ask: []time.Duration{10 * minute}},
		{name: "a long slot is left to long work", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{joined("p", 9*minute)} }),
			slots: []Slot{slot("own", 0, 9*hour), slot("p", 0, 9*minute)}, idle: []string{"p"},
			demand: []Demand{work("a", minute, 1), whole("b", 20*minute)}, why: "what waits is served"},
		{name: "many short jobs on one slot", s: open(forever), slots: []Slot{slot("own", 0, 9*hour)},
			demand: []Demand{whole("a", minute), whole("b", 20*second), whole("c", hour)}, why: "what waits is served"},
		{name: "on their way is enough", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 2*hour, -minute)} }),
			demand: []Demand{work("a", hour, 1)}, why: "by pilots on their way"},
		{name: "on its way, and too short", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 10*minute, -minute)} }),
			demand: []Demand{whole("a", hour)}, ask: []time.Duration{62 * minute}, cancel: []string{"p"}},
		{name: "asked for a moment ago is left alone", why: "nothing is asked for: no job waits", next: 2 * second,
			s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 10*minute, -3*second)} })},
		{name: "nothing is left for it", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 10*minute, -minute)} }),
			cancel: []string{"p"}, why: "gave back p, nothing is left for it to do"},
		{name: "what waits takes the room that is shown", demand: []Demand{work("a", hour, 1), work("b", hour, 1)},
			s:   with(open(gap(0, 20*minute, 1)), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 20*minute, -second)} }),
			why: "all gaps that are long enough have a pilot that is asked for or waits", next: second},
		{name: "a pilot that missed its gap makes room for one that fits", demand: []Demand{work("a", hour, 1)},
			s:   with(open(gap(0, 19*minute, 1)), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 20*minute, -minute)} }),
			ask: []time.Duration{19 * minute}, cancel: []string{"p"}, why: "gave back p, the gap that it was asked for is over"},
		{name: "one that missed its gap stays where there is no other", demand: []Demand{work("a", hour, 1)},
			s:   with(open(gap(0, 9*minute, 1)), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 20*minute, -minute)} }),
			why: "the longest gap that the host shows is 9m, and a pilot is at least 10m"},
		{name: "starts, and is overdue", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) {
				s.Pilots = []Pilot{{Name: "p", State: Starting, Length: 2 * hour, Asked: in(-hour), Started: in(-hour), Until: in(hour)}}
			})},
		{name: "starts", demand: []Demand{work("a", 8*minute, 1)}, why: "by pilots on their way",
			s: with(open(forever), func(s *Sight) {
				s.Pilots = []Pilot{{Name: "p", State: Starting, Length: 2 * hour, Started: in(-minute), Until: in(hour)}}
			})},
		{name: "starts, and is not sold long enough", demand: []Demand{whole("a", 8*minute)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) {
				s.Pilots = []Pilot{{Name: "p", State: Starting, Length: 2 * hour, Started: in(-minute), Until: in(8*minute + 20*second)}}
			})},
		{name: "leaves", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute}, slots: []Slot{slot("p", 0, hour)},
			s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{{Name: "p", State: Leaving, Length: hour, Until: in(hour)}} })},
		{name: "a gap was missed lately", demand: []Demand{work("a", hour, 1)}, ask: []time.Duration{19 * minute},
			s: with(open(gap(0, 20*minute+15*second, 1)), func(s *Sight) { s.Endings = []Ending{ended(Withdrawn, -hour, -hour+minute)} })},
		{name: "a gap was missed long ago", demand: []Demand{work("a", hour, 1)}, ask: []time.Duration{20 * minute},
			s: with(open(gap(0, 20*minute+15*second, 1)), func(s *Sight) {
				s.Endings = []Ending{ended(Withdrawn, -4*hour, -4*hour+minute)}
			})},
		{name: "its host takes it back, and it has something", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{recalled("p")} }),
			slots: []Slot{slot("p", minute, hour), slot("p", 0, hour)}},
		{name: "its host takes it back, and it has nothing", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{recalled("p")} }),
			slots: []Slot{slot("p", 0, hour)}, cancel: []string{"p"}, why: "gave back p, it has handed over what it had"},
		{name: "its host takes it back, and nobody knows what it has",
			s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{recalled("p")} })},
		{name: "its host takes it back before its machine has joined", s: with(open(forever), func(s *Sight) {
			s.Pilots = []Pilot{recalled("p")}
			s.Pilots[0].Joined = 0
		}), cancel: []string{"p"}, why: "gave back p, others have its room, and its machine has not joined"},
		{name: "those that leave count", demand: []Demand{work("a", 8*minute, 1)},
			s: with(open(forever), func(s *Sight) {
				s.Pool.Most, s.Pilots = 1, []Pilot{{Name: "p", State: Leaving, Length: hour, Until: in(hour)}}
			}), why: "the pool has 1 pilot, as many as it may have"},
		{name: "a gap that begins later", s: open(gap(12*second, hour, 4)), demand: []Demand{work("a", hour, 1)},
			why: "the host shows no room for a pilot now; the next gap begins in 12s", next: second},
		{name: "no gap holds the least piece", s: open(gap(0, 21*minute, 4)), demand: []Demand{whole("a", 20*minute)},
			why: "the longest gap that the host shows is 21m, and the least piece of job a needs a pilot of 21m30s: 20m of work, 1m " +
				"until a pilot has joined and 30s to hand over"},
		{name: "no pilot may be so long", s: open(forever), demand: []Demand{whole("a", 2*hour)},
			why: "the longest pilot may be 2h, and the least piece of job a needs a pilot of 2h1m30s"},
		{name: "too long for one gap, not for another", s: open(gap(0, 11*minute, 4), gap(0, 30*minute, 1)),
			demand: []Demand{whole("a", 20*minute), whole("b", hour)}, ask: []time.Duration{22 * minute}, why: "for job a"},
		{name: "several lengths at once where gaps are not shown", s: blind(), demand: []Demand{work("a", 20*minute, 1)},
			ask: []time.Duration{30 * minute, 10 * minute}, why: "asked for 1 pilot of 30m and 1 pilot of 10m for job a"},
		{name: "only those that hold a piece", s: blind(), demand: []Demand{{Job: "a", Left: hour, Least: 20 * minute, Width: 1}},
			ask: []time.Duration{2 * hour, 30 * minute}},
		{name: "as many as there may be", s: blind(), demand: []Demand{work("a", hour, 1), work("b", hour, 1)},
			ask: []time.Duration{2 * hour, 30 * minute, 10 * minute, 2 * hour}},
		{name: "all of them wait", demand: []Demand{work("a", 20*minute, 1)}, why: "by pilots on their way",
			s: with(blind(), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 10*minute, -hour), waiting("q", 30*minute, -hour)} })},
		{name: "a longer one waits", demand: []Demand{work("a", 20*minute, 1)}, why: "by pilots on their way",
			s: with(blind(), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 10*minute, -hour), waiting("q", 2*hour, -hour)} })},
		{name: "a shorter one waits", demand: []Demand{whole("a", 20*minute)}, ask: []time.Duration{30 * minute}, cancel: []string{"p"},
			s: with(blind(), func(s *Sight) { s.Pilots = []Pilot{waiting("p", 10*minute, -hour)} })},
		{name: "one runs", demand: []Demand{work("a", 20*minute, 1)}, cancel: []string{"q"},
			s: with(blind(), func(s *Sight) {
				s.Pilots = []Pilot{{Name: "p", State: Starting, Length: 10 * minute, Started: in(-second), Asked: in(-hour)},
					waiting("q", 30*minute, -hour)}
			})},
		{name: "no length holds the least piece", s: blind(), demand: []Demand{whole("a", 2*hour)},
			why: "the longest pilot may be 2h, and the least piece of job a needs a pilot of 2h1m30s"},
		{name: "refused once", demand: []Demand{work("a", hour, 1)}, next: 20 * second,
			s: with(open(forever), func(s *Sight) { s.Endings = []Ending{ended(Refused, -20*second, -10*second)} }),
			why: "asking failed once, and no pilot has joined since; the last was refused: QOSMaxSubmitJobPerUserLimit; the next is " +
				"asked for in 20s"},
		{name: "eight refused at once are one reason", demand: []Demand{work("a", hour, 1)}, next: 20 * second,
			s: with(open(forever), func(s *Sight) {
				for range 8 {
					s.Endings = append(s.Endings, ended(Refused, -11*second, -10*second))
				}
			}), why: "failed once"},
		{name: "three times in a row", demand: []Demand{work("a", hour, 1)}, next: 30 * second,
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -9*minute, -8*minute), ended(Preempted, -9*minute, -7*minute),
					ended(Failed, -6*minute, -5*minute), ended(Withdrawn, -minute, -minute), ended(Vanished, -minute, -50*second)}
			}), why: "asking failed 3 times in a row, and no pilot has joined since; the last was lost: QOSMaxSubmitJobPerUserLimit; the " +
				"next is asked for in 1m10s"},
		{name: "the pause is over", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) { s.Endings = []Ending{ended(Refused, -minute, -30*second)} })},
		{name: "one was done since", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -minute, -10*second),
					{Name: "y", How: Done, Joined: in(-50 * second), Ended: in(-5 * second)}}
			})},
		{name: "one has joined since", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			slots: []Slot{slot("p", hour, hour)},
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -minute, -10*second)}
				s.Pilots = []Pilot{{Name: "p", State: Joined, Length: hour, Joined: in(-5 * second), Until: in(hour)}}
			})},
		{name: "one has joined since, and was taken back", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) {
				for i := range 8 {
					at := time.Duration(i-8) * hour
					s.Endings = append(s.Endings, ended(Refused, at, at+second),
						Ending{Name: "y", How: Preempted, Asked: in(at + 2*minute), Joined: in(at + 4*minute), Ended: in(at + 40*minute)})
				}
			})},
		{name: "one has joined since, and is taken back", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -minute, -10*second)}
				s.Pilots = []Pilot{{Name: "p", State: Leaving, Length: hour, Joined: in(-5 * second), Until: in(minute)}}
			})},
		{name: "refused since one has joined that was taken back", demand: []Demand{work("a", 8*minute, 1)}, why: "asking failed once",
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -2*hour, -2*hour), ended(Refused, -20*second, -10*second),
					{Name: "y", How: Preempted, Joined: in(-hour), Ended: in(-5 * second)}}
			}), next: 20 * second},
		{name: "preempted counts not", demand: []Demand{work("a", 8*minute, 1)}, ask: []time.Duration{10 * minute},
			s: with(open(forever), func(s *Sight) { s.Endings = []Ending{ended(Preempted, -minute, -second)} })},
		{name: "what waits stays while nothing is asked for", demand: []Demand{work("a", 20*minute, 1)}, why: "by pilots on their way",
			s: with(blind(), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -20*second, -10*second)}
				s.Pilots = []Pilot{waiting("p", 30*minute, -hour), waiting("q", 10*minute, -hour)}
			}), next: 20 * second},
		{name: "the host's limit is reached", demand: []Demand{work("a", hour, 1)}, next: 20 * second,
			s: with(open(forever), func(s *Sight) { s.Endings = []Ending{limited(-20*second, -10*second)} }),
			why: "nothing is asked for: the host takes no more for now: QOSMaxSubmitJobPerUserLimit; the next is " +
				"asked for once one of the pool's has ended, or in 20s"},
		{name: "the host's limit is no failure of those that it allows", demand: []Demand{work("a", 8*minute, 1)}, next: 30 * second,
			s: with(open(forever), func(s *Sight) {
				for i := range 12 {
					s.Endings = append(s.Endings, limited(time.Duration(i-12)*minute, time.Duration(i-12)*minute+second))
				}
				s.Endings = append(s.Endings, ended(Failed, -50*second, -35*second))
			}), ask: []time.Duration{10 * minute}},
		{name: "the host's limit is asked about again each 5 minutes", demand: []Demand{work("a", 8*minute, 1)},
			s: with(open(forever), func(s *Sight) {
				for i := range 12 {
					s.Endings = append(s.Endings, limited(time.Duration(i-12)*hour, time.Duration(i-12)*hour+second))
				}
				s.Endings[11].Asked, s.Endings[11].Ended = in(-5*minute-second), in(-5*minute)
			}), ask: []time.Duration{10 * minute}},
		{name: "one was taken back since, which makes room below the limit", demand: []Demand{work("a", 8*minute, 1)},
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{limited(-20*second, -10*second),
					{Name: "y", How: Preempted, Asked: in(-2 * hour), Joined: in(-hour), Ended: in(-5 * second)}}
			}), ask: []time.Duration{10 * minute}},
		{name: "one was withdrawn since, which makes room below the limit", demand: []Demand{work("a", 8*minute, 1)},
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{limited(-20*second, -10*second), ended(Withdrawn, -minute, -5*second)}
			}), ask: []time.Duration{10 * minute}},
		{name: "refused by a limit, and before by something else", demand: []Demand{work("a", hour, 1)}, why: "asking failed once",
			s: with(open(forever), func(s *Sight) {
				s.Endings = []Ending{ended(Refused, -20*second, -15*second), limited(-12*second, -10*second)}
			}), next: 15 * second},
		{name: "what a limit kept back says nothing of gaps", demand: []Demand{work("a", hour, 1)}, ask: []time.Duration{20 * minute},
			s: with(open(gap(0, 20*minute+15*second, 1)), func(s *Sight) {
				s.Endings = []Ending{{Name: "x", How: Withdrawn, Asked: in(-hour), Ended: in(-hour + minute), Limited: true}}
			})},
		{name: "silent", s: with(open(forever), func(s *Sight) { s.Seen, s.Silent = in(-5*minute), "squeue timed out" }),
			demand: []Demand{work("a", hour, 1)}, why: "nothing is asked for: the host has not answered for 5m: squeue timed out"},
		{name: "silent from the start", s: with(open(forever), func(s *Sight) { s.Seen, s.Silent = 0, "no slurm.conf" }),
			demand: []Demand{work("a", hour, 1)}, why: "the host has not answered yet: no slurm.conf"},
		{name: "paused", demand: []Demand{work("a", hour, 1)}, cancel: []string{"p", "q"}, why: "the pool is paused: by ann",
			s: with(open(forever), func(s *Sight) {
				s.Pool.Paused = "by ann"
				s.Pilots = []Pilot{waiting("p", hour, -second), waiting("q", hour, -hour), joined("r", hour)}
			}), slots: []Slot{slot("r", hour, hour)}},
		{name: "a pilot has nothing to do", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{joined("p", hour)} }),
			slots: []Slot{slot("p", 0, hour)}, idle: []string{"p"}},
		{name: "for some time", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{idleSince(joined("p", hour), -110*second)} }),
			slots: []Slot{slot("p", 0, hour)}, idle: []string{"p"}, next: 10 * second},
		{name: "for too long", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{idleSince(joined("p", hour), -2*minute)} }),
			slots: []Slot{slot("p", 0, hour)}, idle: []string{"p"}, cancel: []string{"p"},
			why: "gave back p, it has had nothing to do for 2m"},
		{name: "and a job comes", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{idleSince(joined("p", hour), -hour)} }),
			slots: []Slot{slot("p", 0, hour)}, idle: []string{"p"}, demand: []Demand{work("a", minute, 1)}, why: "what waits is served"},
		{name: "and a job comes that it can not hold", ask: []time.Duration{22 * minute}, cancel: []string{"p"}, idle: []string{"p"},
			s:     with(open(forever), func(s *Sight) { s.Pilots = []Pilot{idleSince(joined("p", 9*minute), -hour)} }),
			slots: []Slot{slot("p", 0, 9*minute)}, demand: []Demand{whole("a", 20*minute)}},
		{name: "its slices are not shown yet", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{joined("p", hour)} }),
			demand: []Demand{work("a", 8*minute, 1)}, idle: []string{"p"}, why: "by pilots on their way"},
		{name: "its slices are not shown for long", ask: []time.Duration{10 * minute}, idle: []string{"p"}, cancel: []string{"p"},
			s:      with(open(forever), func(s *Sight) { s.Pilots = []Pilot{idleSince(joined("p", hour), -2*minute)} }),
			demand: []Demand{work("a", 8*minute, 1)}},
		{name: "sent before its provider came up again, and started", idle: nil, why: "no job waits",
			s: with(open(forever), func(s *Sight) {
				s.Pilots = []Pilot{{Name: "p", State: Sent, Length: hour, Asked: in(-hour), Started: in(-minute), Until: in(hour)}}
			})},
		{name: "one of its slices is busy", s: with(open(forever), func(s *Sight) { s.Pilots = []Pilot{joined("p", hour)} }),
			slots: []Slot{slot("p", 0, hour), slot("p", minute, hour)}},
		{name: "the host takes a while to start one", s: with(open(gap(0, 20*minute+15*second, 1)), func(s *Sight) {
			s.Endings = []Ending{{How: Done, Asked: in(-hour), Started: in(-hour + 20*second), Ended: in(-minute)},
				{How: Done, Asked: in(-9 * hour), Started: in(-hour), Ended: in(-minute)}}
		}), demand: []Demand{work("a", hour, 1)}, ask: []time.Duration{19 * minute}},
		{name: "a start is learned", demand: []Demand{work("a", 5*minute, 1)}, ask: []time.Duration{16 * minute},
			s: with(open(forever), func(s *Sight) {
				for i, took := range []time.Duration{10 * minute, 20 * second, hour} {
					s.Endings = append(s.Endings, Ending{How: Done, Started: in(-9 * hour), Joined: in(-9*hour + took),
						Ended: in(time.Duration(i-9) * minute)})
				}
			})},
	} {
		o := Decide(noon, &c.s, c.demand, c.slots)
		names := func(list []Cancel) (names []string) {
			for _, x := range list {
				names = append(names, x.Name)
			}
			return names
		}
		if !slices.Equal(o.Ask, c.ask) || !slices.Equal(names(o.Cancel), c.cancel) || !slices.Equal(o.Idle, c.idle) {
			t.Errorf("%s: asks %v, want %v; cancels %v, want %v; idle %v, want %v", c.name, o.Ask, c.ask, o.Cancel, c.cancel, o.Idle,
				c.idle)
		}
		if !strings.Contains(o.Why, c.why) || len(o.Why) == 0 {
			t.Errorf("%s: it says\n\t%s\nwant\n\t%s", c.name, o.Why, c.why)
		}
		if c.next != 0 && o.Next != in(c.next) || o.Next <= noon || o.Next > in(30*second) {
			t.Errorf("%s: looks again in %v, want %v", c.name, o.Next.Sub(noon), c.next)
		}
		if o.Pool != "scavenger" || o.Number != 7 {
			t.Errorf("%s: it answers number %d of pool %s", c.name, o.Number, o.Pool)
		}
	}
}
