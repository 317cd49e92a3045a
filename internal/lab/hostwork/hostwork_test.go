package hostwork_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/cluster"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/workload"
)

const s = quantity.Instant(time.Second)

// listed gives jobs that are written out.
type listed struct{ jobs []workload.Job }

func (l *listed) Next(j *workload.Job) (bool, error) {
	if len(l.jobs) == 0 {
		return false, nil
	}
	*j, l.jobs = l.jobs[0], l.jobs[1:]
	return true, nil
}

// work is a job of the host: when it comes, on how many slices, how long it truly runs and may run, in seconds.
func work(at, n, takes, walltime int) workload.Job {
	return workload.Job{
		Submit: quantity.Instant(at) * s, Slices: n, Kind: job.Rigid,
		Work: time.Duration(takes) * time.Second, Declared: time.Duration(walltime) * time.Second,
	}
}

// fataler is a test or one of its random cases.
type fataler interface {
	Helper()
	Fatal(...any)
}

// place plays jobs on so many slices under EASY.
func place(t fataler, n int, notice time.Duration, until quantity.Instant, jobs ...workload.Job) hostwork.Log {
	t.Helper()
	machines := planner.Cluster{Classes: []planner.Class{{Name: "gpu", Weight: 1000}},
		Nodes: []planner.Node{{Name: "n", Devices: make([]uint8, n)}}}
	p, err := easy.Kind().New(planner.Options{Cluster: machines})
	if err != nil {
		t.Fatal(err)
	}
	site := hostwork.Site{Actor: cluster.New(machines, p), Machines: machines, Notice: notice, Until: until}
	for i := range n {
		site.Slices = append(site.Slices, i)
	}
	site.Task = func(j *workload.Job, t *cluster.Task) error {
		t.Devices, t.Share, t.Spread, t.Classes, t.Fixed = int32(j.Slices), planner.Whole, j.Slices > 1, 1, true
		t.Run[0] = j.Declared
		if j.Declared == 0 {
			t.Run = nil
		}
		return nil
	}
	log := make(hostwork.Log, n)
	if err := log.Place(context.Background(), site, &listed{jobs}); err != nil {
		t.Fatal(err)
	}
	return log
}

// TestAWalltimeForetells: work that waits for a walltime is foretold and begins when that was said; work that nothing foretold waits
// for the notice.
func TestAWalltimeForetells(t *testing.T) {
	for _, c := range []struct {
		name            string
		takes, walltime int
		words           []hostwork.Word
		from            quantity.Instant
	}{
		// The first job begins at 10 s, a notice after it came, and both slices are planned to be free at 70 s.
		{"a true one", 60, 60, []hostwork.Word{{At: 20 * s, From: 70 * s, To: 100 * s}}, 70 * s},
		// It ends at 40 s: 30 s earlier than foretold, so that the other slice is given a notice.
		{"a long one", 30, 60, []hostwork.Word{{At: 20 * s, From: 70 * s, To: 100 * s}, {At: 40 * s, From: 50 * s, To: 80 * s}}, 50 * s},
		{"none", 30, 0, []hostwork.Word{{At: 40 * s, From: 50 * s, To: 80 * s}}, 50 * s},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := place(t, 2, 10*time.Second, 1000*s, work(0, 1, c.takes, c.walltime), work(20, 2, 30, 30))
			if first := log[0][0]; first.From != 10*s || first.To != 10*s+quantity.Instant(c.takes)*s {
				t.Errorf("the first job held the slice over [%d, %d) s", first.From/s, first.To/s)
			}
			for i, stays := range [][]hostwork.Stay{log[0][1:], log[1]} {
				if len(stays) != 1 || stays[0].From != c.from || stays[0].To != c.from+30*s || !slices.Equal(stays[0].Words, c.words) {
					t.Errorf("slice %d: %+v; want one from %d s after %+v", i, stays, c.from/s, c.words)
				}
			}
		})
	}
}

