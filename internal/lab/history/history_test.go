package history

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	never  = quantity.Never
	second = quantity.Instant(time.Second)
	// begin is an instant as logs have them.
	begin = quantity.Instant(1_700_000_000) * second
)

// job is a row in seconds since begin: gpus of a kind on nodes with a comma between them; start or end -1 for one that is not known.
type job struct {
	id                 int
	submit, start, end int
	gpus               int
	kind, nodes        string
	state              State
	limit              int
	user               string
	index              uint64
}

func at(n int) quantity.Instant {
	if n < 0 {
		return never
	}
	return begin + quantity.Instant(n)*second
}

func (j job) add(b *Book, place At) {
	r := Row{Raw: uint64(j.id), Index: j.index, Elapsed: Unknown, At: place, Run: Run{
		ID: b.ID(fmt.Append(nil, j.id)), Submit: at(j.submit), Eligible: at(j.submit), Start: at(j.start), End: at(j.end),
		Limit: time.Duration(j.limit) * time.Second, User: b.Name([]byte(j.user)), State: j.state,
	}}
	if j.gpus > 0 {
		r.Load = b.Load([]Part{{b.Kind([]byte(j.kind)), int32(j.gpus), 1000}})
	}
	if j.nodes != "" {
		var nodes []int32
		for name := range strings.SplitSeq(j.nodes, ",") {
			nodes = append(nodes, b.Node([]byte(name)))
		}
		r.Place = b.Place(nodes)
	}
	b.Add(&r)
}

