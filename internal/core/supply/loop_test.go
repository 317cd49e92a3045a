package supply

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// tick of the simulated world: how often a provider looks.
const tick = 5 * time.Second

// longest is how long the world is watched at most.
const longest = 96 * time.Hour

// troubles are what a host does to pilots, in events a day.
type troubles struct{ refuses, fails, preempts, forgets, silences float64 }

// hosted is a simulated host with its pilots, and the jobs that these serve.
type hosted struct {
	t     *testing.T
	r     *rand.Rand
	now   quantity.Instant
	blind bool
	troubles
	pool     Pool
	machines []*machine
	pilots   []*flight
	endings  []Ending
	jobs     []*task
	silent   quantity.Instant // until then it does not answer
	seen     quantity.Instant
	// pass is when it starts what waits, each up to slow after the one before.
	pass   quantity.Instant
	slow   time.Duration
	number int
	last   Order
	count  struct{ asked, useful, refused, failed, preempted, forgotten, withdrawn, done int }
	// sold is how much of the time was that pilots have lived.
	sold, lived time.Duration
}

// machine is one of the host's, with when others have it: sorted, disjoint. Pilots run in between.
type machine struct {
	busy  [][2]quantity.Instant
	pilot *flight
}

// free is until when nobody else has the machine; now if somebody has.
func (m *machine) free(now quantity.Instant) quantity.Instant {
	for _, b := range m.busy {
		if b[1] > now {
			return max(now, b[0])
		}
	}
	return quantity.Never
}

// flight is a pilot.
type flight struct {
	Pilot
	on *machine
	// joins is when its machine joins; Never: it won't. ends is when its host takes it back.
	joins, ends quantity.Instant
	what        *task
	from, until quantity.Instant // of what it has
	worked      bool
}

// task is a job with what is left of it.
type task struct {
	Demand
	width   int
	running int
	due     quantity.Instant // when it comes
}

func (h *hosted) chance(perDay float64) bool { return h.r.Float64() < perDay*tick.Hours()/24 }

func (h *hosted) between(a, b time.Duration) time.Duration {
	return a + time.Duration(h.r.Int64N(int64(b-a)))
}

// end ends a pilot.
func (h *hosted) end(x *flight, how How) {
	if x.what != nil { // what it had is lost as far as it was not saved
		x.what.running--
		if !x.what.Whole && how != Vanished {
			h.commit(x, h.now.Sub(x.from)/2)
		}
		x.what = nil
	}
	if x.on != nil {
		x.on.pilot = nil
		h.lived += h.now.Sub(x.Started)
	}
	h.pilots = slices.DeleteFunc(h.pilots, func(o *flight) bool { return o == x })
	h.endings = append(h.endings, Ending{Name: x.Name, How: how, Length: x.Length, Asked: x.Asked, Started: x.Started, Joined: x.Joined,
		Ended: h.now, Why: "so"})
	h.endings = h.endings[max(0, len(h.endings)-MostEndings):]
	switch how {
	case Done:
		h.count.done++
	case Withdrawn:
		h.count.withdrawn++
	case Preempted:
		h.count.preempted++
	case Refused:
		h.count.refused++
	case Failed:
		h.count.failed++
	case Vanished:
		h.count.forgotten++
	}
	if x.worked {
		h.count.useful++
	}
}

// commit takes what a piece did of its job.
func (h *hosted) commit(x *flight, wall time.Duration) {
	x.what.Left -= min(x.what.Left, max(0, wall-x.what.Costs))
}

