package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
)

// ask is a job of which the log does not say where it ran; nor, where start is -1, when it began.
type ask struct{ submit, start, runs, gpus int }

func asks(o Options, fill func(*Book), jobs ...ask) (*History, error) {
	b := NewBook(o)
	b.Whole(b.File("log"))
	if fill != nil {
		fill(b)
	}
	for i, j := range jobs {
		load := b.Load([]Part{{b.Kind([]byte("gpu")), int32(j.gpus), 1000}})
		r := Row{Raw: uint64(i), Elapsed: time.Duration(j.runs) * time.Second, Run: Run{ID: fmt.Sprint(i), Submit: at(j.submit),
			Eligible: never, Start: at(j.start), End: never, State: Completed, Load: load}}
		if j.start < 0 {
			r.NoStart = true
		} else {
			r.End = at(j.start + j.runs)
		}
		b.Add(&r)
	}
	return b.Close()
}

// TestWorkIsPlaced: no device holds two jobs, what has a start begins then, and what has none begins where a walk over all seconds lets it:
// in its turn, as soon as there is room.
func TestWorkIsPlaced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gpus := rapid.IntRange(1, 4).Draw(t, "gpus")
		known := rapid.SampledFrom([]int{0, 1, 2}).Draw(t, "known") // of two
		var jobs []ask
		for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
			j := ask{submit: rapid.IntRange(0, 50).Draw(t, "submit"), start: -1, runs: rapid.IntRange(1, 30).Draw(t, "runs"),
				gpus: rapid.IntRange(1, gpus).Draw(t, "holds")}
			if i%2 < known {
				j.start = j.submit + rapid.IntRange(0, 20).Draw(t, "waits")
			}
			jobs = append(jobs, j)
		}
		there := gpus
		if known == 2 {
			there = 0
		}
		h, err := asks(Options{GPUs: there}, nil, jobs...)
		if err != nil {
			t.Skip(err) // it covers no time
		}
		var held time.Duration
		for d, holds := range h.Held {
			for i, x := range holds {
				held += x.To.Sub(x.From)
				if i > 0 && x.From < holds[i-1].To {
					t.Fatalf("device %d is held twice from %v", d, x.From)
				}
			}
		}
		if !h.Anywhere || known < 2 && len(h.Devices) != gpus {
			t.Fatalf("%d devices, want %d", len(h.Devices), gpus)
		}
		var want time.Duration
		starts := walk(jobs, gpus)
		if known == 2 {
			starts = nil
		}
		first := never
		for i := range h.Runs {
			r := &h.Runs[i]
			var n int
			if _, err := fmt.Sscan(r.ID, &n); err != nil {
				t.Fatal(err)
			}
			j := jobs[n]
			want += time.Duration(j.gpus*j.runs) * time.Second
			first = min(first, r.Submit)
			if j.start >= 0 && r.Start != at(j.start) || j.start < 0 && r.Start != at(starts[n]) ||
				r.End != r.Start.Add(time.Duration(j.runs)*time.Second) {
				t.Fatalf("%+v began at %d; a walk: %v", j, (r.Start-begin)/second, starts)
			}
		}
		if h.From != first || known != 1 && held != want {
			t.Fatalf("from %v, %v are held; the jobs came from %v on and hold %v", h.From, held, first, want)
		}
	})
}

// walk finds starts second by second: of those that wait the first that came goes first, of these the smallest, the shortest, the first.
func walk(jobs []ask, gpus int) []int {
	starts := make([]int, len(jobs))
	var queue []int
	for i, j := range jobs {
		if starts[i] = j.start; j.start < 0 {
			queue = append(queue, i)
		}
	}
	slices.SortStableFunc(queue, func(a, b int) int {
		x, y := jobs[a], jobs[b]
		return slices.Compare([]int{x.submit, x.gpus, x.runs}, []int{y.submit, y.gpus, y.runs})
	})
	// What finds too few holds those that are free, so that who holds how much is followed, not computed.
	type holder struct{ until, gpus int }
	var holders []holder
	for now := 0; now < 2000; now++ {
		holders = slices.DeleteFunc(holders, func(h holder) bool { return h.until <= now })
		free := gpus
		for _, h := range holders {
			free -= h.gpus
		}
		var begin []int
		for i, j := range jobs {
			if j.start == now {
				begin = append(begin, i)
			}
		}
		slices.SortStableFunc(begin, func(a, b int) int {
			x, y := jobs[a], jobs[b]
			return slices.Compare([]int{x.submit, x.gpus, x.runs}, []int{y.submit, y.gpus, y.runs})
		})
		for _, i := range begin {
			n := min(free, jobs[i].gpus)
			free -= n
			holders = append(holders, holder{now + jobs[i].runs, n})
		}
		for len(queue) > 0 && jobs[queue[0]].submit <= now && jobs[queue[0]].gpus <= free {
			i := queue[0]
			queue, starts[i] = queue[1:], now
			free -= jobs[i].gpus
			holders = append(holders, holder{now + jobs[i].runs, jobs[i].gpus})
		}
	}
	return starts
}