func closed(t fataler, o Options, fill func(b *Book), jobs ...job) *History {
	t.Helper()
	b := NewBook(o)
	file := b.File("log")
	if fill != nil {
		fill(b)
	}
	for i, j := range jobs {
		j.add(b, At{file, uint32(i + 1)})
	}
	h, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

type fataler interface {
	Helper()
	Fatal(...any)
}

// picture shows every device with what holds it, in seconds since begin.
func picture(h *History) string {
	var out strings.Builder
	for i, holds := range h.Held {
		d := h.Devices[i]
		fmt.Fprintf(&out, "%s %s:", h.Nodes[d.Node].Name, h.Kinds[d.Kind].Name)
		for _, x := range holds {
			fmt.Fprintf(&out, " %s@%d-%d", h.Runs[x.Run].ID, (x.From-begin)/second, (x.To-begin)/second)
		}
		out.WriteString("\n")
	}
	return out.String()
}

func trimmed(s string) string {
	var out strings.Builder
	for l := range strings.Lines(s) {
		if l = strings.TrimSpace(l); l != "" {
			out.WriteString(l + "\n")
		}
	}
	return out.String()
}

// TestToldAgain: what several rows say of one node counts once against what a history may have, and what several nodes have in all.
func TestToldAgain(t *testing.T) {
	one := job{id: 1, start: 0, end: 10, gpus: 1, kind: "gpu", nodes: "n1"}
	tell := func(names ...string) func(*Book) {
		return func(b *Book) {
			for _, name := range names {
				b.Tell(NodeRow{Name: name, Devices: []Part{{b.Kind([]byte("gpu")), 1 << 20, 1000}}})
			}
		}
	}
	if h := closed(t, Options{}, tell("n1", "n1", "n1", "n1", "n1"), one); len(h.Devices) != 1<<20 {
		t.Error(len(h.Devices), "devices")
	}
	b := NewBook(Options{})
	one.add(b, At{b.File("log"), 1})
	tell("n1", "n2", "n3", "n4", "n5")(b)
	if _, err := b.Close(); err == nil || !strings.Contains(err.Error(), "the log has 5242880 devices") {
		t.Error(err)
	}
}

func odd(h *History, name string) (Oddity, bool) {
	i := slices.IndexFunc(h.Oddities, func(o Oddity) bool { return o.Name == name })
	if i < 0 {
		return Oddity{}, false
	}
	return h.Oddities[i], true
}

// TestPlaces: where runs are put, by hand.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(*Book)
		jobs []job
		want string
		// odd are oddities by name with their counts, besides those there are no others.
		odd map[string]int64
	}{
		"on the nodes that are named, on the first device that is free": {
			jobs: []job{
				{id: 1, start: 0, end: 10, gpus: 1, kind: "a100", nodes: "n1"}, {id: 2, start: 5, end: 20, gpus: 1, kind: "a100",
					nodes: "n1"},
				{id: 3, start: 10, end: 30, gpus: 1, kind: "a100", nodes: "n1"}, {id: 4, start: 30, end: 40, gpus: 2, kind: "a100",
					nodes: "n1,n2"},
			},
			want: `
				n1 a100: 1@0-10 3@10-30 4@30-40
				n1 a100: 2@5-20
				n2 a100: 4@30-40`,
		},
		"as told, in two kinds, an untyped run on what is never named": {
			fill: func(b *Book) {
				b.Tell(NodeRow{Name: "n1", Devices: []Part{{b.Kind([]byte("1g.10gb")), 2, 1000}, {b.Kind([]byte("a100")), 1, 1000}}})
				b.Tell(NodeRow{Name: "n2", Devices: []Part{}})
			},
			jobs: []job{
				{id: 1, start: 0, end: 10, gpus: 1, kind: "gpu", nodes: "n1"}, {id: 2, start: 0, end: 10, gpus: 1, kind: "1g.10gb",
					nodes: "n1"},
				{id: 3, start: 5, end: 20, gpus: 1, kind: "gpu", nodes: "n1"}, {id: 4, start: 6, end: 20, gpus: 1, kind: "gpu",
					nodes: "n1"},
			},
			want: `
				n1 1g.10gb: 2@0-10
				n1 1g.10gb: 3@5-20
				n1 a100: 1@0-10`,
			odd: map[string]int64{crowded: 1},
		},
		"anywhere": {
			jobs: []job{
				{id: 1, start: 0, end: 10, gpus: 2, kind: "gpu"}, {id: 2, start: 5, end: 20, gpus: 1, kind: "gpu"},
				{id: 3, start: 12, end: 15, gpus: 1, kind: "gpu"},
			},
			want: `
				anywhere gpu: 1@0-10 3@12-15
				anywhere gpu: 1@0-10
				anywhere gpu: 2@5-20`,
		},
		"unevenly": {
			jobs: []job{{id: 1, start: 0, end: 10, gpus: 3, kind: "gpu", nodes: "n1,n2"}, {id: 2, start: 20, end: 30, gpus: 1,
				kind: "gpu", nodes: "n2"}},
			want: `
				n1 gpu: 1@0-10
				n1 gpu: 1@0-10
				n2 gpu: 1@0-10 2@20-30`,
			odd: map[string]int64{uneven: 1},
		},
		"a lost run ends where its id is given again, and one past its walltime there": {
			jobs: []job{
				{id: 67, submit: 3, start: 4, end: -1, gpus: 1, kind: "gpu", nodes: "n1", state: Running, index: 122},
				{id: 67, submit: 6, start: 11, end: 14, gpus: 1, kind: "gpu", nodes: "n1", state: Completed, index: 127},
				{id: 68, submit: 20, start: 20, end: -1, gpus: 1, kind: "gpu", nodes: "n1", state: Running, limit: 60},
				{id: 69, submit: 5000, start: 5000, end: -1, gpus: 1, kind: "gpu", nodes: "n1", state: Running, limit: 60},
				{id: 70, submit: 5001, start: 5010, end: 5020, gpus: 1, kind: "gpu", nodes: "n2", state: Completed},
			},
			want: `
				n1 gpu: 67@4-6 67@11-14 68@20-80 69@5000-5010
				n2 gpu: 70@5010-5020`,
			odd: map[string]int64{reused: 1, overdue: 1},
		},
		"a doubtful end yields": {
			jobs: []job{
				{id: 1, start: 0, end: 10, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 2, start: 20, end: 100, gpus: 1, kind: "gpu", nodes: "n1", state: Requeued},
				{id: 3, start: 30, end: 40, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 4, start: 50, end: -1, gpus: 1, kind: "gpu", nodes: "n1", state: Running},
				{id: 5, start: 70, end: 80, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 6, start: 90, end: -1, gpus: 1, kind: "gpu", nodes: "n2", state: Running},
				{id: 7, start: 120, end: 130, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
			},
			want: `
				n1 gpu: 1@0-10 2@20-30 3@30-40 4@50-70 5@70-80 7@120-130
				n2 gpu: 6@90-120`,
			odd: map[string]int64{doubtful: 1, unending: 2, yielded: 2},
		},
		"of doubtful ends the first run yields": {
			jobs: []job{
				{id: 1, start: 0, end: 10, gpus: 2, kind: "gpu", nodes: "n1", state: Completed},
				{id: 2, start: 20, end: 100, gpus: 1, kind: "gpu", nodes: "n1", state: Requeued},
				{id: 3, start: 25, end: 100, gpus: 1, kind: "gpu", nodes: "n1", state: Requeued},
				{id: 4, start: 50, end: 60, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 5, start: 120, end: 130, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
			},
			want: `
				n1 gpu: 1@0-10 2@20-50 4@50-60 5@120-130
				n1 gpu: 1@0-10 3@25-100`,
			odd: map[string]int64{doubtful: 2, yielded: 1},
		},
		"the end of a script is no requeue's": {
			fill: func(b *Book) {
				b.Batch(BatchRow{Raw: 1, Start: at(0), End: at(3)})
				b.Batch(BatchRow{Raw: 2, Start: at(0), End: at(7)})
				b.Batch(BatchRow{Raw: 1, Start: at(50), End: at(60)})
				b.Batch(BatchRow{Raw: 3, Start: at(9), End: at(12)})
			},
			jobs: []job{
				{id: 1, start: 0, end: 40, gpus: 1, kind: "gpu", nodes: "n1", state: Requeued},
				{id: 1, submit: 40, start: 50, end: 60, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 2, start: 0, end: 7, gpus: 1, kind: "gpu", nodes: "n2", state: Requeued},
				{id: 3, start: 9, end: -1, gpus: 1, kind: "gpu", nodes: "n2", state: Completed},
				{id: 4, start: 9, end: -1, gpus: 1, kind: "gpu", nodes: "n3", state: Completed},
			},
			want: `
				n1 gpu: 1@0-3 1@50-60
				n2 gpu: 2@0-7 3@9-12`,
			odd: map[string]int64{moved: 1, ended: 2},
		},
		"rows of one run": {
			jobs: []job{
				{id: 1, submit: 1, start: 2, end: -1, gpus: 1, kind: "gpu", nodes: "n1", state: Running},
				{id: 1, submit: 1, start: 2, end: 9, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 1, submit: 1, start: 2, end: 9, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 2, submit: 1, start: 10, end: 20, gpus: 1, kind: "gpu", nodes: "n1", state: Completed, index: 7},
				{id: 2, submit: 1, start: 20, end: 30, gpus: 1, kind: "gpu", nodes: "n1", state: Completed, index: 7},
				{id: 3, submit: 1, start: 40, end: 41, gpus: 1, kind: "gpu", nodes: "n1", state: Completed, index: 8},
				{id: 3, submit: 1, start: 40, end: 90, gpus: 1, kind: "gpu", nodes: "n1", state: NodeFailed, index: 8},
				{id: 4, submit: 1, start: 50, end: 60, gpus: 1, kind: "gpu", nodes: "n1", state: Completed, user: "u"},
				{id: 4, submit: 1, start: 60, end: 65, gpus: 1, kind: "gpu", nodes: "n1", state: Completed, user: "v"},
			},
			want: "n1 gpu: 1@2-9 2@10-30 3@40-41 4@50-60 4@60-65",
			odd:  map[string]int64{repeated: 1, continued: 1, cut: 1, differing: 1},
		},
		"what can't be": {
			jobs: []job{
				{id: 1, submit: 5, start: 2, end: 9, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 2, submit: 5, start: 9, end: 8, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 3, submit: 5, start: 9, end: 9, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 4, submit: 5, start: 90000, end: 90001, gpus: 1, kind: "gpu", nodes: "n1", state: Completed},
				{id: 5, submit: 6, start: -1, end: -1, gpus: 1, kind: "gpu", state: Pending},
				{id: 6, submit: 6, start: 8, end: 9, nodes: "n1", state: Completed},
			},
			want: "n1 gpu: 1@2-9 4@90000-90001",
			odd:  map[string]int64{early: 1, backwards: 1, "a run without a device": 1, "a day or more in which nothing ran": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := closed(t, Options{}, c.fill, c.jobs...)
			if got := picture(h); got != trimmed(c.want) {
				t.Errorf("got\n%swant\n%s", got, trimmed(c.want))
			}
			got := map[string]int64{}
			for _, o := range h.Oddities {
				got[o.Name] = o.Count
				if o.Done == "" || o.Count > 0 && len(o.Places) == 0 && o.Name != "a run without a device" {
					t.Errorf("%+v", o)
				}
			}
			if c.odd == nil {
				c.odd = map[string]int64{}
			}
			if !reflect.DeepEqual(got, c.odd) {
				t.Errorf("oddities %v, want %v", got, c.odd)
			}
		})
	}
}

// TestTheStretch: a log of a window is whole from the first end to the last start.
func TestTheStretch(t *testing.T) {
	jobs := []job{
		{id: 1, submit: 0, start: 0, end: 50, gpus: 1, kind: "gpu", nodes: "n1"},
		{id: 2, submit: 10, start: 20, end: 30, gpus: 1, kind: "gpu", nodes: "n1"},
		{id: 3, submit: 40, start: 60, end: 90, gpus: 1, kind: "gpu", nodes: "n1"},
		{id: 4, submit: 55, start: -1, end: -1, gpus: 1, kind: "gpu", state: Pending},
	}
	h := closed(t, Options{}, nil, jobs...)
	if h.From != at(30) || h.To != at(60) {
		t.Errorf("from %d to %d", (h.From-begin)/second, (h.To-begin)/second)
	}
	if h = closed(t, Options{}, nil, jobs[0]); h.From != at(0) || h.To != at(50) {
		t.Errorf("one run: from %d to %d", (h.From-begin)/second, (h.To-begin)/second)
	}
}

// TestNoHistory: what leaves none is said, all of it.
func TestNoHistory(t *testing.T) {
	_, err := NewBook(Options{}).Close()
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "no job was read") {
		t.Error(err)
	}
	b := NewBook(Options{})
	at := At{File: b.File("dir/jobs.csv")}
	for at.Line = range 445 {
		b.Odd("a row with more fields than the header", "left out", at)
	}
	if _, err = b.Close(); err == nil || err.Error() != "no job was read: give the accounting of a cluster\n"+
		"  a row with more fields than the header (445 times): left out" {
		t.Error(err)
	}
	b = NewBook(Options{})
	job{id: 1, start: 1, end: 2}.add(b, At{})
	b.Odd("a value that its column cut off (+)", "dump with -P", At{File: b.File("jobs.txt"), Line: 7})
	if _, err = b.Close(); err == nil || !strings.Contains(err.Error(), "devices\n  a value that its column cut off (+) (1 times): "+
		"dump with -P") {
		t.Error(err)
	}
	b = NewBook(Options{})
	job{id: 1, start: 1, end: 2}.add(b, At{})
	b.Problem("%s is no log", "x")
	_, err = b.Close()
	if err == nil || !strings.Contains(err.Error(), "x is no log") || !strings.Contains(err.Error(), "none of the 1 runs") {
		t.Error(err)
	}
}

