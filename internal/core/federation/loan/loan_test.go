package loan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// gang is one with its home, which notes what it says.
type gang struct {
	*loan.Gang
	name  job.ID
	said  []string
	asked uint64
	loans map[job.ZoneID]protocol.Loan
	begun []*protocol.Lending
	need  time.Duration
	world *world
}

func (g *gang) AskGate(seq uint64, without []job.ZoneID) {
	g.asked = seq
	g.said = append(g.said, fmt.Sprint("gate", without))
}

func (g *gang) Borrow(zone job.ZoneID, l protocol.Loan) {
	what := "offer"
	switch {
	case l.Slices == 0 && l.Taken:
		what = "taken"
	case l.Slices == 0:
		what = "back"
	case l.Keep:
		what = "keep"
	}
	g.said = append(g.said, fmt.Sprintf("%s %s", what, zone))
	g.loans[zone] = l
	if g.world != nil {
		g.world.mail = append(g.world.mail, letter{g, zone, l})
	}
}

func (g *gang) Begin(_ quantity.Instant, parts []*protocol.Lending, _ time.Duration, _ int64) {
	g.begun = parts
	g.said = append(g.said, "begin")
}

func (g *gang) Need(speed int64) time.Duration { return g.need * 1000 / time.Duration(speed) }

const retry = time.Second

var start = quantity.Instant(0).Add(time.Hour)

func newGang(width int) *gang {
	return &gang{Gang: loan.New("b", width, retry), loans: map[job.ZoneID]protocol.Loan{}, need: time.Minute}
}

// names has the gate name zones that have so many slices each.
func (g *gang) names(now quantity.Instant, zones ...protocol.Lender) {
	g.Named(now, &protocol.LenderList{Seq: g.asked, Zones: zones}, g)
}

// answers has a zone answer what it was asked last.
func (g *gang) answers(now quantity.Instant, zone job.ZoneID, l protocol.Lending) {
	of := g.loans[zone]
	l.Seq = of.Seq
	if l.Could == 0 {
		l.Could = of.Slices
	}
	if l.Speed == 0 {
		l.Speed = 1000
	}
	if l.Start != 0 && l.End == 0 {
		l.End = l.Start.Add(of.Length)
	}
	if l.Kept && l.Slices == nil {
		l.Slices = make([]protocol.LentSlice, of.Slices)
	}
	g.Lent(now, zone, &l, g)
}

func (g *gang) heard() string {
	s := strings.Join(g.said, ", ")
	g.said = nil
	return s
}

func lenders(counts ...int) (list []protocol.Lender) {
	for i, n := range counts {
		list = append(list, protocol.Lender{Zone: job.ZoneID("abcdefgh"[i : i+1]), Slices: n})
	}
	return list
}

// TestTheFewestZones: as many slices of as few zones as there can be, the home first on a tie.
func TestTheFewestZones(t *testing.T) {
	for _, c := range []struct {
		width int
		of    []protocol.Lender
		want  string
	}{
		{6, lenders(4, 4, 4), "offer a, offer b"},    // b is its home
		{6, lenders(2, 4, 8, 6), "offer d"},          // just enough
		{9, lenders(8, 2, 1, 3), "offer a, offer c"}, // the largest, and just the rest
		{9, lenders(4, 4), "rests"},
		{3, lenders(0, 0, 3), "offer c"},
	} {
		g := newGang(c.width)
		g.Seek(start, g)
		g.heard()
		g.names(start, c.of...)
		got := g.heard()
		if g.State() == loan.Resting {
			got = "rests"
		}
		if got != c.want {
			t.Errorf("%d slices of %v: %s; want %s", c.width, c.of, got, c.want)
		}
	}
}

// keeping is a gang that two zones are to keep places for, from an instant on.
func keeping(t *testing.T, at quantity.Instant) *gang {
	t.Helper()
	g := newGang(6)
	g.Seek(start, g)
	g.names(start, lenders(4, 4)...)
	g.answers(start, "b", protocol.Lending{Start: start})
	g.answers(start, "a", protocol.Lending{Start: at})
	if got, want := g.heard(), "gate[], offer a, offer b, keep a"; got != want {
		t.Fatalf("it said %q; want %q", got, want)
	}
	if l := g.loans["a"]; l.NotBefore != at || l.Length != g.need+loan.Slack {
		t.Fatalf("it asks for %+v, and all could begin at %d", l, at)
	}
	return g
}

