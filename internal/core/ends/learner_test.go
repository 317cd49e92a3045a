package ends_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// place is slices on which somebody comes and goes.
type place struct {
	*ends.Learner
	gap    ends.Gap
	now    quantity.Instant
	source string
}

// idle lets a gap of this length pass behind a stay of a minute. In it subjobs are sold one behind the other, each for all that is
// said to be safe, or for an hour where nothing is, and for half a minute at least.
func (p *place) idle(length time.Duration) {
	stay := ends.Stay{Start: p.now, End: quantity.Never, Source: p.source}
	p.Look(p.now, &p.gap, "gpu", []ends.Stay{stay})
	p.now = p.now.Add(time.Minute)
	p.Look(p.now, &p.gap, "gpu", nil)
	end := p.now.Add(length)
	for p.now < end {
		b := p.Safe(p.now, &p.gap)
		until := p.now.Add(time.Hour)
		if !b.None() {
			until = min(max(b.Until, p.now.Add(time.Minute/2)), until)
		}
		p.Ended(b, ends.Outcome{Planned: until, Ended: min(until, end), Cut: until > end})
		p.now = min(until, end)
	}
}

// exponential draws a length of this mean.
func exponential(r *prng.Stream, mean time.Duration) time.Duration {
	return time.Duration(float64(mean)*r.Exp()) + time.Second
}

// TestCoverage: where gaps keep to one law no more than theta of the bets fail, nor of the subjobs that keep to them;
// when the law becomes another, a tenth as long, that holds again soon.
func TestCoverage(t *testing.T) {
	for _, theta := range []int64{50_000, 100_000, 200_000} {
		for name, draw := range map[string]func(r *prng.Stream, mean time.Duration) time.Duration{
			"exponential": exponential,
			"two kinds": func(r *prng.Stream, mean time.Duration) time.Duration {
				if r.Float64() < .8 {
					return exponential(r, mean/4)
				}
				return exponential(r, 4*mean)
			},
			"equal": func(_ *prng.Stream, mean time.Duration) time.Duration { return mean },
		} {
			p := place{Learner: ends.New(theta), source: "alice/train"}
			r := prng.New(1, uint64(theta))
			run := func(when string, gaps int, mean time.Duration, more float64, most bool) {
				before := p.Stats()
				for range gaps {
					p.idle(draw(&r, mean))
				}
				s, want := p.Stats(), float64(theta)/1e6+more
				kept, cut, bets := s.Kept.N-before.Kept.N, s.Kept.Cut-before.Kept.Cut, s.Kept.N+s.Beyond.N-before.Kept.N-before.Beyond.N
				if failed := float64(s.Failed-before.Failed) / float64(bets); failed > want {
					t.Errorf("%s, theta %d, %s: %.3f of %d bets failed", name, theta, when, failed, bets)
				}
				if share := float64(cut) / float64(kept); most && (share > want || kept == 0) {
					t.Errorf("%s, theta %d, %s: %.3f of %d subjobs that kept to their bet were cut short, of %d", name, theta, when, share,
						kept, bets)
				}
			}
			run("at first", 600, 100*time.Minute, .015, true)
			run("after the drift", 150, 10*time.Minute, .05, false)
			run("long after it", 600, 10*time.Minute, .015, false)
		}
	}
}

// TestAnybodyKeepsTheShare: whatever lengths gaps have, also those that somebody makes up, the guarantee of Guard holds.
func TestAnybodyKeepsTheShare(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := place{Learner: ends.New(100_000), source: "x"}
		for range rapid.IntRange(1, 20).Draw(t, "phases") {
			length := time.Duration(rapid.IntRange(1, 120).Draw(t, "minutes")) * time.Minute
			for range rapid.IntRange(1, 20).Draw(t, "times") {
				p.idle(length)
			}
		}
		s := p.Stats()
		if bets := s.Kept.N + s.Beyond.N; float64(s.Failed) > .1*float64(bets)+6 {
			t.Fatalf("%d of %d failed", s.Failed, bets)
		}
	})
}

// TestTheSpecialKindComesFirst: what is known of gaps behind one template is said of them, and of a new one what is known of all.
func TestTheSpecialKindComesFirst(t *testing.T) {
	l := ends.New(100_000)
	short, long := place{Learner: l, source: "alice/short"}, place{Learner: l, source: "bob/long 3"}
	for range 40 {
		short.idle(time.Minute)
		long.idle(5 * time.Hour)
	}
	said := func(source string) time.Duration {
		p := place{Learner: l, now: 1, source: source}
		p.Look(1, &p.gap, "gpu", []ends.Stay{{Start: 1, End: quantity.Never, Source: source}})
		p.Look(2, &p.gap, "gpu", nil)
		b := p.Safe(2, &p.gap)
		if b.None() {
			return ends.None
		}
		return b.Until.Sub(2)
	}
	if s, o, n := said("alice/short"), said("bob/long 4"), said("carol/new"); s != time.Minute || o != 5*time.Hour || n != time.Minute {
		t.Errorf("behind short %v, behind long %v, behind new %v", s, o, n)
	}
}