// TestTooMany: a log that could not be kept is refused before it is placed.
func TestTooMany(t *testing.T) {
	b := NewBook(Options{})
	b.File("log")
	for i := range mostHolds >> 20 {
		job{id: i + 1, start: i, end: i + 5, gpus: 1 << 20, kind: "gpu"}.add(b, At{})
	}
	job{id: 1 << 20, start: 1, end: 2, gpus: 1, kind: "gpu"}.add(b, At{})
	if _, err := b.Close(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "67108865 times in all") {
		t.Error(err)
	}
	b = NewBook(Options{})
	b.Tell(NodeRow{Name: "n", Devices: []Part{{b.Kind([]byte("gpu")), mostDevices + 1, 1000}}})
	job{id: 1, start: 1, end: 2, gpus: 1, kind: "gpu"}.add(b, At{})
	if _, err := b.Close(); errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), "4194305 devices") {
		t.Error(err)
	}
}

// TestIdle: gaps within the stretch, with and without the times in which a node is away.
func TestIdle(t *testing.T) {
	h := closed(t, Options{}, func(b *Book) {
		b.Absent(AwayRow{Nodes: []string{"n1", "gone"}, Away: Away{at(30), at(45), Down}})
		b.Absent(AwayRow{All: true, Away: Away{at(85), never, Reserved}})
	}, job{id: 1, start: 0, end: 20, gpus: 1, kind: "gpu", nodes: "n1"}, job{id: 2, start: 40, end: 60, gpus: 1, kind: "gpu", nodes: "n1"})
	h.From, h.To = at(10), at(100)
	for away, want := range map[bool]string{false: "20-40 60-100", true: "20-30 60-85"} {
		var got []string
		for g := range h.Idle(0, away) {
			got = append(got, fmt.Sprintf("%d-%d", (g.From-begin)/second, (g.To-begin)/second))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("away %v: %s, want %s", away, s, want)
		}
	}
	if o, _ := odd(h, "an absence of a node that nothing else names"); o.Count != 1 {
		t.Errorf("%+v", o)
	}
}

