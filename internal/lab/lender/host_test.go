package lender

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
)

const minute = quantity.Instant(time.Minute)

// TestAHostHoldsItsGaps: whatever is asked, given back and taken, no gap ever has more pilots than it holds, none runs beyond its gap, what
// is shown is what is there, and nothing waits that a gap holds.
func TestAHostHoldsItsGaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := func(name string, most int) time.Duration {
			return time.Duration(rapid.IntRange(1, most).Draw(t, name)) * time.Minute
		}
		p := &Pool{Ahead: span("ahead", 20)}
		for range rapid.IntRange(1, 4).Draw(t, "gaps") {
			g := Gap{Count: rapid.IntRange(1, 3).Draw(t, "count")}
			g.Start = quantity.Instant(span("start", 60))
			if g.End = g.Start.Add(span("for", 60)); rapid.IntRange(0, 5).Draw(t, "endless") == 0 {
				g.End = quantity.Never
			} else if rapid.Bool().Draw(t, "wrong") {
				g.Shown = g.End.Add(span("longer", 40))
			}
			p.Gaps = append(p.Gaps, g)
		}
		h, now := host{pool: p}, quantity.Instant(0)
		var begun []*Job
		stolen := map[*Job]quantity.Instant{} // until when its room is others'
		running := func(gap int) (n int) {
			for _, j := range begun {
				if j.gap == gap && j.Ended == 0 {
					n++
				}
			}
			return n
		}
		for i := range rapid.IntRange(1, 80).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "pass")) * time.Second)
			for k, g := range p.Gaps {
				if g.Shown > g.End && g.End <= now {
					h.preempt(g.End, &Preemption{Count: g.Count, of: k + 1})
				}
			}
			for _, j := range begun {
				if j.Ended == 0 && j.Ends <= now {
					end := j.Ends
					h.end(end, j)
					if j.Preempted && stolen[j] == 0 {
						stolen[j] = p.Gaps[j.gap].End
						if j.stay > 0 {
							stolen[j] = min(stolen[j], end.Add(j.stay))
						}
					}
				}
			}
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				if err := h.submit(now, fmt.Sprint("p-", i), span("length", 30)); err != nil {
					t.Fatal(err)
				}
			case 2:
				x := &Preemption{Count: rapid.IntRange(1, 2).Draw(t, "take"), Grace: span("grace", 2) - time.Minute}
				if rapid.Bool().Draw(t, "stays") {
					x.For = span("stay", 20)
				}
				for _, j := range h.preempt(now, x) {
					if j.Ends > now.Add(x.Grace) {
						t.Fatalf("%s ends at %d, preempted at %d", j.Name, j.Ends, now)
					}
				}
			default:
				if len(h.jobs) > 0 {
					if j := h.jobs[rapid.IntRange(0, len(h.jobs)-1).Draw(t, "which")]; j.Began == 0 && j.Ended == 0 {
						h.end(now, j)
					}
				}
			}
			begun = append(begun, h.start(now)...)
			_, shown, err := h.look(now)
			if err != nil {
				t.Fatal(err)
			}
			var free []supply.Gap
			for k, g := range p.Gaps {
				others := 0
				for j, until := range stolen {
					if j.gap == k && until > now {
						others++
					}
				}
				left := g.Count - running(k) - others
				if left < 0 {
					t.Fatalf("gap %d has %d pilots and %d others; it holds %d", k, running(k), others, g.Count)
				}
				if left > 0 && g.End > now && g.Start.Sub(now) <= p.Ahead {
					free = append(free, supply.Gap{Start: g.Start, End: max(g.End, g.Shown), Count: left})
				}
				for _, j := range h.jobs {
					if j.Began == 0 && j.Ended == 0 && left > 0 && g.Holds(now) && max(g.End, g.Shown).Sub(now) >= j.Length {
						t.Fatalf("%s waits, and gap %d holds it", j.Name, k)
					}
				}
			}
			if len(free) != len(shown) {
				t.Fatalf("it shows %v; want %v in some order", shown, free)
			}
			for _, g := range shown {
				at := slices.Index(free, g)
				if at < 0 {
					t.Fatalf("it shows %v; want %v in some order", shown, free)
				}
				free = slices.Delete(free, at, at+1)
			}
		}
		for _, j := range begun {
			g := p.Gaps[j.gap]
			if g.End > now {
				g.End = max(g.End, g.Shown) // it knows no better yet
			} else if g.Shown > g.End && j.Preempted {
				g.End = g.End.Add(time.Minute) // it was in its grace then
			}
			if j.Began < g.Start || j.Ends > g.End || j.Ends > j.Began.Add(j.Length) {
				t.Fatalf("%+v in %+v", j, g)
			}
		}
	})
}

