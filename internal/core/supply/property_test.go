package supply

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// scene is all that a decision depends on.
type scene struct {
	sight  Sight
	demand []Demand
	slots  []Slot
}

func (s *scene) decide() Order { return Decide(noon, &s.sight, s.demand, s.slots) }

// clone shares nothing with it that a decision could change.
func (s *scene) clone() scene {
	c := *s
	c.sight.Gaps, c.sight.Pilots, c.sight.Endings = slices.Clone(s.sight.Gaps), slices.Clone(s.sight.Pilots), slices.Clone(s.sight.Endings)
	c.sight.Pool.Lengths, c.demand, c.slots = slices.Clone(s.sight.Pool.Lengths), slices.Clone(s.demand), slices.Clone(s.slots)
	return c
}

// draw makes a small scene, in which the same few times come again and again, so that ties and edges are common.
func draw(t *rapid.T) *scene {
	pick := func(what string, of ...time.Duration) time.Duration { return rapid.SampledFrom(of).Draw(t, what) }
	chance := func(what string, percent int) bool { return rapid.IntRange(1, 100).Draw(t, what) <= percent }
	when := func(what string) quantity.Instant {
		return in(pick(what, -hour, -10*minute, -minute, -31*second, -10*second, -5*second, -4*second, 0))
	}
	ahead := func(what string) quantity.Instant {
		return in(pick(what, second, minute, 90*second, 3*minute, 5*minute, 5*minute+30*second, 20*minute, hour))
	}
	p := Pool{
		Name: "p", Most: rapid.IntRange(1, 6).Draw(t, "most"), Step: pick("step", second, minute), Idle: pick("idle", minute, 10*minute),
		Start: pick("start", 0, 30*second, minute), HandOver: pick("handOver", 0, 30*second),
		Slices: make([]Slice, rapid.IntRange(1, 2).Draw(t, "slices")),
	}
	for l := time.Duration(0); len(p.Lengths) == 0 || chance("another length", 50) && len(p.Lengths) < 3; {
		l += pick("longer", minute, 4*minute, 30*minute)
		p.Lengths = append(p.Lengths, l)
	}
	if chance("paused", 5) {
		p.Paused = "by ann"
	}
	s := &scene{sight: Sight{Number: 3, Pool: p, Seen: noon, Blind: chance("blind", 30)}}
	if chance("silent", 5) {
		s.sight.Silent = "it timed out"
	}
	for range rapid.IntRange(0, 3).Draw(t, "gaps") {
		if s.sight.Blind {
			break
		}
		g := Gap{Start: when("gap"), End: ahead("its end"), Count: rapid.IntRange(1, 3).Draw(t, "count")}
		if chance("later", 20) {
			g.Start = in(20 * second)
		}
		if chance("open", 20) {
			g.End = quantity.Never
		}
		s.sight.Gaps = append(s.sight.Gaps, g)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "pilots") {
		x := Pilot{Name: fmt.Sprint("p-", i), State: State(rapid.IntRange(int(Sent), int(Leaving)).Draw(t, "state")), Asked: when("asked"),
			Length: pick("length", minute, 5*minute, 35*minute)}
		if x.State > Waiting {
			x.Started = max(x.Asked, when("started"))
			x.Until = x.Started.Add(x.Length)
		}
		if x.State == Joined {
			x.Joined = max(x.Started, when("joined"))
			if chance("is idle", 50) {
				x.Idle = max(x.Joined, when("idle since"))
			}
			if chance("shown", 80) {
				s.slots = append(s.slots, drawSlot(t, x.Name, ahead, chance))
			}
		}
		if x.State == Leaving && chance("recalled", 50) {
			x.Recalled = true
			if chance("has joined", 80) {
				x.Joined = x.Started
			}
			if x.Joined != 0 && chance("shown", 80) {
				s.slots = append(s.slots, drawSlot(t, x.Name, ahead, chance))
			}
		}
		s.sight.Pilots = append(s.sight.Pilots, x)
	}
	for range rapid.IntRange(0, 3).Draw(t, "own slots") {
		s.slots = append(s.slots, drawSlot(t, fmt.Sprint("own-", rapid.IntRange(0, 1).Draw(t, "node")), ahead, chance))
	}
	for range rapid.IntRange(0, 3).Draw(t, "endings") {
		e := Ending{Name: "gone", How: How(rapid.IntRange(int(Done), int(Vanished)).Draw(t, "how")), Ended: when("ended"), Why: "so"}
		e.Asked = e.Ended - quantity.Instant(pick("lived", 0, 4*second, 2*minute))
		if e.How == Done && chance("had joined", 80) {
			e.Started, e.Joined = e.Asked, e.Asked
		}
		e.Limited = (e.How == Refused || e.How == Withdrawn) && chance("by a limit", 50)
		s.sight.Endings = append(s.sight.Endings, e)
	}
	slices.SortStableFunc(s.sight.Endings, func(a, b Ending) int { return cmp.Compare(a.Ended, b.Ended) })
	for i := range rapid.IntRange(0, 4).Draw(t, "jobs") {
		d := Demand{Job: job.ID(fmt.Sprint("j", i)), Left: pick("left", 10*second, minute, 4*minute, 30*minute, 9*hour),
			Least: pick("least", second, minute, 3*minute), Width: rapid.IntRange(1, 4).Draw(t, "width"),
			Costs: pick("costs", 0, second)}
		if chance("whole", 30) {
			d.Whole, d.Least, d.Width, d.Costs = true, d.Left, 1, 0
		}
		if chance("barred", 20) {
			d.Barred = []int{0}
		}
		s.demand = append(s.demand, d)
	}
	return s
}

