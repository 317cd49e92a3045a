//go:build kubernetes

package measure

import (
	"cmp"
	"slices"
	"testing"
	"time"
)

// window is when something is measured.
type window struct{ from, to time.Time }

// in is how much of a stretch of time is within the window.
func (w window) in(from, to time.Time) time.Duration {
	if from.Before(w.from) {
		from = w.from
	}
	if to.After(w.to) {
		to = w.to
	}
	return max(0, to.Sub(from))
}

// gap is time in which the hosts leave a machine's one device to others.
type gap struct {
	machine  string
	from, to time.Time
}

// gapsOf are the gaps between the hosts' Pods, from when one is over to when the next is bound, cut to the window.
func gapsOf(machines []string, hosts []life, w window) (gaps []gap) {
	on := map[string][]life{}
	for _, l := range hosts {
		if l.machine != "" {
			on[l.machine] = append(on[l.machine], l)
		}
	}
	for _, m := range machines {
		at := w.from
		slices.SortFunc(on[m], func(a, b life) int { return a.bound.Compare(b.bound) })
		for _, l := range on[m] {
			if to := earliest(l.bound, w.to); to.After(at) {
				gaps = append(gaps, gap{m, at, to})
			}
			if l.over.IsZero() || l.over.After(at) {
				at = l.over
			}
			if at.IsZero() || at.After(w.to) {
				at = w.to
				break
			}
		}
		if w.to.After(at) {
			gaps = append(gaps, gap{m, at, w.to})
		}
	}
	return gaps
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// usable is the time of gaps that a filler can use who pays cost for each.
func usable(gaps []gap, cost time.Duration) (sum time.Duration) {
	for _, g := range gaps {
		sum += max(0, g.to.Sub(g.from)-cost)
	}
	return sum
}

// filling is what fillers are: each does its units one after the other, each so long, once it has started up.
type filling struct {
	startup, unit time.Duration
	// whole is how many units a Pod of a Job has, which keeps all of them or none; 0: they are subjobs, whose messages say how many are
	// done.
	whole int64
}

// made is what came of the fillers' time within a window.
type made struct {
	// Useful is the time of units that are kept, each once; Twice what was done again, and Lost what was done and is not kept, both thrown
	// away.
	Useful, Twice, Lost time.Duration
	// Starting is what Pods took for starting up, Pods how many ran.
	Starting time.Duration
	Pods     int
}

// leftover counts what is kept of the units that were done within a window.
func (f filling) leftover(fillers []life, w window) (m made) {
	kept := map[string]map[int64]bool{}
	slices.SortFunc(fillers, func(a, b life) int { return cmp.Or(a.over.Compare(b.over), cmp.Compare(a.name, b.name)) })
	for _, l := range fillers {
		if l.runs.IsZero() {
			continue
		}
		over := l.over
		if over.IsZero() {
			over = w.to
		}
		if w.in(l.runs, over) > 0 {
			m.Pods++
		}
		began := l.runs.Add(f.startup)
		m.Starting += w.in(l.runs, earliest(began, over))
		units := l.to - l.from
		if f.whole > 0 && l.succeeded {
			units = f.whole
		}
		for i := range units {
			time := w.in(began.Add(f.unit*time.Duration(i)), began.Add(f.unit*time.Duration(i+1)))
			switch of := kept[l.job]; {
			case f.whole > 0:
				m.Useful += time
			case of[l.from+i]:
				m.Twice += time
			default:
				if of == nil {
					of = map[int64]bool{}
					kept[l.job] = of
				}
				of[l.from+i] = true
				m.Useful += time
			}
		}
		if done := began.Add(f.unit * time.Duration(units)); over.After(done) {
			m.Lost += w.in(done, over)
		}
	}
	return m
}

func at(seconds float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(seconds * 1e9)) }

func TestGapsAreWhatHostsLeave(t *testing.T) {
	w := window{at(0), at(100)}
	hosts := []life{
		{machine: "a", bound: at(-5), over: at(10)}, {machine: "a", bound: at(30), over: at(50)}, {machine: "a", bound: at(90)},
		{machine: "b", bound: at(95), over: at(120)}, {machine: "", made: at(1)}, {machine: "c", bound: at(-10), over: at(200)},
	}
	want := []gap{{"a", at(10), at(30)}, {"a", at(50), at(90)}, {"b", at(0), at(95)}, {"d", at(0), at(100)}}
	got := gapsOf([]string{"a", "b", "c", "d"}, hosts, w)
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if sum := usable(got, 30*time.Second); sum != 145*time.Second {
		t.Errorf("usable with 30 s to pay: %s", sum)
	}
}

func TestWhatIsKeptCountsOnce(t *testing.T) {
	w := window{at(0), at(100)}
	subjobs := filling{startup: time.Second, unit: 2 * time.Second}
	got := subjobs.leftover([]life{
		{job: "j", runs: at(10), over: at(20), from: 0, to: 4},   // 8 s of units, 1 s of starting, 1 s lost
		{job: "j", runs: at(30), over: at(35), from: 3, to: 5},   // one unit again
		{job: "k", runs: at(95), over: at(109), from: 3, to: 9},  // 2 units of 6 are within
		{job: "k", runs: at(50), over: at(53), from: 20, to: 20}, // nothing
		{job: "k", made: at(50)},
	}, w)
	if want := (made{Useful: 14 * time.Second, Twice: 2 * time.Second, Lost: 3 * time.Second, Starting: 4 * time.Second,
		Pods: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	wholes := filling{startup: time.Second, unit: time.Second, whole: 9}
	got = wholes.leftover([]life{{runs: at(10), over: at(20), succeeded: true}, {runs: at(30), over: at(39)},
		{runs: at(99), over: time.Time{}}}, w)
	if want := (made{Useful: 9 * time.Second, Lost: 8 * time.Second, Starting: 3 * time.Second, Pods: 3}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