// drawn is a log by chance: few ids and instants, so that much coincides.
func drawn(t *rapid.T) []job {
	nodes := rapid.SampledFrom([]string{"n1", "n2", "n1,n2", "n1,n2,m1"})
	if rapid.Bool().Draw(t, "anywhere") {
		nodes = rapid.Just("")
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) job {
		j := job{
			id: rapid.IntRange(1, 6).Draw(t, "id"), submit: rapid.IntRange(0, 20).Draw(t, "submit"),
			start: rapid.IntRange(-1, 30).Draw(t, "start"), end: rapid.IntRange(-1, 60).Draw(t, "end"),
			gpus: rapid.IntRange(0, 5).Draw(t, "gpus"), kind: rapid.SampledFrom([]string{"gpu", "a100", "1g.10gb"}).Draw(t, "kind"),
			nodes: nodes.Draw(t, "nodes"), state: State(rapid.IntRange(0, int(Requeued)).Draw(t, "state")),
			limit: rapid.IntRange(0, 900).Draw(t, "limit"), user: rapid.SampledFrom([]string{"", "u", "v"}).Draw(t, "user"),
			index: rapid.Uint64Range(0, 2).Draw(t, "index"),
		}
		return j
	}), 1, 25).Draw(t, "jobs")
}

// TestTheOrderOfRowsIsNothing: the same history whatever the order of rows and of the files that they are in.
func TestTheOrderOfRowsIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs, told := drawn(t), rapid.Bool().Draw(t, "told")
		history := func() *History {
			b := NewBook(Options{})
			b.File("log")
			if told {
				b.Tell(NodeRow{Name: "n1", Partitions: []string{"p"}, Devices: []Part{{b.Kind([]byte("a100")), 2, 1000}}})
			}
			for _, j := range jobs {
				j.add(b, At{})
			}
			h, err := b.Close()
			if err != nil {
				return &History{Assumptions: []string{err.Error()}}
			}
			return h
		}
		want := history()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		rng.Shuffle(len(jobs), func(i, k int) { jobs[i], jobs[k] = jobs[k], jobs[i] })
		if got := history(); !reflect.DeepEqual(got, want) {
			t.Fatalf("got\n%s%+v\nwant\n%s%+v", picture(got), got, picture(want), want)
		}
	})
}