func drawSlot(t *rapid.T, node string, ahead func(string) quantity.Instant, chance func(string, int) bool) Slot {
	x := Slot{Node: job.NodeID(node), Free: noon, Until: quantity.Never, Usable: chance("usable", 80)}
	if chance("busy", 40) {
		x.Free = ahead("free")
	}
	if chance("ends", 50) {
		x.Until = max(x.Free, ahead("until"))
	}
	return x
}

// cost of a pilot that is not sold, and the bounds of its length, worked out anew.
func (s *scene) cost() (cost, shortest, longest time.Duration) {
	p := &s.sight.Pool
	up := func(d time.Duration) time.Duration {
		for d%p.Step != 0 {
			d += second
		}
		return d
	}
	type took struct {
		joined quantity.Instant
		d      time.Duration
	}
	var all []took
	for _, e := range s.sight.Endings {
		if e.Started != 0 && e.Joined != 0 {
			all = append(all, took{e.Joined, e.Joined.Sub(e.Started)})
		}
	}
	for _, x := range s.sight.Pilots {
		if x.Started != 0 && x.Joined != 0 {
			all = append(all, took{x.Joined, x.Joined.Sub(x.Started)})
		}
	}
	start := p.Start // fewer than the newest fifteen
	if len(all) > 0 {
		slices.SortFunc(all, func(a, b took) int { return cmp.Compare(a.d, b.d) })
		start = all[len(all)/2].d
	}
	return start + p.HandOver, up(p.Lengths[0]), up(p.Lengths[len(p.Lengths)-1])
}

