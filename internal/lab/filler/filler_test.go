package filler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

const s = quantity.Instant(time.Second)

// diary is an observer that writes down what it hears, in seconds.
type diary struct {
	lines  []string
	pieces []measure.Piece
	names  []int64
}

func (d *diary) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) Arrived(_ quantity.Instant, x measure.Slot, j *workload.Job) {
	for int(x) >= len(d.names) {
		d.names = append(d.names, 0)
	}
	d.names[x] = j.Number
}
func (d *diary) Began(quantity.Instant, measure.Slot, uint8, int32) {}
func (d *diary) Sent(int)                                           {}
func (d *diary) Ended(_ quantity.Instant, p *measure.Piece) {
	d.pieces = append(d.pieces, *p)
	lost := p.End.Sub(p.Start) - p.Useful - p.Overhead
	d.note("%d: %g-%g useful %g overhead %g lost %g", d.names[p.Slot], float64(p.Start)/float64(s), float64(p.End)/float64(s),
		p.Useful.Seconds(), p.Overhead.Seconds(), lost.Seconds())
}
func (d *diary) Done(at quantity.Instant, x measure.Slot, state job.State) {
	d.note("%d: %v at %g", d.names[x], state, float64(at)/float64(s))
}

// listed gives jobs that are written out.
type listed struct{ jobs []workload.Job }

func (l *listed) Next(j *workload.Job) (bool, error) {
	if len(l.jobs) == 0 {
		return false, nil
	}
	*j, l.jobs = l.jobs[0], l.jobs[1:]
	return true, nil
}

// steps is a job of so many units of ten seconds that starts in a second, restores in five and leaves a checkpoint in three.
func steps(number, units int64) workload.Job {
	return workload.Job{
		Number: number, Kind: job.Steps, Slices: 1, Units: units, Grid: 1, Parallelism: 1,
		Work: time.Duration(units) * 10 * time.Second, Declared: time.Duration(units) * 10 * time.Second,
		Restore: 5 * time.Second, Checkpoint: 3 * time.Second, Startup: time.Second,
		Memory: workload.Memory{Phases: []trp.Phase{{UpTo: units, Mean: 1}}},
	}
}

// stay is host work over [from, to), said when it is given as third number.
func stay(from, to, said quantity.Instant) hostwork.Stay {
	return hostwork.Stay{From: from * s, To: to * s, Words: []hostwork.Word{{At: said * s, From: from * s, To: to * s}}}
}

func fill(t fataler, d Discipline, notice time.Duration, limit quantity.Instant, host hostwork.Log, jobs ...workload.Job) *diary {
	t.Helper()
	o := Options{
		Discipline: d, Host: host, Notice: notice, Least: 20 * time.Second,
		Classes: []measure.Class{{Name: "gpu", Count: len(host), Weight: 1000, Memory: 10}},
		ClassOf: make([]uint8, len(host)), Source: &listed{jobs}, Usable: func(*workload.Job) uint64 { return 1 }, Observer: &diary{},
	}
	if _, _, err := Play(context.Background(), o, limit); err != nil {
		t.Fatal(err)
	}
	return o.Observer.(*diary)
}

type fataler interface {
	Helper()
	Fatal(...any)
}

func named(t fataler, name string) Discipline {
	d, known, err := Named(name)
	if err != nil || !known {
		t.Fatal(name, known, err)
	}
	return d
}

// each plays the same under several disciplines, and wants of each what it is to do, line by line.
func each(t *testing.T, notice time.Duration, host hostwork.Log, jobs []workload.Job, want map[string]string) {
	t.Helper()
	for name, want := range want {
		t.Run(name, func(t *testing.T) {
			d := fill(t, named(t, name), notice, 1000*s, host, jobs...)
			var lines []string
			for l := range strings.Lines(want) {
				if l = strings.TrimSpace(l); l != "" {
					lines = append(lines, l)
				}
			}
			if !slices.Equal(d.lines, lines) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(d.lines, "\n\t"), strings.Join(lines, "\n\t"))
			}
		})
	}
}