// TestHowManyThereAre: what says it, in which order, and what is said where it can't be.
func TestHowManyThereAre(t *testing.T) {
	nodes := func(counts ...int) func(b *Book) {
		return func(b *Book) {
			for i, n := range counts {
				b.Tell(NodeRow{Name: fmt.Sprintf("n%d", i), Devices: []Part{{b.Kind([]byte("gpu")), int32(n), 1000}}})
			}
		}
	}
	head := func(b *Book) { b.Machine(3) }
	waits := []ask{{submit: 0, start: -1, runs: 60, gpus: 2}, {submit: 10, start: -1, runs: 60, gpus: 2}}
	starts := []ask{{submit: 0, start: 5, runs: 60, gpus: 2}, {submit: 10, start: 20, runs: 60, gpus: 1}}
	for name, c := range map[string]struct {
		gpus     int
		fill     func(*Book)
		jobs     []ask
		devices  int
		says     string
		problems string
	}{
		"asked for":                      {gpus: 5, fill: head, jobs: waits, devices: 5, says: "of 5 devices, as --gpus says"},
		"asked for, with starts":         {gpus: 5, jobs: starts, devices: 5, says: "of 5 devices, as --gpus says"},
		"in the head":                    {fill: head, jobs: waits, devices: 3, says: "of 3 devices, as the log's head says"},
		"described":                      {fill: nodes(1, 3), jobs: waits, devices: 4, says: "of those of the nodes that are described"},
		"held":                           {jobs: starts, devices: 3, says: "of as many as were held at once"},
		"held, of some that have starts": {jobs: append(starts, waits[1]), devices: 5, says: "taken as started when they were submitted"},
		"not said":                       {jobs: waits, problems: "--gpus N"},
		"too few asked for":              {gpus: 1, jobs: starts, problems: "holds 2 GPUs, and there are 1, as --gpus says: give --gpus N"},
		"too few in the head": {fill: func(b *Book) { b.Machine(1) }, jobs: starts,
			problems: "holds 2 GPUs, and there are 1, as the log's head says: give --gpus N"},
		"too few described": {fill: nodes(1), jobs: waits,
			problems: "job 0 holds 2 GPUs, and the nodes that are described have no room"},
		"asked for and described": {gpus: 5, fill: nodes(1, 3), jobs: waits, problems: "leave out either"},
	} {
		h, err := asks(Options{GPUs: c.gpus}, c.fill, c.jobs...)
		if c.problems != "" {
			if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.problems) {
				t.Errorf("%s: %v, want %q", name, err, c.problems)
			}
			continue
		}
		if err != nil || len(h.Devices) != c.devices || !strings.Contains(strings.Join(h.Assumptions, "\n"), c.says) {
			t.Errorf("%s: %v, %+v; want %d devices, %q", name, err, h, c.devices, c.says)
		}
	}
	b := NewBook(Options{GPUs: 3})
	b.File("log")
	job{id: 1, start: 0, end: 10, gpus: 1, kind: "gpu", nodes: "n1"}.add(b, At{})
	job{id: 2, start: 5, end: 20, gpus: 1, kind: "gpu", nodes: "n1"}.add(b, At{})
	if _, err := b.Close(); err == nil || !strings.Contains(err.Error(), "3 GPUs were given with --gpus, and the log says on which nodes") {
		t.Error(err)
	}
}