// TestAHostThatDoesNotTake: what is asked while it refuses is not there, while it is silent nothing is known, and pilots that ended
// are shown for a while.
func TestAHostThatDoesNotTake(t *testing.T) {
	p := &Pool{Refuses: []Span{{minute, 2 * minute}}, Silent: []Span{{3 * minute, quantity.Never}}, Blind: true,
		Gaps: []Gap{{Span: Span{0, quantity.Never}, Count: 1}}}
	h := host{pool: p}
	for _, c := range []struct {
		at   quantity.Instant
		want errkind.Kind
	}{{minute, errkind.Exhausted}, {3 * minute, errkind.Unavailable}} {
		if err := h.submit(c.at, "a", time.Minute); errkind.Of(err) != c.want || len(h.jobs) > 0 {
			t.Errorf("at %d: %v", c.at, err)
		}
	}
	if _, _, err := h.look(3 * minute); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("it is silent: %v", err)
	}
	p.Silent = nil
	if err := h.submit(2*minute, "b", time.Minute); err != nil || len(h.start(2*minute)) != 1 {
		t.Fatalf("it takes one: %v", err)
	}
	h.end(3*minute, h.find("b"))
	for at, want := range map[quantity.Instant]int{3 * minute: 1, 7 * minute: 1} {
		if seen, gaps, err := h.look(at); len(seen) != want || len(gaps) > 0 || err != nil {
			t.Errorf("at %d: %v, %v, %v", at, seen, gaps, err)
		}
	}
	if seen, _, _ := h.look(8 * minute); len(seen) > 0 || h.find("b") != nil {
		t.Errorf("it is forgotten: %v", seen)
	}
}

// bench are machines that a test makes.
type bench struct {
	known  map[string]pilot.Machine
	began  []string
	told   map[string]time.Duration
	closed map[string]quantity.Instant
}

func (b *bench) Machine(name string) pilot.Machine  { return b.known[name] }
func (b *bench) Began(j *Job)                       { b.began = append(b.began, j.Name) }
func (b *bench) Told(j *Job, grace time.Duration)   { b.told[j.Name] = grace }
func (b *bench) Close(name string, c pilot.Closing) { b.closed[name] = c.Until }

// TestADriverTellsAndObeys: a pilot from its order to its end, as host/pilots tells of it.
func TestADriverTellsAndObeys(t *testing.T) {
	p := &Pool{Pool: supply.Pool{Name: "p", Most: 2, Lengths: []time.Duration{10 * time.Minute}, Step: time.Minute, Idle: time.Minute,
		Slices: []supply.Slice{{Capacity: trp.Vector{1 << 30}, Speed: 1000}}}, Gaps: []Gap{{Span: Span{0, quantity.Never}, Count: 2}}}
	b := &bench{known: map[string]pilot.Machine{}, told: map[string]time.Duration{}, closed: map[string]quantity.Instant{}}
	var lent measure.Lent
	var sight *supply.Sight
	d := NewDriver(minute, p, 1, &lent, b, func(s *supply.Sight) { sight = s })
	at := minute
	look := func(states ...supply.State) {
		t.Helper()
		at = max(at, d.at)
		d.Turn(at, true)
		var is []supply.State
		for i := range sight.Pilots {
			is = append(is, sight.Pilots[i].State)
		}
		if !slices.Equal(is, states) {
			t.Fatalf("at %d: pilots are %v, want %v", at, is, states)
		}
	}
	order := func(o supply.Order) {
		o.Number = sight.Number
		d.Ordered(at, &o)
		d.passes = d.pass(at)
	}
	look()
	order(supply.Order{Ask: []time.Duration{10 * time.Minute, 10 * time.Minute}})
	order(supply.Order{Ask: []time.Duration{10 * time.Minute}}) // said again: it is obeyed once
	if lent.Asked != 2 || len(b.began) != 2 || d.Next() > at.Add(time.Second) {
		t.Fatalf("%+v, began %v, next look at %d", lent, b.began, d.Next())
	}
	look(supply.Starting, supply.Starting)
	one, two := sight.Pilots[0].Name, sight.Pilots[1].Name
	joined := at
	b.known[one] = pilot.Machine{Joined: at, Until: at.Add(9 * time.Minute), Up: true}
	look(supply.Joined, supply.Starting)
	if x := sight.Pilots[0]; x.Joined != joined || x.Until != joined.Add(9*time.Minute) || x.Idle != 0 {
		t.Errorf("%+v", x)
	}
	order(supply.Order{Idle: []string{one}, Cancel: []supply.Cancel{{Name: two, Why: "nothing is left for it to do"}}})
	if b.told[two] != killWait {
		t.Errorf("told %v", b.told)
	}
	since := at
	look(supply.Joined, supply.Leaving)
	if sight.Pilots[0].Idle != since {
		t.Errorf("idle since %d, want %d", sight.Pilots[0].Idle, since)
	}
	d.Gone(at, d.host.find(two))
	look(supply.Joined)
	d.preempts = []Preemption{{At: at, Count: 1, Grace: 20 * time.Second}}
	look(supply.Leaving)
	if b.told[one] != 20*time.Second || b.closed[one] != at.Add(20*time.Second) {
		t.Errorf("told %v, closed %v", b.told, b.closed)
	}
	d.Gone(at, d.host.find(one))
	b.known[one] = pilot.Machine{Joined: joined, Left: at}
	look()
	want := []supply.How{supply.Withdrawn, supply.Preempted}
	if e := sight.Endings; len(e) != 2 || e[0].How != want[0] || e[1].How != want[1] || e[1].Joined != joined || d.Pilots() != 0 {
		t.Errorf("endings are %+v", e)
	}
	d.preempts = nil
	// Its head starts again: numbers begin anew, and what was remembered of orders is not.
	number := sight.Number
	d.Crash(at)
	look()
	if sight.Number != 1 || number < 2 || len(sight.Endings) != 2 {
		t.Errorf("%+v", sight)
	}
	if sight.Gaps[0].Count != 1 {
		t.Errorf("others have the room of one: %+v", sight.Gaps)
	}
}

