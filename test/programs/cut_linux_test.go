package programs

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// strikes is how often a job that is cut is struck.
const strikes = 5

// program is one that is cut.
type program struct {
	// name is that of init --like.
	name string
	// units is how many the job has at first, and window how long the shortest window is that the program gets anything done in.
	units  int
	window time.Duration
	// prepare makes what a run of so many units needs in a folder that has init's files.
	prepare func(t *testing.T, dir string, units int)
	// key of the job file says how long a unit takes, and estimate is what init wrote there.
	key, estimate string
	// same compares what two runs of so many units have left.
	same func(t *testing.T, uncut, cut *daemon, job string, units int)
}

// doublings bounds how often a job is made twice as long because this machine is too fast for it.
const doublings = 8

// compare runs a program in one window and in many, struck, and holds the results against each other. How long the windows are follows
// from how long the uncut run took on this machine, and a job that is over too soon to be struck is run again with twice as many units:
// so neither a fast machine nor a slow one makes it fail.
func (p program) compare(t *testing.T) {
	random := strikesOf(t)
	for range doublings {
		if p.holds(t, random) {
			return
		}
		p.units *= 2
		t.Logf("it was over too soon: again, with %d units", p.units)
	}
	t.Errorf("a run of %d units is over before it is struck %d times and cut", p.units, strikes)
}

// holds is one comparison. False: the job was too short to be struck and cut often enough.
func (p program) holds(t *testing.T, random *rand.Rand) bool {
	job := "my-" + p.name
	dir := filepath.Join(t.TempDir(), "work")
	do(t, filepath.Dir(dir), "mkdir", "work")
	do(t, dir, filepath.Join(bin, "sluice"), "init", "--like", p.name)
	p.prepare(t, dir, p.units)
	// Kills at random are no failures of the program: nobody counts them here.
	edit(t, filepath.Join(dir, "job.yaml"), "\nspec:\n", "\nspec:\n  maxFailures: 1000\n")

	// All of it is one subjob where a unit is said to take longer than any does.
	said, long := p.key+": "+p.estimate, fmt.Sprintf("%s: %dms", p.key, (4*time.Hour).Milliseconds()/int64(p.units))
	edit(t, filepath.Join(dir, "job.yaml"), said, long)
	uncut := up(t, "24h")
	uncut.must(dir, "submit", "job.yaml")
	whole := uncut.done(job)
	if whole.Subjobs != 1 {
		t.Fatalf("%d subjobs uncut: want 1", whole.Subjobs)
	}
	var alone time.Duration
	for _, s := range whole.History {
		alone += s.End.Sub(s.Start)
	}

	window := max(p.window, alone/3).Round(time.Second)
	t.Logf("%d units, uncut %s: windows of %s", p.units, alone.Round(time.Millisecond), window)
	edit(t, filepath.Join(dir, "job.yaml"), long, said)
	cut := up(t, window.String())
	cut.must(dir, "submit", "job.yaml")
	if !p.struck(t, random, cut, job, window) {
		return false
	}
	struck := cut.done(job)

	// A cut costs what the subjobs that counted ran longer than the uncut one.
	var ran time.Duration
	n := 0
	for _, s := range struck.History {
		if s.Committed != nil && s.Committed.To > s.Committed.From {
			ran, n = ran+s.End.Sub(s.Start), n+1
		}
	}
	if n < 3 {
		return false
	}
	p.same(t, uncut, cut, job, p.units)
	each := (ran - alone) / time.Duration(n-1)
	t.Logf("%d subjobs that counted ran %s, uncut %s: a cut costs %s, %.2f%% of a window of 20 minutes", n, ran.Round(time.Millisecond),
		alone.Round(time.Millisecond), each.Round(time.Millisecond), 100*each.Seconds()/(20*time.Minute).Seconds())
	// A machine that others make slower meanwhile has all of it take longer, so it is judged only where a person has asked for it.
	if os.Getenv("SLUICE_PROGRAMS") == "require" && each > time.Minute {
		t.Errorf("a cut costs %s: want less than 5%% of 20 minutes", each)
	}
	if t.Failed() {
		t.Log(strings.TrimSpace(cut.must("", "job", job)))
	}
	return true
}

// struck kills the daemon, supervisors and the program while a job runs. False: it was over before.
//
// A job gets more time for its start after each subjob in a row that completed nothing, which is soon more than such short windows have. So
// it is not killed again before it has come further: the daemon is, which costs it nothing.
func (p program) struck(t *testing.T, random *rand.Rand, d *daemon, job string, window time.Duration) bool {
	t.Helper()
	begin, killedAt := time.Now(), int64(-1)
	for n := range strikes {
		time.Sleep(time.Duration(float64(window) * (0.1 + 0.5*random.Float64())))
		kind := []string{"daemon", "supervisor", "program"}[random.IntN(3)]
		over := false
		until(t, "something of "+job+" runs", func() bool {
			j := d.job(job)
			over = j.over()
			if j.Progress == killedAt {
				kind = "daemon"
			}
			if over || !d.strike(kind) {
				return over
			}
			if kind != "daemon" {
				killedAt = j.Progress
			}
			return true
		})
		if over {
			d.done(job) // it has completed
			t.Logf("over after %d of %d strikes", n, strikes)
			return false
		}
		t.Logf("%s: killed the %s", time.Since(begin).Round(time.Millisecond), kind)
	}
	return true
}