// TestOneZoneAfterTheOther is asked to keep its part, in order of zone id, from when all could begin; then they begin, and give back what
// they had.
func TestOneZoneAfterTheOther(t *testing.T) {
	at := start.Add(time.Minute)
	g := keeping(t, at)
	g.answers(start, "a", protocol.Lending{Start: at, Kept: true})
	g.answers(start, "b", protocol.Lending{Start: at, Kept: true})
	if got := g.heard(); got != "keep b" {
		t.Errorf("it said %q; want that b is to keep", got)
	}
	now := start
	for now < at {
		now = g.Next()
		g.Tick(now, g)
		for _, z := range []job.ZoneID{"a", "b"} {
			g.answers(now, z, protocol.Lending{Start: at, Kept: true})
		}
	}
	if now != at || g.State() != loan.Begun || len(g.begun) != 2 {
		t.Fatalf("at %d it is %v with %d parts, and all keep from %d", now, g.State(), len(g.begun), at)
	}
	if n := len(g.said); n > 2*20+1 {
		t.Errorf("it spoke %d times in a minute: %v", n, g.said)
	}
	g.heard()
	g.Ended(now, true, g)
	if got := g.heard(); got != "taken a, taken b" || g.Next() != quantity.Never {
		t.Errorf("it said %q", got)
	}
}

// TestLaterPlaceMovesTheOthers, and one that could be earlier moves all.
func TestLaterPlaceMovesTheOthers(t *testing.T) {
	at := start.Add(time.Minute)
	g := keeping(t, at)
	g.answers(start, "a", protocol.Lending{Start: at, Kept: true})
	g.heard()
	later := at.Add(time.Minute)
	g.answers(start, "b", protocol.Lending{Start: later, Kept: true, Earliest: start})
	if got := g.heard(); got != "keep a" || g.loans["a"].NotBefore != later {
		t.Fatalf("it said %q from %d; want a to keep from %d", got, g.loans["a"].NotBefore, later)
	}
	g.answers(start, "a", protocol.Lending{Start: later, Kept: true, Earliest: at})
	if got := g.heard(); got != "keep a" || g.loans["a"].NotBefore != at {
		t.Errorf("it said %q from %d; want a to keep from %d, since both could", got, g.loans["a"].NotBefore, at)
	}
	g.answers(start, "a", protocol.Lending{Start: at, Kept: true, Earliest: at})
	if got := g.heard(); got != "keep b" || g.loans["b"].NotBefore != at {
		t.Errorf("it said %q from %d; want b to keep from %d", got, g.loans["b"].NotBefore, at)
	}
}

// TestReturnedPlacesAreForgotten: a gang asks for an earlier start once per renewal; one that returned all places and holds new ones asks
// at once.
func TestReturnedPlacesAreForgotten(t *testing.T) {
	at := start.Add(time.Minute)
	moves := func(g *gang, now, from quantity.Instant) bool {
		g.heard()
		g.answers(now, "a", protocol.Lending{Start: from, Kept: true, Earliest: now})
		g.answers(now, "b", protocol.Lending{Start: from, Kept: true, Earliest: now})
		return g.loans["a"].NotBefore == now
	}
	g := keeping(t, at)
	if !moves(g, start, at) {
		t.Fatalf("it said %q, and all could begin now", g.heard())
	}
	soon := start.Add(time.Second)
	g.answers(soon, "a", protocol.Lending{Start: at, Kept: true, Earliest: soon})
	if moves(g, soon, at) {
		t.Errorf("it asks for an earlier start twice within %v", soon.Sub(start))
	}
	for name, ends := range map[string]func(*gang){
		"it was dropped":  func(g *gang) { g.Drop(start, g) },
		"a node refused":  func(g *gang) { begin(t, g); g.Ended(start, false, g); g.Tick(g.Next(), g) },
		"it began before": func(g *gang) { begin(t, g); g.Ended(start, true, g) },
	} {
		g := keeping(t, at)
		if !moves(g, start, at) {
			t.Fatalf("%s: it said %q, and all could begin now", name, g.heard())
		}
		ends(g)
		if g.State() != loan.Idle {
			t.Fatalf("%s: it is %v", name, g.State())
		}
		g.Seek(soon, g)
		g.names(soon, lenders(4, 4)...)
		g.answers(soon, "b", protocol.Lending{Start: soon})
		g.answers(soon, "a", protocol.Lending{Start: at})
		if !moves(g, soon, at) {
			t.Errorf("%s: it waits until an earlier start may be asked for, as if it still held what it gave back", name)
		}
	}
}

// begin has both zones of a gang keep their parts from now on.
func begin(t *testing.T, g *gang) {
	t.Helper()
	for _, z := range []job.ZoneID{"a", "b"} {
		g.answers(start, z, protocol.Lending{Start: start, Kept: true})
	}
	if g.State() != loan.Begun {
		t.Fatalf("it is %v, and all keep their parts from now on", g.State())
	}
}