// TestAHostThatShowsTooLateAnEnd: it takes pilots for as long as it says, and takes them back when its gap is over.
func TestAHostThatShowsTooLateAnEnd(t *testing.T) {
	end := 10 * minute
	p := &Pool{Pool: supply.Pool{Name: "p", Most: 2, Lengths: []time.Duration{30 * time.Minute}, Step: time.Minute},
		Gaps: []Gap{{Span: Span{0, end}, Count: 1, Shown: 40 * minute, Grace: 20 * time.Second}, {Span: Span{0, 40 * minute}, Count: 1}}}
	b := &bench{known: map[string]pilot.Machine{}, told: map[string]time.Duration{}, closed: map[string]quantity.Instant{}}
	var lent measure.Lent
	var sight *supply.Sight
	d := NewDriver(minute, p, 1, &lent, b, func(s *supply.Sight) { sight = s })
	d.Turn(minute, true)
	d.Ordered(minute, &supply.Order{Number: sight.Number, Ask: []time.Duration{30 * time.Minute, 30 * time.Minute}})
	d.Turn(minute, true)
	if len(b.began) != 2 || d.preempts[0].At != end {
		t.Fatalf("began %v, to come %v", b.began, d.preempts)
	}
	first := b.began[0]
	d.Turn(end, true)
	if b.told[first] != 20*time.Second || lent.Preempted != 1 {
		t.Errorf("told %v, want %s in 20 s", b.told, first)
	}
	d.Gone(end, d.host.find(first))
	d.Turn(end.Add(Every), true)
	if len(sight.Gaps) != 0 {
		t.Errorf("it shows %v", sight.Gaps)
	}
}

// TestAPilotThatIsLostVanishes: a host that was silent when it was asked does not have it, and that takes two minutes of looks to believe.
func TestAPilotThatIsLostVanishes(t *testing.T) {
	p := &Pool{Pool: supply.Pool{Name: "p", Most: 2, Lengths: []time.Duration{time.Minute}, Step: time.Minute,
		Slices: []supply.Slice{{}}}, Silent: []Span{{minute, 2 * minute}}}
	var lent measure.Lent
	var sight *supply.Sight
	d := NewDriver(0, p, 1, &lent, &bench{}, func(s *supply.Sight) { sight = s })
	d.Turn(minute-1, true)
	d.Ordered(minute, &supply.Order{Number: 1, Ask: []time.Duration{time.Minute, time.Minute}})
	if lent.Asked != 1 || d.Pilots() != 1 {
		t.Fatalf("asked for %d, and %d may be there", lent.Asked, d.Pilots())
	}
	for at := d.at; d.Pilots() > 0; at = d.at {
		if d.Turn(at, true); at < 2*minute && sight.Silent == "" || at > 5*minute {
			t.Fatalf("at %d: %+v", at, sight)
		}
		if d.Pilots() == 0 && at < 4*minute {
			t.Errorf("it is given up at %d", at)
		}
	}
	if e := sight.Endings; len(e) != 1 || e[0].How != supply.Vanished || lent.Failed != 1 {
		t.Errorf("%+v, %+v", e, lent)
	}
}