// wait is the time that the host takes to start a pilot.
func (s *scene) wait() time.Duration {
	var all []time.Duration
	note := func(asked, started quantity.Instant) {
		if d := started.Sub(asked); asked != 0 && d >= 0 && d <= minute {
			all = append(all, d)
		}
	}
	for _, e := range s.sight.Endings {
		note(e.Asked, e.Started)
	}
	for _, x := range s.sight.Pilots {
		note(x.Asked, x.Started)
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// barred says, by going through the endings one by one, whether nothing may be asked for.
func (s *scene) barred() bool {
	n, until, last := 0, quantity.Instant(0), quantity.Instant(0)
	for _, e := range s.sight.Endings { // the oldest first
		worked := slices.ContainsFunc(s.sight.Pilots, func(x Pilot) bool { return x.Joined > e.Ended })
		switch {
		case worked || e.How == Done && e.Joined != 0:
			n, until = 0, 0
		case e.Limited:
		case e.How == Refused || e.How == Failed || e.How == Vanished:
			if n == 0 || e.Asked >= last {
				n, last = n+1, e.Ended
			}
			until = max(until, e.Ended)
		}
	}
	pause := 30 * time.Second
	for range n - 1 {
		pause = min(time.Hour, 2*pause)
	}
	return n > 0 && until.Add(pause) > noon || s.limited() || s.sight.Silent != "" || s.sight.Pool.Paused != ""
}

// limited says, by going through the endings one by one, whether the host's limit is reached as far as is known.
func (s *scene) limited() bool {
	pause, until, last := 15*time.Second, quantity.Instant(0), quantity.Instant(0)
	for _, e := range s.sight.Endings { // the oldest first
		switch {
		case e.How != Refused: // it had a place below the limit
			pause, until = 15*time.Second, 0
		case e.Limited:
			if until == 0 || e.Asked >= last {
				pause, last = min(5*time.Minute, 2*pause), e.Ended
			}
			until = max(until, e.Ended)
		}
	}
	return until != 0 && until.Add(pause) > noon
}

// now are the gaps in which a pilot may be asked for, with what is left of them in whole steps.
func (s *scene) now() (list []opening) {
	_, _, longest := s.cost()
	for _, g := range s.sight.Gaps {
		if g.Start <= noon && g.End > noon {
			n := longest
			for n > 0 && noon.Add(n+s.wait()) > g.End {
				n -= s.sight.Pool.Step
			}
			list = append(list, opening{length: n, count: g.Count})
		}
	}
	return list
}

// TestOrdersKeepTheRules that hold for each of them.
func TestOrdersKeepTheRules(t *testing.T) {
	asked, cancelled := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		before := s.clone()
		o := s.decide()
		if !reflect.DeepEqual(before, *s) {
			t.Fatal("it changes what it is given")
		}
		asked, cancelled = asked+len(o.Ask), cancelled+len(o.Cancel)
		cost, shortest, longest := s.cost()
		if len(o.Ask) > 0 && len(o.Ask)+len(s.sight.Pilots) > s.sight.Pool.Most {
			t.Fatalf("asks for %v beside %d pilots, of at most %d", o.Ask, len(s.sight.Pilots), s.sight.Pool.Most)
		}
		if len(o.Ask) > 0 && s.barred() {
			t.Fatalf("asks for %v though nothing may be asked for", o.Ask)
		}
		for _, l := range o.Ask {
			if l%s.sight.Pool.Step != 0 || l < shortest || l > longest {
				t.Fatalf("asks for %v, of %v to %v in steps of %v", l, shortest, longest, s.sight.Pool.Step)
			}
			if !slices.ContainsFunc(s.demand, func(d Demand) bool { return l-cost >= d.piece() }) {
				t.Fatalf("asks for %v, which could finish nothing", l)
			}
		}
		if !s.sight.Blind && !seated(o.Ask, s.now()) {
			t.Fatalf("asks for %v in gaps %v", o.Ask, s.now())
		}
		s.checkCancels(t, &o)
		if o.Why == "" || o.Next <= noon || o.Next > in(30*second) {
			t.Fatalf("says %q, looks again in %v", o.Why, o.Next.Sub(noon))
		}
	})
	if asked == 0 || cancelled == 0 {
		t.Errorf("%d asked, %d cancelled: the test tests nothing", asked, cancelled)
	}
}

// seated says whether each pilot gets a place in a gap that holds it: the longest first, each in the smallest.
func seated(asks []time.Duration, gaps []opening) bool {
	asks, gaps = slices.Clone(asks), slices.Clone(gaps)
	slices.Sort(asks)
	slices.SortFunc(gaps, func(a, b opening) int { return cmp.Compare(a.length, b.length) })
	for _, l := range slices.Backward(asks) {
		at := slices.IndexFunc(gaps, func(g opening) bool { return g.count > 0 && g.length >= l })
		if at < 0 {
			return false
		}
		gaps[at].count--
	}
	return true
}