// live has the host do what it does of itself.
func (h *hosted) live() {
	if h.now >= h.silent && h.chance(h.silences) {
		h.silent = h.now.Add(h.between(time.Minute, 20*time.Minute))
	}
	for _, x := range slices.Clone(h.pilots) {
		switch {
		case x.State == Leaving && h.now >= x.ends:
			h.end(x, Preempted)
		case x.on != nil && x.State == Starting && x.joins == quantity.Never && h.now.Sub(x.Started) > time.Minute:
			h.end(x, Failed)
		case h.chance(h.forgets):
			h.end(x, Vanished)
		case x.State == Starting && h.now >= x.joins:
			x.State, x.Joined = Joined, h.now
		case x.on != nil && x.State != Leaving && h.chance(h.preempts):
			x.State, x.ends = Leaving, h.now.Add(30*time.Second)
			x.on.busy = append(x.on.busy, [2]quantity.Instant{x.ends, x.ends.Add(h.between(time.Minute, time.Hour))})
			slices.SortFunc(x.on.busy, func(a, b [2]quantity.Instant) int { return cmp.Compare(a[0], b[0]) })
		case x.on != nil && h.now >= x.Until:
			h.end(x, Done)
		}
	}
	if h.now < h.pass {
		return
	}
	if h.slow > 0 {
		h.pass = h.now.Add(h.between(h.slow/10, h.slow))
	}
	for _, x := range h.pilots { // by when they were asked for
		if !x.waits() {
			continue
		}
		x.State = Waiting
		for _, m := range h.machines {
			if m.pilot == nil && m.free(h.now).Sub(h.now) >= x.Length {
				x.on, m.pilot = m, x
				x.State, x.Started, x.Until = Starting, h.now, h.now.Add(x.Length)
				x.joins = h.now.Add(h.between(10*time.Second, 50*time.Second))
				if h.r.Float64() < h.fails/100 {
					x.joins = quantity.Never
				}
				break
			}
		}
	}
}

// sight is what its provider sees.
func (h *hosted) sight() *Sight {
	s := &Sight{Pool: h.pool, Seen: h.seen, Blind: h.blind, Endings: slices.Clone(h.endings)}
	if h.now < h.silent {
		s.Silent = "it timed out"
	} else {
		s.Seen, h.seen = h.now, h.now
	}
	for _, x := range h.pilots {
		s.Pilots = append(s.Pilots, x.Pilot)
	}
	for _, m := range h.machines {
		if end := m.free(h.now); !h.blind && m.pilot == nil && end > h.now {
			s.Gaps = append(s.Gaps, Gap{h.now, end, 1})
		}
	}
	return s
}

// obey does what was ordered.
func (h *hosted) obey(o *Order) {
	for _, x := range h.pilots {
		if !slices.Contains(o.Idle, x.Name) {
			x.Idle = 0
		} else if x.Idle == 0 {
			x.Idle = h.now
		}
	}
	if h.now < h.silent {
		return
	}
	for _, c := range o.Cancel {
		x := h.pilots[slices.IndexFunc(h.pilots, func(x *flight) bool { return x.Name == c.Name })]
		if x.State == Joined {
			h.end(x, Done)
		} else {
			h.end(x, Withdrawn)
		}
	}
	for _, l := range o.Ask {
		h.number++
		h.count.asked++
		x := &flight{Pilot: Pilot{Name: fmt.Sprintf("p-%06d", h.number), State: Sent, Length: l, Asked: h.now}}
		h.pilots = append(h.pilots, x)
		if h.r.Float64() < h.refuses/100 {
			h.end(x, Refused)
		}
	}
	if len(h.pilots) > h.pool.Most {
		h.t.Fatalf("%d pilots, of at most %d", len(h.pilots), h.pool.Most)
	}
}

// demand is what waits.
func (h *hosted) demand() (list []Demand) {
	for _, j := range h.jobs {
		d := j.Demand
		d.Width = j.width - j.running
		if d.Whole {
			d.Least = d.Left
		}
		for _, x := range h.pilots {
			if x.what == j {
				d.Left -= x.until.Sub(x.from) - j.Costs
			}
		}
		if j.due <= h.now && d.Left > 0 && d.Width > 0 {
			list = append(list, d)
		}
	}
	return list
}

// sell has free pilots take pieces, as a market would.
func (h *hosted) sell() {
	for _, x := range h.pilots {
		if x.what != nil && h.now >= x.until {
			x.what.running--
			h.commit(x, x.until.Sub(x.from))
			x.what, x.worked = nil, true
		}
	}
	for _, x := range h.pilots {
		if x.State != Joined || x.what != nil {
			continue
		}
		room := x.Until.Sub(h.now) - h.pool.HandOver
		for _, d := range h.demand() {
			if room >= d.piece() {
				wall := d.Left
				if !d.Whole {
					wall = min(room, max(d.Least, d.Left/time.Duration(2*d.Width)+d.Costs))
				}
				j := h.jobs[slices.IndexFunc(h.jobs, func(j *task) bool { return j.Job == d.Job })]
				j.running++
				x.what, x.from, x.until = j, h.now, h.now.Add(wall)
				h.sold += wall
				break
			}
		}
	}
}

func (h *hosted) slots() (list []Slot) {
	for _, x := range h.pilots {
		if x.State == Joined {
			s := Slot{Node: job.NodeID(x.Name), Free: h.now, Until: x.Until - quantity.Instant(h.pool.HandOver), Usable: true}
			if x.what != nil {
				s.Free = x.until
			}
			list = append(list, s)
		}
	}
	return list
}