// TestWhatEachDoesWithAGap: one slice that is the host's over [100, 150) s, which is foretold at 60 s, with ten seconds' notice; a job
// of 30 steps of ten seconds, and one of four behind it. All figures are by hand.
func TestWhatEachDoesWithAGap(t *testing.T) {
	each(t, 10*time.Second, hostwork.Log{{stay(100, 150, 60)}}, []workload.Job{steps(0, 30), steps(1, 4)}, map[string]string{
		"nothing": ``,
		// Both are killed at 100 and begin anew.
		"requeue": `
			0: 0-100 useful 0 overhead 1 lost 99
			0: 150-451 useful 300 overhead 1 lost 0
			0: COMPLETED at 451
			1: 451-492 useful 40 overhead 1 lost 0
			1: COMPLETED at 492`,
		// Nine steps are done at 91, and the checkpoint at 94. With the restore the other 21 take 216 s.
		"checkpoint": `
			0: 0-94 useful 90 overhead 4 lost 0
			0: 150-366 useful 210 overhead 6 lost 0
			0: COMPLETED at 366
			1: 366-407 useful 40 overhead 1 lost 0
			1: COMPLETED at 407`,
		// A checkpoint at 41-44 and at 84-87; the notice comes at 90, when nothing is done that is not saved, but a step more is
		// done at 97 and saved at 100.
		"checkpoint:40s": `
			0: 0-100 useful 90 overhead 10 lost 0
			0: 150-381 useful 210 overhead 21 lost 0
			0: COMPLETED at 381
			1: 381-422 useful 40 overhead 1 lost 0
			1: COMPLETED at 422`,
		// Tasks end at 44 and 87; the third is lost.
		"pilot:40s": `
			0: 0-100 useful 80 overhead 7 lost 13
			0: 150-391 useful 220 overhead 21 lost 0
			0: COMPLETED at 391
			1: 391-432 useful 40 overhead 1 lost 0
			1: COMPLETED at 432`,
		// Units end with their commits at 14, 27 ... 92; the eighth is lost. The second job comes to a worker that is there.
		"workers:10s": `
			0: 0-100 useful 70 overhead 22 lost 8
			0: 150-452 useful 230 overhead 72 lost 0
			0: COMPLETED at 452
			1: 452-501 useful 40 overhead 9 lost 0
			1: COMPLETED at 501`,
		// The reservation is not known yet when the first job starts: its walltime is the limit, and it is preempted.
		"time-min": `
			0: 0-94 useful 90 overhead 4 lost 0
			0: 150-366 useful 210 overhead 6 lost 0
			0: COMPLETED at 366
			1: 366-407 useful 40 overhead 1 lost 0
			1: COMPLETED at 407`,
		"deadline": `
			0: 0-94 useful 90 overhead 4 lost 0
			0: 150-366 useful 210 overhead 6 lost 0
			0: COMPLETED at 366
			1: 366-407 useful 40 overhead 1 lost 0
			1: COMPLETED at 407`,
		// The short job goes first; the long one begins at 41 in an open gap and is killed.
		"sjf": `
			1: 0-41 useful 40 overhead 1 lost 0
			1: COMPLETED at 41
			0: 41-100 useful 0 overhead 1 lost 58
			0: 150-451 useful 300 overhead 1 lost 0
			0: COMPLETED at 451`,
	})
}

// TestWhatIsForetold: the host says at once that it comes at 30 s, and nothing of 150 s until it is there.
func TestWhatIsForetold(t *testing.T) {
	each(t, 0, hostwork.Log{{stay(30, 50, 0), stay(150, 200, 150)}}, []workload.Job{steps(0, 25)}, map[string]string{
		// The walltime is 20 s, in which one step can be saved; the next pass, at 30, comes too late.
		"time-min": `
			0: 0-14 useful 10 overhead 4 lost 0
			0: 50-150 useful 0 overhead 6 lost 94
			0: 200-446 useful 240 overhead 6 lost 0
			0: COMPLETED at 446`,
		// 20 s at least, with a second before and three behind: two steps fit before 30.
		"deadline": `
			0: 0-24 useful 20 overhead 4 lost 0
			0: 50-150 useful 0 overhead 6 lost 94
			0: 200-436 useful 230 overhead 6 lost 0
			0: COMPLETED at 436`,
		// The long job does not fit and waits for an open end, which comes without notice.
		"sjf": `
			0: 50-150 useful 0 overhead 1 lost 99
			0: 200-451 useful 250 overhead 1 lost 0
			0: COMPLETED at 451`,
	})
}