// checkCancels: what is given back may be, and is listed once; what has nothing to do is listed.
func (s *scene) checkCancels(t *rapid.T, o *Order) {
	var idle []string
	for _, x := range s.sight.Pilots {
		if x.State == Joined && !slices.ContainsFunc(s.slots, func(l Slot) bool { return string(l.Node) == x.Name && l.Free > noon }) {
			idle = append(idle, x.Name)
		}
	}
	if slices.Sort(idle); !slices.Equal(idle, o.Idle) {
		t.Fatalf("idle are %q, want %q", o.Idle, idle)
	}
	if !slices.IsSortedFunc(o.Cancel, func(a, b Cancel) int { return cmp.Compare(a.Name, b.Name) }) {
		t.Fatalf("gives back %v", o.Cancel)
	}
	for i, c := range o.Cancel {
		at := slices.IndexFunc(s.sight.Pilots, func(x Pilot) bool { return x.Name == c.Name })
		if at < 0 || c.Why == "" || i > 0 && o.Cancel[i-1].Name == c.Name {
			t.Fatalf("gives back %v", o.Cancel)
		}
		switch x := s.sight.Pilots[at]; x.State {
		case Sent, Waiting:
			if s.sight.Pool.Paused == "" && noon.Sub(x.Asked) < 5*second {
				t.Fatalf("gives back %+v, which was asked for a moment ago", x)
			}
		case Joined:
			if !slices.Contains(idle, x.Name) || x.Idle == 0 || noon.Sub(x.Idle) < s.sight.Pool.Idle {
				t.Fatalf("gives back %+v", x)
			}
		case Leaving:
			if !x.Recalled || x.Joined != 0 && (!s.known(x.Name) || s.has(x.Name)) {
				t.Fatalf("gives back %+v", x)
			}
		default:
			t.Fatalf("gives back %+v", x)
		}
	}
	for _, x := range s.sight.Pilots {
		given := slices.ContainsFunc(o.Cancel, func(c Cancel) bool { return c.Name == x.Name })
		if x.Recalled && (x.Joined == 0 || s.known(x.Name) && !s.has(x.Name)) && !given {
			t.Fatalf("its host waits for %+v, which has nothing", x)
		}
	}
	if s.sight.Pool.Paused != "" {
		for _, x := range s.sight.Pilots {
			if x.waits() && !slices.ContainsFunc(o.Cancel, func(c Cancel) bool { return c.Name == x.Name }) {
				t.Fatalf("it is paused, and %+v waits", x)
			}
		}
	}
}

// known reports whether some slot of a machine is known, has whether it has anything on one.
func (s *scene) known(name string) bool {
	return slices.ContainsFunc(s.slots, func(x Slot) bool { return string(x.Node) == name })
}

func (s *scene) has(name string) bool {
	return slices.ContainsFunc(s.slots, func(x Slot) bool { return string(x.Node) == name && x.Free > noon })
}

// TestTheOrderOfWhatIsSeenMeansNothing.
func TestTheOrderOfWhatIsSeenMeansNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		o := s.decide()
		p := s.clone()
		p.sight.Gaps = rapid.Permutation(s.sight.Gaps).Draw(t, "gaps")
		p.sight.Pilots = rapid.Permutation(s.sight.Pilots).Draw(t, "pilots")
		p.slots = rapid.Permutation(s.slots).Draw(t, "slots")
		if got := p.decide(); !reflect.DeepEqual(got, o) {
			t.Fatalf("in another order\n%+v, was\n%+v", got, o)
		}
	})
}