// left is how many jobs are not done.
func (h *hosted) left() (n int) {
	for _, j := range h.jobs {
		if j.Left > 0 {
			n++
		}
	}
	return n
}

// newHosted makes a host with jobs that come over a day.
func newHosted(t *testing.T, seed uint64, blind bool, bad troubles) *hosted {
	h := &hosted{t: t, r: rand.New(rand.NewPCG(seed, 1)), now: noon, seen: noon, blind: blind, troubles: bad, pool: Pool{
		Name: "p", Most: 6, Lengths: []time.Duration{5 * time.Minute, 30 * time.Minute, 2 * time.Hour}, Step: time.Minute,
		Idle: 2 * time.Minute, Start: 30 * time.Second, HandOver: 20 * time.Second, Slices: make([]Slice, 1),
	}}
	for range 5 {
		m := &machine{}
		for at := noon; at < noon.Add(longest); {
			from := at.Add(h.between(2*time.Minute, 3*time.Hour))
			at = from.Add(h.between(time.Minute, 2*time.Hour))
			m.busy = append(m.busy, [2]quantity.Instant{from, at})
		}
		h.machines = append(h.machines, m)
	}
	for i := range 30 {
		j := &task{Demand: Demand{Job: job.ID(fmt.Sprint("j", i)), Left: h.between(20*time.Second, 4*time.Hour), Least: 90 * time.Second,
			Costs: 10 * time.Second}, width: 1 + h.r.IntN(4), due: noon.Add(h.between(0, 24*time.Hour))}
		if i%5 == 0 {
			j.Left, j.Whole, j.Costs, j.width = h.between(time.Minute, 80*time.Minute), true, 0, 1
		}
		h.jobs = append(h.jobs, j)
	}
	return h
}

// TestDays: over days of a host that grants and refuses, takes back, forgets and says nothing, all work gets done, no pilot is left behind,
// and not many more are asked for than do something or come to grief.
func TestDays(t *testing.T) {
	for _, c := range []struct {
		name  string
		blind bool
		bad   troubles
		slow  time.Duration
		// waste is how many pilots may be asked for, for each that does something or fails, in tenths.
		waste int
	}{
		{name: "a good host", waste: 15},
		{name: "a blind one", blind: true, waste: 30},
		{name: "a slow one", slow: 90 * time.Second, waste: 30},
		{name: "a bad one", bad: troubles{refuses: 10, fails: 10, preempts: 20, forgets: 10, silences: 10}, waste: 15},
		{name: "a bad blind one", blind: true, bad: troubles{refuses: 10, fails: 10, preempts: 20, forgets: 10, silences: 10}, waste: 30},
	} {
		for seed := range uint64(2) {
			h := newHosted(t, seed, c.blind, c.bad)
			h.slow = cmp.Or(c.slow, 30*time.Second)
			quiet := quantity.Instant(0)
			for end := noon.Add(longest); h.now < end && (quiet == 0 || h.now < quiet.Add(time.Hour)); h.now = h.now.Add(tick) {
				h.live()
				h.sell()
				o := Decide(h.now, h.sight(), h.demand(), h.slots())
				h.obey(&o)
				h.last = o
				if h.left() == 0 && quiet == 0 {
					quiet = h.now
				}
			}
			trouble := h.count.refused + h.count.failed + h.count.preempted + h.count.forgotten
			t.Logf("%s, %d: done after %v, %+v, sold %v of %v", c.name, seed, quiet.Sub(noon), h.count, h.sold.Round(time.Minute),
				h.lived.Round(time.Minute))
			if h.left() > 0 {
				t.Errorf("%s, %d: %d jobs are not done, though %s", c.name, seed, h.left(), h.last.Why)
			}
			if len(h.pilots) > 0 {
				t.Errorf("%s, %d: %d pilots are left behind", c.name, seed, len(h.pilots))
			}
			if trouble == 0 && h.sold < h.lived*9/10 {
				t.Errorf("%s, %d: of %v of pilots' time only %v were sold", c.name, seed, h.lived, h.sold)
			}
			if 10*h.count.asked > c.waste*(h.count.useful+trouble) {
				t.Errorf("%s, %d: asked for %d, of which %d did something and %d failed", c.name, seed, h.count.asked, h.count.useful,
					trouble)
			}
		}
	}
}