// TestHoldsAreWhatTheLogSays: holds of a device never overlap; of runs with sure ends all time is held, and a node has as many devices of
// a kind as a walk over all instants finds held at once.
func TestHoldsAreWhatTheLogSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawn(t)
		b := NewBook(Options{})
		for i, j := range jobs {
			j.id, j.index = i+1, 0
			j.start, j.state = max(0, j.start), Completed
			j.submit = min(j.submit, j.start)
			j.end = max(j.end, j.start)
			if n := strings.Count(j.nodes, ",") + 1; j.gpus%n != 0 {
				j.gpus = n
			}
			jobs[i] = j
			j.add(b, At{})
		}
		h, err := b.Close()
		if err != nil {
			return
		}
		held, most := map[int32]time.Duration{}, map[Device]int{}
		for i, holds := range h.Held {
			d := h.Devices[i]
			most[d]++
			if n := h.Nodes[d.Node]; int32(i) < n.First || int32(i) >= n.First+n.Count {
				t.Fatalf("device %d is not of its node %+v", i, n)
			}
			last := quantity.Instant(0)
			for _, x := range holds {
				if x.From < last || x.To <= x.From {
					t.Fatalf("hold %+v of device %d: the one before ends at %d", x, i, last)
				}
				held[x.Run] += x.To.Sub(x.From)
				last = x.To
			}
		}
		walked := map[Device]int{}
		for i := range h.Runs {
			r := &h.Runs[i]
			want := time.Duration(0)
			for _, p := range h.Loads[r.Load] {
				want += time.Duration(p.Count) * r.End.Sub(r.Start)
			}
			if held[int32(i)] != want {
				t.Fatalf("run %+v is held for %v, want %v\n%s", r, held[int32(i)], want, picture(h))
			}
			at := map[Device]int{} // at the start of each run
			for k := range h.Runs {
				q := &h.Runs[k]
				if q.Start > r.Start || q.End <= r.Start {
					continue
				}
				nodes := h.Places[q.Place]
				if len(nodes) == 0 {
					nodes = []int32{0}
				}
				for _, p := range h.Loads[q.Load] {
					for _, n := range nodes {
						at[Device{n, p.Kind}] += int(p.Count) / len(nodes)
					}
				}
			}
			for d, n := range at {
				walked[d] = max(walked[d], n)
			}
		}
		for d, n := range walked {
			if n != most[d] {
				t.Fatalf("%d devices %+v, a walk finds %d\n%s", most[d], d, n, picture(h))
			}
			delete(most, d)
		}
		if len(most) > 0 {
			t.Fatalf("devices that nobody ever held: %v", most)
		}
	})
}