// TestTheMinimumAndNoMore: the host says at 5 s that it comes at 100 s. One element runs on, which was started before; those behind it
// start with a pass, each 30 s, and get the walltime of 20 s although the gap holds more. At 90 s there is no time for another.
func TestTheMinimumAndNoMore(t *testing.T) {
	each(t, 0, hostwork.Log{{stay(100, 150, 5)}}, []workload.Job{steps(0, 1), steps(1, 9)}, map[string]string{"time-min": `
		0: 0-11 useful 10 overhead 1 lost 0
		0: COMPLETED at 11
		1: 30-44 useful 10 overhead 4 lost 0
		1: 60-79 useful 10 overhead 9 lost 0
		1: 150-226 useful 70 overhead 6 lost 0
		1: COMPLETED at 226`})
}

// TestWithinANotice: the host wants its slice from 60 s on and has it at 100; at 61 the first job is over. What can leave a checkpoint
// before then begins, and nothing else does: not even what could where there is no time for a step.
func TestWithinANotice(t *testing.T) {
	jobs := []workload.Job{steps(0, 6), steps(1, 4)}
	each(t, 40*time.Second, hostwork.Log{{stay(100, 150, 60)}}, jobs, map[string]string{
		"requeue": `
			0: 0-61 useful 60 overhead 1 lost 0
			0: COMPLETED at 61
			1: 150-191 useful 40 overhead 1 lost 0
			1: COMPLETED at 191`,
		"checkpoint": `
			0: 0-61 useful 60 overhead 1 lost 0
			0: COMPLETED at 61
			1: 61-95 useful 30 overhead 4 lost 0
			1: 150-166 useful 10 overhead 6 lost 0
			1: COMPLETED at 166`,
	})
	each(t, 40*time.Second, hostwork.Log{{stay(74, 150, 34)}}, jobs, map[string]string{"checkpoint": `
		0: 0-61 useful 60 overhead 1 lost 0
		0: COMPLETED at 61
		1: 150-191 useful 40 overhead 1 lost 0
		1: COMPLETED at 191`})
}

// TestItemsThatAreDoneAreDone: of items what is done on the grid counts where they are not run again, without a checkpoint.
func TestItemsThatAreDoneAreDone(t *testing.T) {
	items := workload.Job{
		Kind: job.Items, Slices: 1, Units: 100, Grid: 4, Parallelism: 1, Work: 200 * time.Second, Declared: 200 * time.Second,
		Memory: workload.Memory{Phases: []trp.Phase{{UpTo: 100, Mean: 1}}},
	}
	each(t, 0, hostwork.Log{{stay(15, 20, 15)}}, []workload.Job{items}, map[string]string{"checkpoint": `
		0: 0-15 useful 8 overhead 0 lost 7
		0: 20-212 useful 192 overhead 0 lost 0
		0: COMPLETED at 212`})
}

// TestAPhaseThatDoesNotFit: a run that enters a phase beyond its slice's memory ends there, with what its checkpoints saved.
func TestAPhaseThatDoesNotFit(t *testing.T) {
	j := steps(0, 9)
	j.Memory.Phases = []trp.Phase{{UpTo: 4, Mean: 1}, {UpTo: 9, Mean: 11}}
	each(t, 0, hostwork.Log{{}}, []workload.Job{j}, map[string]string{"pilot:20s": `
		0: 0-47 useful 40 overhead 7 lost 0
		0: FAILED at 47`})
}

// TestACourseStepByStep: what a run has done and saved at any instant is what a walk through its steps and checkpoints finds.
func TestACourseStepByStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := steps(0, rapid.Int64Range(1, 30).Draw(t, "units"))
		j.Checkpoint = time.Duration(rapid.IntRange(0, 15).Draw(t, "checkpoint")) * time.Second
		r := stint{
			job: &j, begin: 7 * s, before: time.Duration(rapid.IntRange(0, 9).Draw(t, "before")) * time.Second,
			perUnit: time.Duration(rapid.IntRange(1, 12).Draw(t, "unit")) * time.Second, every: rapid.Int64Range(0, 5).Draw(t, "every"),
			from: rapid.Int64Range(0, j.Units-1).Draw(t, "from"), reach: j.Units, stop: quantity.Never,
		}
		at := rapid.IntRange(0, 500).Draw(t, "at")
		t0, done, saved := r.begin.Add(r.before), int64(0), int64(0)
		total := j.Units - r.from
		reaches := make([]quantity.Instant, total+1)
		reaches[0] = t0
		for n := int64(1); n <= total; n++ {
			t0 = t0.Add(r.perUnit)
			reaches[n] = t0
			if t0 <= quantity.Instant(at)*s {
				done = n
			}
			if r.every > 0 && n%r.every == 0 && n < total {
				if t0 = t0.Add(j.Checkpoint); t0 <= quantity.Instant(at)*s {
					saved = n
				}
			}
		}
		now := quantity.Instant(at) * s
		if got := r.complete(now); got != done {
			t.Fatalf("%d units are done; a walk says %d", got, done)
		}
		if got := r.durable(now, true); got != saved {
			t.Fatalf("%d units are saved; a walk says %d", got, saved)
		}
		for n := range reaches {
			if got := r.reaches(int64(n)); got != reaches[n] {
				t.Fatalf("unit %d is done at %d; a walk says %d", n, got, reaches[n])
			}
		}
	})
}