// TestClaimsAreTakenAsTheyComeTrue: somebody who always comes after half of the time that he says is believed half of it, and who
// keeps his word all of it; and with nothing known the claim stands.
func TestClaimsAreTakenAsTheyComeTrue(t *testing.T) {
	l := ends.New(100_000)
	now := quantity.Instant(time.Hour)
	said := func(g *ends.Gap, source string, comes time.Duration) (safe time.Duration) {
		l.Look(now, g, "gpu", []ends.Stay{{Start: now, End: now.Add(time.Second), Source: source}})
		now = now.Add(time.Second)
		claim := ends.Stay{Start: now.Add(time.Hour), End: quantity.Never, Source: source}
		l.Look(now, g, "gpu", []ends.Stay{claim})
		b := l.Safe(now, g)
		safe = ends.None
		if !b.None() && b.Claimed {
			safe = b.Until.Sub(now)
		}
		now = now.Add(comes)
		claim.Start = now
		l.Look(now, g, "gpu", []ends.Stay{claim})
		now = now.Add(time.Second)
		return safe
	}
	var early, true_ ends.Gap
	if safe := said(&early, "eve/early", time.Hour/2); safe != ends.None {
		t.Errorf("with nothing known %v of an hour are safe", safe)
	}
	for range 30 {
		said(&early, "eve/early", time.Hour/2)
		said(&true_, "tom/true", time.Hour)
	}
	if safe := said(&early, "eve/early", time.Hour/2); safe != time.Hour/2 {
		t.Errorf("of an hour %v are safe; want half", safe)
	}
	if safe := said(&true_, "tom/true", time.Hour); safe != time.Hour {
		t.Errorf("of an hour %v are safe; want all", safe)
	}
}

// TestAStayThatWasCalledOffEndsNothing: what was foretold and lifted before its time leaves the gap as it was; what came and went between
// two looks has ended it.
func TestAStayThatWasCalledOffEndsNothing(t *testing.T) {
	const m = quantity.Instant(time.Minute)
	for _, c := range []struct {
		lifted quantity.Instant
		gaps   int64
	}{{8 * m, 0}, {20 * m, 1}} {
		l, g := ends.New(100_000), ends.Gap{}
		l.Look(0, &g, "gpu", []ends.Stay{{Start: 0, End: m}})
		l.Look(m, &g, "gpu", []ends.Stay{{Start: 10 * m, End: quantity.Never}})
		l.Look(c.lifted, &g, "gpu", nil)
		l.Look(30*m, &g, "gpu", nil)
		if got := l.Stats().Gaps; got != c.gaps {
			t.Errorf("lifted at %d m: %d gaps have ended, want %d", c.lifted/m, got, c.gaps)
		}
	}
}

// TestTheCalendarTeachesNoEnds: a gap that serving hours end was cut off from sight, not ended.
func TestTheCalendarTeachesNoEnds(t *testing.T) {
	p := place{Learner: ends.New(100_000), source: "owner"}
	for range 20 {
		p.Look(p.now, &p.gap, "gpu", []ends.Stay{{Start: p.now, End: quantity.Never, Source: "owner", Calendar: true}})
		p.now = p.now.Add(time.Minute)
		p.Look(p.now, &p.gap, "gpu", nil)
		p.now = p.now.Add(time.Hour)
	}
	if b := p.Safe(p.now-1, &p.gap); !b.None() {
		t.Errorf("an end is predicted at %d", b.Until)
	}
}

func TestWhose(t *testing.T) {
	for source, want := range map[string][2]string{
		"alice/train":                   {"alice", "train"},
		"alice/train job 17":            {"alice", "train"},
		"process 4242 (python3) with 3": {"", "python3"},
		"host job 17":                   {"", "host job "},
		"":                              {"", ""},
	} {
		if user, template := ends.Whose(source); user != want[0] || template != want[1] {
			t.Errorf("%q: %q, %q; want %q", source, user, template, want)
		}
	}
}

// TestWhoSavesLosesNothing: as long as nothing is known work counts as lost; then by what was saved of it lately.
func TestWhoSavesLosesNothing(t *testing.T) {
	l, kind := ends.New(100_000), ends.Kind{Queue: "q", Kind: job.Steps}
	if !l.Loses(kind) {
		t.Error("nothing is known, and it loses nothing")
	}
	l.Paid(kind, time.Hour, 50*time.Minute)
	if l.Loses(kind) || !l.Loses(ends.Kind{Queue: "q", Kind: job.Items}) {
		t.Error("five sixths were saved, of this kind alone")
	}
	for range 40 {
		l.Paid(kind, time.Hour, 0)
	}
	if !l.Loses(kind) {
		t.Error("its program saves no more")
	}
}

// TestKindsAreBounded: a host with new names for everything is remembered by its latest.
func TestKindsAreBounded(t *testing.T) {
	l := ends.New(100_000)
	for i := range 3 * ends.MostKinds {
		p := place{Learner: l, now: quantity.Instant(i) * quantity.Instant(time.Hour), source: string(rune('a'+i%26)) + "/" +
			string(rune('a'+i/26))}
		p.idle(time.Minute)
		p.idle(time.Minute)
	}
	if n := l.Kinds(); n > ends.MostKinds {
		t.Errorf("%d kinds are kept", n)
	}
	p := place{Learner: l, now: 1 << 60, source: "new/new"}
	p.Look(p.now, &p.gap, "gpu", []ends.Stay{{Start: p.now, End: quantity.Never, Source: "new/new"}})
	p.Look(p.now+1, &p.gap, "gpu", nil)
	if p.Safe(p.now+1, &p.gap).None() {
		t.Error("what all kinds have in common is forgotten")
	}
}