// TestWhatIsThereIsEnough: where each job can have a slot of its own that is free, by brute force, nothing is asked for.
func TestWhatIsThereIsEnough(t *testing.T) {
	enough := 0
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		for i := range s.demand {
			s.demand[i].Width, s.demand[i].Barred = 1, nil
		}
		var free []Slot
		for _, x := range s.slots {
			leaves := slices.ContainsFunc(s.sight.Pilots, func(p Pilot) bool { return p.Name == string(x.Node) && p.State == Leaving })
			if x.Usable && x.Free <= noon && !leaves {
				free = append(free, x)
			}
		}
		if !matched(s.demand, free) {
			return
		}
		enough++
		if o := s.decide(); len(o.Ask) > 0 {
			t.Fatalf("asks for %v: %s", o.Ask, o.Why)
		}
	})
	if enough == 0 {
		t.Error("there was never enough: the test tests nothing")
	}
}

// matched tries all ways to give each job a slot of its own.
func matched(demand []Demand, free []Slot) bool {
	if len(demand) == 0 {
		return true
	}
	for i, x := range free {
		if x.Until.Sub(noon) >= demand[0].piece() && matched(demand[1:], slices.Delete(slices.Clone(free), i, i+1)) {
			return true
		}
	}
	return false
}

// TestWhatIsNeededIsAskedFor: where the first job is served by nothing that there is, and a gap holds its piece, something is asked for.
func TestWhatIsNeededIsAskedFor(t *testing.T) {
	needed := 0
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		s.sight.Pilots = slices.DeleteFunc(s.sight.Pilots, func(x Pilot) bool {
			shown := slices.ContainsFunc(s.slots, func(l Slot) bool { return string(l.Node) == x.Name })
			return x.State != Leaving && (x.State != Joined || !shown)
		})
		cost, shortest, longest := s.cost()
		if len(s.demand) == 0 || len(s.sight.Pilots) >= s.sight.Pool.Most || s.barred() {
			return
		}
		d := &s.demand[0]
		for _, x := range s.slots {
			if load := x.Free.Sub(noon); x.Usable && x.Until.Sub(x.Free) >= d.piece() && (load <= 0 || load < cost) {
				return // it serves it, sooner than a pilot could
			}
		}
		fits := s.sight.Blind && longest-cost >= d.piece()
		for _, g := range s.now() {
			fits = fits || g.length >= shortest && g.length-cost >= d.piece()
		}
		if !fits {
			return
		}
		needed++
		if o := s.decide(); len(o.Ask) == 0 {
			t.Fatalf("asks for nothing: %s", o.Why)
		}
	})
	if needed == 0 {
		t.Error("nothing was ever needed: the test tests nothing")
	}
}

// TestWhatIsGivenBackIsNotNeeded: without it the same is asked for, where neither room nor number bounds that.
func TestWhatIsGivenBackIsNotNeeded(t *testing.T) {
	given := 0
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t)
		s.sight.Pool.Most, s.sight.Pool.Start = 99, minute
		for i := range s.sight.Gaps {
			s.sight.Gaps[i].Count = 99
		}
		for i := range s.sight.Pilots { // no start is learned, and none fails, or its pilot would be missed as news
			s.sight.Pilots[i].Started = 0
		}
		s.sight.Endings = nil
		o := s.decide()
		if len(o.Cancel) == 0 || s.sight.Pool.Paused != "" {
			return
		}
		given++
		gone := func(name string) bool {
			return slices.ContainsFunc(o.Cancel, func(c Cancel) bool { return c.Name == name })
		}
		w := s.clone()
		w.sight.Pilots = slices.DeleteFunc(w.sight.Pilots, func(x Pilot) bool { return gone(x.Name) })
		w.slots = slices.DeleteFunc(w.slots, func(x Slot) bool { return gone(string(x.Node)) })
		if got := w.decide(); !slices.Equal(got.Ask, o.Ask) || len(got.Cancel) > 0 {
			t.Fatalf("without %v it asks for %v and gives back %v, with them for %v", o.Cancel, got.Ask, got.Cancel, o.Ask)
		}
	})
	if given == 0 {
		t.Error("nothing was ever given back: the test tests nothing")
	}
}
