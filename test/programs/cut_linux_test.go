package programs

import (
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
	// window is how long the windows of the job are that is cut: 20 minutes, scaled so that the program's start is a part of it.
	window time.Duration
	// prepare makes what the program needs in a folder that has init's files, and scales the job down.
	prepare func(t *testing.T, dir string)
	// perUnit is put into the job file of the uncut run, so that all of it is one subjob: longer than any unit takes.
	perUnit [2]string
	// same compares what two runs have left.
	same func(t *testing.T, uncut, cut *daemon, job string)
}

// compare runs a program in one window and in many, struck, and holds the results against each other.
func (p program) compare(t *testing.T) {
	random := strikesOf(t)
	job := "my-" + p.name
	dir := filepath.Join(t.TempDir(), "work")
	do(t, filepath.Dir(dir), "mkdir", "work")
	do(t, dir, filepath.Join(bin, "sluice"), "init", "--like", p.name)
	p.prepare(t, dir)
	// Kills at random are no failures of the program: nobody counts them here.
	edit(t, filepath.Join(dir, "job.yaml"), "\nspec:\n", "\nspec:\n  maxFailures: 1000\n")

	cut := up(t, p.window.String())
	cut.must(dir, "submit", "job.yaml")
	said := time.Now()
	for n := 0; n < strikes; {
		time.Sleep(time.Duration(float64(p.window) * (0.1 + 0.5*random.Float64())))
		kind := []string{"daemon", "supervisor", "program"}[random.IntN(3)]
		until(t, "something of "+job+" runs", func() bool {
			if j := cut.job(job); j.over() {
				t.Fatalf("%s is %s after %d of %d strikes: %s", job, j.State, n, strikes, j.Reason)
			}
			return cut.strike(kind)
		})
		n++
		t.Logf("%s: killed the %s", time.Since(said).Round(time.Millisecond), kind)
	}
	struck := cut.done(job)

	edit(t, filepath.Join(dir, "job.yaml"), p.perUnit[0], p.perUnit[1])
	uncut := up(t, "24h")
	uncut.must(dir, "submit", "job.yaml")
	whole := uncut.done(job)
	if whole.Subjobs != 1 || struck.Subjobs < 3 {
		t.Errorf("%d subjobs uncut, %d cut: want 1, and several", whole.Subjobs, struck.Subjobs)
	}
	p.same(t, uncut, cut, job)

	// A cut costs what the subjobs that counted ran longer than the uncut one.
	var ran, alone time.Duration
	n := 0
	for _, s := range struck.History {
		if s.Committed != nil && s.Committed.To > s.Committed.From {
			ran, n = ran+s.End.Sub(s.Start), n+1
		}
	}
	for _, s := range whole.History {
		alone += s.End.Sub(s.Start)
	}
	each := (ran - alone) / time.Duration(max(1, n-1))
	share := 100 * each.Seconds() / (20 * time.Minute).Seconds()
	t.Logf("%d subjobs that counted ran %s, uncut %s: a cut costs %s, %.2f%% of a window of 20 minutes", n, ran.Round(time.Millisecond),
		alone.Round(time.Millisecond), each.Round(time.Millisecond), share)
	if n < 3 || share >= 5 {
		t.Errorf("of %d subjobs, a cut costs %s: want less than 5%% of 20 minutes", n, each)
	}
	if t.Failed() {
		t.Log(strings.TrimSpace(cut.must("", "job", job)))
	}
}
