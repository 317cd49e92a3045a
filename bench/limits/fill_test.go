package main

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

func TestKept(t *testing.T) {
	for _, x := range []struct {
		saves, done time.Duration
		cut         bool
		want        time.Duration
	}{
		{told, 25 * time.Minute, true, 25 * time.Minute},
		{10 * time.Minute, 25 * time.Minute, true, 20 * time.Minute},
		{10 * time.Minute, 25 * time.Minute, false, 25 * time.Minute},
		{30 * time.Minute, 25 * time.Minute, true, 0},
		{0, 25 * time.Minute, true, 0},
		{0, 25 * time.Minute, false, 25 * time.Minute},
	} {
		if got := (&work{saves: x.saves}).kept(x.done, x.cut); got != x.want {
			t.Errorf("of %v, saved each %v, cut %v: %v is kept, want %v", x.done, x.saves, x.cut, got, x.want)
		}
	}
}

func at(d time.Duration) quantity.Instant { return quantity.Instant(d) }

// TestWays: of two nodes ada's job takes one, which it may have for ten hours and leaves after one. bob's job wants both, so by the plan
// the gap of the other lasts for ten hours.
func TestWays(t *testing.T) {
	jobs := []job{
		{user: "ada", submitted: 0, run: time.Hour, limit: 10 * time.Hour, nodes: 1},
		{user: "bob", submitted: 0, run: 30 * time.Minute, limit: time.Hour, nodes: 2},
		{user: "ada", submitted: at(2 * time.Hour), run: time.Hour, limit: time.Hour, nodes: 1},
	}
	// After bob's job both nodes are idle for the last half hour, and nothing is planned: a pilot each, which the stretch's end does not
	// cut.
	rest := 2 * (30*time.Minute - 30*time.Second)
	const minute = time.Minute
	known := runs()
	over := belief(func(f *fill, _ *job) quantity.Instant { return f.now })
	for _, x := range []struct {
		way              way
		asked, preempted int
		// done at most in the gap, and what of that is kept of each of works.
		kept []time.Duration
	}{
		{way{name: "plan", longest: 2 * time.Hour}, 3, 1, []time.Duration{59*minute + 30*time.Second, 50 * minute, 30 * minute, 0}},
		{way{name: "runs", longest: 2 * time.Hour, ends: known}, 3, 0, slices.Repeat([]time.Duration{59*minute + 20*time.Second}, 4)},
		{way{name: "gaps", longest: 2 * time.Hour, knows: true}, 3, 0, slices.Repeat([]time.Duration{59*minute + 20*time.Second}, 4)},
		// Its subjob ends with the gap, and is not cut.
		{way{name: "subjobs", longest: 2 * time.Hour, ends: known, subjobs: true}, 3, 1,
			slices.Repeat([]time.Duration{59*minute + 30*time.Second}, 4)},
		// The gap may end at any time, and an idle node helps nobody: one of two minutes after the other.
		{way{name: "over", longest: 2 * time.Hour, ends: &over}, 32, 0, slices.Repeat([]time.Duration{30 * 80 * time.Second}, 4)},
		// Three whole ones of 25 minutes, the third cut; two more on each node at the end, where the stretch ends in the second.
		{way{name: "short", longest: 25 * minute}, 7, 1, []time.Duration{
			2*(24*minute+20*time.Second) + 9*minute + 30*time.Second - 2*40*time.Second, 2*(24*minute+20*time.Second) - 2*40*time.Second,
			2*(24*minute+20*time.Second) - 2*40*time.Second, 2*(24*minute+20*time.Second) - 2*40*time.Second}},
	} {
		w := x.way
		f := play(2, 10*time.Second, jobs, []*way{&w}, []*belief{known})
		for i := range x.kept {
			x.kept[i] += rest
		}
		if w.asked != x.asked || w.preempted != x.preempted || !slices.Equal(w.kept, x.kept) {
			t.Errorf("%s: asked for %d, preempted %d, kept %v; want %d, %d, %v", w.name, w.asked, w.preempted, w.kept, x.asked,
				x.preempted, x.kept)
		}
		if f.idle != 2*time.Hour {
			t.Errorf("the nodes were idle for %v, want 2h", f.idle)
		}
		if w.name != "plan" {
			continue
		}
		if o := f.outcome; o.asked != 3 || o.claimed != 1 || o.over != 1 || o.early != 1 || o.newcomer != 0 || o.failed[0] != 0 {
			t.Errorf("claims: %+v", o)
		}
	}
}

// TestPassesAreTheHosts: what the host's plan leaves out, since it is more than a day away, comes into it as time passes, and changes what
// may start. The host sees that when a job ends, not when a pilot does.
func TestPassesAreTheHosts(t *testing.T) {
	jobs := []job{
		{run: 25 * time.Hour, limit: 25 * time.Hour, nodes: 1},
		{run: 2 * time.Hour, limit: 2 * time.Hour, nodes: 1},
		{run: time.Hour, limit: time.Hour, nodes: 3}, // left out at first
		{run: time.Hour, limit: 23*time.Hour + 30*time.Minute, nodes: 2},
		{run: 9 * time.Hour, limit: 9 * time.Hour, nodes: 1}, // may start once that is not
		{submitted: at(10 * time.Hour), run: time.Hour, limit: time.Hour, nodes: 1},
	}
	alone := play(3, 10*time.Second, jobs, nil, nil)
	with := play(3, 10*time.Second, jobs, []*way{{name: "plan", longest: 90 * time.Minute}}, nil)
	if with.idle != alone.idle {
		t.Errorf("gaps of %v with pilots, %v without", with.idle, alone.idle)
	}
}