// TestPlacesThatOverlapEnough need not begin together; those that do not are asked for anew.
func TestPlacesThatOverlapEnough(t *testing.T) {
	g := keeping(t, start)
	g.answers(start, "a", protocol.Lending{Start: start, Kept: true})
	late := start.Add(3 * time.Second)
	g.answers(late, "b", protocol.Lending{Start: late, Kept: true})
	if g.State() != loan.Begun {
		t.Errorf("it is %v, and both keep for long enough", g.State())
	}
	g = keeping(t, start)
	g.answers(start, "a", protocol.Lending{Start: start, Kept: true})
	late = start.Add(6 * time.Second)
	g.heard()
	g.answers(late, "b", protocol.Lending{Start: late, Kept: true})
	if got := g.heard(); got != "keep a" || g.loans["a"].NotBefore != late {
		t.Errorf("it said %q; a keeps 1 s too little", got)
	}
}

// TestUnservedGangReturnsItsPlaces in time.
func TestUnservedGangReturnsItsPlaces(t *testing.T) {
	g := keeping(t, start)
	g.answers(start, "a", protocol.Lending{Start: start, Kept: true})
	now := start
	for g.State() == loan.Keeping {
		now = g.Next()
		g.Tick(now, g)
		if g.State() == loan.Keeping {
			g.answers(now, "a", protocol.Lending{Start: start, Kept: true})
			g.answers(now, "b", protocol.Lending{Start: now, Why: "others are served before it"})
		}
	}
	if got := g.heard(); !strings.HasSuffix(got, "back a, back b") || now.Sub(start) > loan.Patience+renewals {
		t.Errorf("after %v it said %q", now.Sub(start), got)
	}
	if s := g.Sentence(now); !strings.Contains(s, "others are served before it") {
		t.Errorf("it says %q", s)
	}
}

const renewals = 3 * time.Second

// TestASilentZoneIsLeftOut the next time, and asked again when it is needed.
func TestASilentZoneIsLeftOut(t *testing.T) {
	g := newGang(6)
	g.Seek(start, g)
	g.names(start, lenders(4, 4)...)
	g.answers(start, "b", protocol.Lending{Start: start})
	now := start
	for g.State() == loan.Offering {
		now = g.Next()
		g.Tick(now, g)
	}
	if got, want := g.heard(), "gate[], offer a, offer b, offer a, offer a, back a, back b"; got != want || now.Sub(start) > 4*retry {
		t.Errorf("after %v it said %q; want %q", now.Sub(start), got, want)
	}
	for g.State() == loan.Resting {
		now = g.Next()
		g.Tick(now, g)
	}
	g.Seek(now, g)
	if got := g.heard(); got != "gate[a]" {
		t.Errorf("it said %q", got)
	}
	g.names(now, lenders(0, 4)...) // without it there are too few
	for g.State() == loan.Resting {
		now = g.Next()
		g.Tick(now, g)
	}
	g.Seek(now, g)
	if got := g.heard(); got != "gate[]" {
		t.Errorf("it said %q", got)
	}
}

// TestLateAnswersAreIgnored: answers to earlier questions, and of an earlier turn.
func TestLateAnswersAreIgnored(t *testing.T) {
	at := start.Add(time.Minute)
	g := newGang(6)
	g.Seek(start, g)
	g.names(start, lenders(4, 4)...)
	offer := g.loans["a"].Seq
	g.answers(start, "b", protocol.Lending{Start: start})
	g.answers(start, "a", protocol.Lending{Start: at})
	g.heard()
	g.Lent(start, "a", &protocol.Lending{Seq: offer, Could: 4, Start: at, End: quantity.Never, Kept: true, Speed: 1000,
		Slices: make([]protocol.LentSlice, g.loans["a"].Slices)}, g)
	if got := g.heard(); got != "" {
		t.Errorf("it said %q on an answer to an earlier question", got)
	}
	old := g.loans["a"].Seq
	g.Drop(start, g)
	g.heard()
	g.Seek(start.Add(time.Second), g)
	g.names(start.Add(time.Second), lenders(4, 4)...)
	g.heard()
	g.Lent(start.Add(time.Second), "a", &protocol.Lending{Seq: old, Could: 1, Speed: 1000}, g)
	if got := g.heard(); got != "" {
		t.Errorf("it said %q on an answer to an earlier turn", got)
	}
}

// TestTheSlowestSliceCounts for how long places are wanted.
func TestTheSlowestSliceCounts(t *testing.T) {
	g := newGang(6)
	g.Seek(start, g)
	g.names(start, lenders(4, 4)...)
	g.answers(start, "b", protocol.Lending{Start: start})
	g.heard()
	g.answers(start, "a", protocol.Lending{Start: start, Speed: 500})
	if got := g.heard(); got != "offer a, offer b" || g.loans["b"].Length != 2*g.need+loan.Slack {
		t.Errorf("it said %q for %v", got, g.loans["b"].Length)
	}
}