func TestReadPools(t *testing.T) {
	read := func(text string) (l *Lenders, err error) {
		err = strict.Read("pools.yml", []byte(text), nil, func(root strict.Value) {
			l = Read(root.Object("pools").Get("pools"))
		})
		return l, errors.Join(append(l.Check(), err)...)
	}
	l, err := read(`
pools:
  - {name: a, atMost: 3, lengths: [2m, 30m], slices: [{memory: 10Gi, count: 2}]}
  - name: b
    atMost: 1
    lengths: [90s]
    step: 30s
    idle: 1m
    start: 5s
    slices: [{memory: 20Gi, profile: 2g.20gb}]
    gaps: [{at: 1m, for: 20m15s, count: 2}, {at: 1h}, {for: 2m, shown: 5m, grace: 1s}]
    ahead: 10m
    blind: true
    pass: 30s
    preempt: [{at: 10m, count: 2, grace: 0s, for: 5m}, {at: 20m}]
    refuse: [{from: 1m, to: 2m}]
    silent: [{from: 3m}]
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b := l.Pools[0], l.Pools[1]
	if a.Most != 3 || len(a.Slices) != 2 || a.Step != time.Minute || a.Joins != 30*time.Second || len(a.Gaps) != 1 ||
		a.Gaps[0] != (Gap{Span: Span{0, quantity.Never}, Count: 3}) || l.Most() != 4 {
		t.Errorf("%+v", a)
	}
	if b.Step != 30*time.Second || b.Joins != 5*time.Second || !b.Blind || b.Ahead != 10*time.Minute || b.Pass != 30*time.Second ||
		b.Gaps[0] != (Gap{Span: Span{minute, minute.Add(20*time.Minute + 15*time.Second)}, Count: 2}) ||
		b.Gaps[1] != (Gap{Span: Span{60 * minute, quantity.Never}, Count: 1}) ||
		b.Gaps[2] != (Gap{Span: Span{0, 2 * minute}, Count: 1, Shown: 5 * minute, Grace: time.Second}) ||
		b.Preempts[0] != (Preemption{At: 10 * minute, Count: 2, For: 5 * time.Minute}) ||
		b.Preempts[1] != (Preemption{At: 20 * minute, Count: 1, Grace: 30 * time.Second}) ||
		b.Refuses[0] != (Span{minute, 2 * minute}) || b.Silent[0] != (Span{3 * minute, quantity.Never}) {
		t.Errorf("%+v", b)
	}
	later := l.After(time.Hour, nil)
	if g := later.Pools[1].Gaps; g[0].Start != 61*minute || g[1].End != quantity.Never || b.Gaps[0].Start != minute ||
		g[2].Shown != 65*minute || g[0].Shown != 0 ||
		later.Pools[1].Preempts[0].At != 70*minute || later.Pools[1].Silent[0].Start != 63*minute {
		t.Errorf("%+v", later.Pools[1])
	}
	if room := b.Room(30 * minute); room != 2*(20*time.Minute+15*time.Second)+2*time.Minute {
		t.Errorf("it has %v of room", room)
	}
	if none, err := read("pools: []"); none != nil || err != nil || none.Most() != 0 || none.After(1, nil) != nil {
		t.Errorf("%+v, %v", none, err)
	}
	_, err = read(`
pools:
  - {name: A_b, atMost: 0, lengths: [30s, 90s], slices: [{memory: 10Gi}]}
  - {name: c, atMost: 1, lengths: [], slices: []}
  - name: c
    atMost: 1
    lengths: [3m, 2m]
    slices: [{memory: 10Gi}]
    gaps: [{for: 0s}, {for: 2m, shown: 1m}, {for: 2m, grace: 1s}]
    refuse: [{from: 2m, to: 1m}]
    blnd: true
  - {atMost: 1}
`)
	for _, want := range []string{"A_b", "pools[0].atMost", "pools[0].lengths[0]", "steps of 1m", "pools[1].lengths", "pools[1].slices",
		"second pool c",
		"pools[2].lengths[1]", "pools[2].gaps[0].for", "gaps[1].shown", "gaps[2].grace", "refuse[0].to", "blnd",
		`pools[3]: "name"`, `pools[3]: "lengths"`, `pools[3]: "slices"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q in %v", want, err)
		}
	}
	bad := &Lenders{Pools: []Pool{{}, {Pool: supply.Pool{Name: "x", Idle: -1}, Gaps: []Gap{{}}, Preempts: []Preemption{{}}}}}
	if errs := bad.Check(); len(errs) != 6 {
		t.Errorf("%d: %v", len(errs), errs)
	}
}