// TestLearned: ada's jobs use a tenth of their limits, which is known of the 21st, behind which a node has a gap.
func TestLearned(t *testing.T) {
	var jobs []job
	for range 20 {
		jobs = append(jobs, job{user: "ada", run: time.Hour, limit: 10 * time.Hour, nodes: 2})
	}
	jobs = append(jobs, job{user: "ada", run: time.Hour, limit: 10 * time.Hour, nodes: 1},
		job{user: "bob", run: time.Hour, limit: time.Hour, nodes: 2},
		job{user: "ada", submitted: at(24 * time.Hour), run: time.Hour, limit: time.Hour, nodes: 1})
	b := learned(100_000)
	plain, knows := &way{name: "plan", longest: 2 * time.Hour}, &way{name: "learned", longest: 2 * time.Hour, ends: b}
	o := play(2, 10*time.Second, jobs, []*way{plain, knows}, []*belief{b}).outcome
	if plain.preempted != 1 || knows.preempted != 0 {
		t.Errorf("preempted by the plan: %d, want 1; by what was learned: %d, want 0", plain.preempted, knows.preempted)
	}
	if o.early != 1 || o.failed[0] != 0 {
		t.Errorf("claims: %+v", o)
	}
}

// TestPlay: no way keeps more than the gaps' time, nobody who knows the gaps is preempted, and no way changes what the host does.
func TestPlay(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 4
		jobs := drawJobs(t, nodes)
		b := learned(rapid.Int64Range(0, 500_000).Draw(t, "alpha"))
		all := ways([]*belief{b, b})
		f := play(nodes, 10*time.Second, jobs, all, []*belief{b, runs()})
		alone := play(nodes, 10*time.Second, jobs, nil, nil)
		if f.idle != alone.idle {
			t.Fatalf("gaps of %v with pilots, %v without", f.idle, alone.idle)
		}
		for _, w := range all {
			for i, d := range w.kept {
				if d < 0 || d > f.idle || d > w.kept[0] {
					t.Fatalf("%s: %v of %v is kept by what saves %s, %v by what saves when told", w.name, d, f.idle, works[i].name,
						w.kept[0])
				}
			}
			if w.knows && w.preempted > 0 {
				t.Fatalf("%s: %d were preempted", w.name, w.preempted)
			}
		}
		o := f.outcome
		if o.over > o.claimed || o.claimed > o.asked || o.early > o.over || o.newcomer > o.early || o.failed[0] > o.early {
			t.Fatalf("%+v", o)
		}
	})
}

func TestShares(t *testing.T) {
	s := newShares()
	ran := func(user string, run time.Duration) {
		s.saw(&job{user: user, run: run, limit: 10 * time.Hour})
	}
	ada, bob := &job{user: "ada", limit: 100 * time.Minute}, &job{user: "bob", limit: 100 * time.Minute}
	if got := s.over(0, ada, 100_000); got != ada.atLimit() {
		t.Errorf("nothing is known, and it is over by %v", time.Duration(got))
	}
	for i := range 20 {
		ran("ada", time.Duration(i+1)*6*time.Minute) // 1% to 20%
	}
	// Of 20 the second ends first with a chance of 2 in 21, which is the last up to .1; of those beyond 10% the first of ten at 11%.
	for _, x := range []struct {
		age, want time.Duration
	}{{0, 2 * time.Minute}, {10 * time.Minute, 11 * time.Minute}, {30 * time.Minute, 100 * time.Minute}} {
		if got := s.over(at(x.age), ada, 100_000); got != at(x.want) {
			t.Errorf("at an age of %v: over by %v, want %v", x.age, time.Duration(got), x.want)
		}
	}
	if got := s.over(0, bob, 100_000); got != at(2*time.Minute) {
		t.Errorf("of one who is not known: %v, want as of all", time.Duration(got))
	}
	for range 20 {
		ran("bob", 10*time.Hour)
	}
	if got := s.over(0, bob, 100_000); got != bob.atLimit() {
		t.Errorf("of one who needs all: %v", time.Duration(got))
	}
}

func TestHostJobs(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "swf"), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "swf", "hpc2n.swf.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	text := "; Version: 2.2\n" +
		"1 100 0 60 3 60 -1 3 600 -1 1 7 1 1 1 -1 -1 -1\n" + // three processors are two nodes
		"2 200 0 -1 3 60 -1 3 600 -1 5 7 1 1 1 -1 -1 -1\n" + // it never ran
		"3 300 0 700 1 60 -1 1 600 -1 1 8 1 1 1 -1 -1 -1\n" // longer than its limit
	if _, err = z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err = z.Close(); err != nil {
		t.Fatal(err)
	}
	if err = f.Close(); err != nil {
		t.Fatal(err)
	}
	jobs, err := hostJobs(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := []job{{user: jobs[0].user, submitted: at(50 * time.Second), run: time.Minute, limit: 10 * time.Minute, nodes: 2},
		{user: jobs[1].user, submitted: at(150 * time.Second), run: 10 * time.Minute, limit: 10 * time.Minute, nodes: 1}}
	if !slices.Equal(jobs, want) || jobs[0].user == jobs[1].user {
		t.Errorf("read %+v, want %+v", jobs, want)
	}
	if got := load(jobs); got != (2*60+600)/(120*150.) {
		t.Errorf("a load of %v", got)
	}
}