// TestACalendarIsJoined: hours that overlap are one stay, and every time of hours that repeat is one.
func TestACalendarIsJoined(t *testing.T) {
	got := hostwork.Calendar([]hostwork.Hours{
		{From: 8 * s, To: 20 * s, Every: 24 * time.Second}, {At: s, From: 18 * s, To: 22 * s},
	}, 50*s)
	want := [][2]quantity.Instant{{8 * s, 22 * s}, {32 * s, 44 * s}}
	if len(got) != len(want) {
		t.Fatalf("%d stays; want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].From != w[0] || got[i].To != w[1] || !got[i].Calendar {
			t.Errorf("stay %d is %+v; want [%d, %d)", i, got[i], w[0]/s, w[1]/s)
		}
	}
}

// TestHostsOfAllKinds: whatever a host is given, no two stays meet on a slice, what it says comes a notice ahead at least and is
// kept, and the gaps are what a look at every second finds.
func TestHostsOfAllKinds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, notice := rapid.IntRange(1, 3).Draw(t, "slices"), rapid.IntRange(0, 20).Draw(t, "notice")
		var jobs []workload.Job
		at := 0
		for range rapid.IntRange(0, 12).Draw(t, "jobs") {
			at += rapid.IntRange(0, 40).Draw(t, "gap")
			takes := rapid.IntRange(1, 60).Draw(t, "takes")
			walltime := takes + rapid.SampledFrom([]int{0, 0, 5, 60}).Draw(t, "more")
			if rapid.IntRange(0, 4).Draw(t, "says") == 0 {
				walltime = 0
			}
			jobs = append(jobs, work(at, rapid.IntRange(1, n).Draw(t, "on"), takes, walltime))
		}
		const until = 400
		log := place(t, n, time.Duration(notice)*time.Second, until*s, jobs...)
		held := 0
		for i, stays := range log {
			last := quantity.Instant(0)
			for _, y := range stays {
				if y.From < last || y.To <= y.From {
					t.Fatalf("slice %d: [%d, %d) after %d", i, y.From, y.To, last)
				}
				last, held = y.To, held+int(y.To.Sub(y.From)/time.Second)
				if len(y.Words) == 0 {
					t.Fatalf("slice %d: nothing was said of [%d, %d)", i, y.From/s, y.To/s)
				}
				for k, w := range y.Words {
					if w.From < w.At.Add(time.Duration(notice)*time.Second) || w.To < w.From || k > 0 && w.At < y.Words[k-1].At {
						t.Fatalf("slice %d: the words %+v, with a notice of %d s", i, y.Words, notice)
					}
				}
				if w := y.Words[len(y.Words)-1]; w.From > y.From || w.At > y.From.Add(-time.Duration(notice)*time.Second) || w.To < y.To &&
					w.From == y.From {
					t.Fatalf("slice %d: held over [%d, %d) after %+v", i, y.From/s, y.To/s, y.Words)
				}
			}
		}
		total := 0
		for _, j := range jobs {
			total += j.Slices * int(j.Work/time.Second)
		}
		if held > total {
			t.Fatalf("held for %d slice-seconds, and the work is %d", held, total)
		}
		from, to := rapid.IntRange(0, 100).Draw(t, "from"), rapid.IntRange(150, until).Draw(t, "to")
		cost := rapid.IntRange(0, 30).Draw(t, "cost")
		wantGaps, wantUsable := plain(log, from, to, cost)
		gaps, usable := log.Gaps(quantity.Instant(from)*s, quantity.Instant(to)*s), 0
		for _, g := range gaps {
			usable += int(g.Usable(time.Duration(cost)*time.Second) / time.Second)
		}
		if len(gaps) != wantGaps || usable != wantUsable {
			t.Fatalf("%d gaps of use for %d s; every second says %d and %d: %+v", len(gaps), usable, wantGaps, wantUsable, gaps)
		}
	})
}

// plain looks at every second.
func plain(log hostwork.Log, from, to, cost int) (gaps, usable int) {
	for _, stays := range log {
		length := 0
		for sec := from; sec <= to; sec++ {
			free := sec < to && !slices.ContainsFunc(stays, func(y hostwork.Stay) bool {
				return y.From <= quantity.Instant(sec)*s &&
					quantity.Instant(sec)*s < y.To
			})
			switch {
			case free:
				length++
			case length > 0:
				gaps, usable, length = gaps+1, usable+max(0, length-cost), 0
			}
		}
	}
	return gaps, usable
}