// world is zones that each keep a place for one gang at a time, whoever asks first, which is worse than a zone with a line; and nobody
// knows of anybody.
type world struct {
	mail  []letter
	holds map[job.ZoneID]hold
}

// hold is the place that a zone keeps, for as long as its gang's home speaks of it.
type hold struct {
	by    *gang
	until quantity.Instant
}

type letter struct {
	from *gang
	zone job.ZoneID
	protocol.Loan
}

func (w *world) deliver(now quantity.Instant, l letter, lose bool) {
	by := w.holds[l.zone].by
	if now >= w.holds[l.zone].until { // as what is kept after a give-back that overtook the word before it
		by = nil
	}
	switch {
	case lose:
	case l.Slices == 0:
		if by == l.from {
			delete(w.holds, l.zone)
		}
	default:
		if l.Keep && by == nil {
			by = l.from
		}
		if by == l.from {
			w.holds[l.zone] = hold{by, now.Add(loan.Stands)}
		}
		a := protocol.Lending{Seq: l.Seq, Could: l.Slices, Speed: 1000, Start: max(now, l.NotBefore), Kept: l.Keep && by == l.from,
			Slices: make([]protocol.LentSlice, l.Slices)}
		a.End = a.Start.Add(l.Length)
		l.from.Lent(now, l.zone, &a, l.from)
	}
}

// TestNoTwoHomesWaitForEachOther: gangs of several homes want zones that keep a place for one of them at a time. Whatever is lost for a
// while and in whichever order messages come, all have run in the end, and soon.
func TestNoTwoHomesWaitForEachOther(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{holds: map[job.ZoneID]hold{}}
		var gangs []*gang
		for i := range rapid.IntRange(2, 4).Draw(rt, "gangs") {
			n := rapid.IntRange(2, 4).Draw(rt, "zones")
			g := &gang{Gang: loan.New(job.ZoneID(fmt.Sprint("home", i)), 2*n, retry), name: job.ID(fmt.Sprint("g", i)),
				loans: map[job.ZoneID]protocol.Loan{}, need: time.Minute, world: w}
			gangs = append(gangs, g)
		}
		now, left := start, slices.Clone(gangs)
		for steps := 0; len(left) > 0; steps++ {
			if steps > 100_000 || now.Sub(start) > time.Hour {
				var how []string
				for _, g := range left {
					how = append(how, g.Sentence(now))
				}
				rt.Fatalf("after %v %d gangs wait still: %q", now.Sub(start), len(left), how)
			}
			next := quantity.Never
			for _, g := range left {
				if g.State() == loan.Idle {
					g.Seek(now, g)
				}
				if g.State() == loan.Seeking {
					g.names(now, lenders(2, 2, 2, 2)...)
				}
				if g.Next() <= now {
					g.Tick(now, g)
				}
				if g.State() == loan.Begun {
					g.Ended(now, true, g)
					left = slices.Delete(slices.Clone(left), slices.Index(left, g), slices.Index(left, g)+1)
					continue
				}
				if g.State() != loan.Idle {
					next = min(next, g.Next())
				}
			}
			if len(w.mail) > 0 {
				i := rapid.IntRange(0, min(2, len(w.mail)-1)).Draw(rt, "delivers")
				l := w.mail[i]
				w.mail = slices.Delete(w.mail, i, i+1)
				w.deliver(now, l, l.Slices > 0 && now.Sub(start) < time.Minute && rapid.IntRange(0, 9).Draw(rt, "lost") == 0)
				now++
				continue
			}
			if next != quantity.Never {
				now = max(now, next)
			}
		}
	})
}

// TestUnusableLoanIsIgnored: what a zone says that it keeps counts only if the gang could run on it.
func TestUnusableLoanIsIgnored(t *testing.T) {
	for name, l := range map[string]protocol.Lending{
		"no slices":       {Start: start, Kept: true, Slices: []protocol.LentSlice{}},
		"too many slices": {Start: start, Kept: true, Slices: make([]protocol.LentSlice, 9)},
		"no speed":        {Start: start, Kept: true, Speed: -1},
		"no time":         {Start: start, Kept: true, End: start},
	} {
		g := keeping(t, start)
		g.answers(start, "a", l)
		g.answers(start, "b", l)
		if g.State() != loan.Keeping || g.begun != nil {
			t.Errorf("%s: it is %v", name, g.State())
		}
	}
}