// drawn is a small world: a host over up to three slices, which says what it plans at least a notice ahead, and some jobs.
func drawn(t *rapid.T) (notice int, host hostwork.Log, jobs []workload.Job) {
	notice = rapid.SampledFrom([]int{0, 2, 30}).Draw(t, "notice")
	host = make(hostwork.Log, rapid.IntRange(1, 3).Draw(t, "slices"))
	for i := range host {
		at := rapid.IntRange(notice, 50).Draw(t, "first")
		for range rapid.IntRange(0, 5).Draw(t, "stays") {
			y := stay(quantity.Instant(at), quantity.Instant(at+rapid.IntRange(1, 60).Draw(t, "stay")),
				quantity.Instant(rapid.IntRange(0, at-notice).Draw(t, "said")))
			host[i] = append(host[i], y)
			at = int(y.To/s) + rapid.IntRange(0, 200).Draw(t, "gap")
			at = max(at, notice)
		}
	}
	for i := range rapid.IntRange(1, 6).Draw(t, "jobs") {
		jobs = append(jobs, steps(int64(i), rapid.Int64Range(1, 20).Draw(t, "units")))
	}
	return notice, host, jobs
}

// TestHostsAreNeverLate: under every discipline and any host, runs stay out of the host's time, no work counts twice, a job that is
// finished was done once, and a discipline that heeds a long notice loses less than a step for each run.
func TestHostsAreNeverLate(t *testing.T) {
	names := []string{"requeue", "checkpoint", "checkpoint:30s", "time-min", "deadline", "sjf", "pilot:20s", "workers:10s"}
	rapid.Check(t, func(t *rapid.T) {
		notice, host, jobs := drawn(t)
		name := rapid.SampledFrom(names).Draw(t, "discipline")
		d := fill(t, named(t, name), time.Duration(notice)*time.Second, 1500*s, host, jobs...)
		worked := map[int64]time.Duration{}
		for _, p := range d.pieces {
			n := d.names[p.Slot]
			worked[n] += p.Work
			for _, y := range host[p.First] {
				if p.Start < y.To && y.From < p.End {
					t.Fatalf("%s: a run over [%d, %d) and the host from %d", name, p.Start/s, p.End/s, y.From/s)
				}
			}
			if lost := p.End.Sub(p.Start) - p.Useful - p.Overhead; lost < 0 || notice == 30 && strings.HasPrefix(name, "checkpoint") &&
				lost > 10*time.Second {
				t.Fatalf("%s: %v are lost of %+v", name, lost, p)
			}
		}
		for _, j := range jobs {
			finished := slices.ContainsFunc(d.lines,
				func(l string) bool { return strings.HasPrefix(l, fmt.Sprintf("%d: COMPLETED", j.Number)) })
			if w := worked[j.Number]; w > j.Work || finished != (w == j.Work) {
				t.Fatalf("%s: job %d has %v of %v done, finished: %t", name, j.Number, w, j.Work, finished)
			}
		}
	})
}

// TestNames: an interval belongs to those that have one.
func TestNames(t *testing.T) {
	if d := named(t, "checkpoint:90s"); d.Every != 90*time.Second || d.Name != "checkpoint:90s" || !d.Notices {
		t.Errorf("%+v", d)
	}
	for _, bad := range []string{"requeue:10m", "checkpoint:", "pilot:0s", "pilot:soon"} {
		if _, known, err := Named(bad); !known || err == nil {
			t.Errorf("%s: %v %v; want an error", bad, known, err)
		}
	}
	if _, known, _ := Named("easy"); known {
		t.Error("easy fills no gaps")
	}
}
