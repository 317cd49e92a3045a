package cli

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// crowd is a fake with more than a screen holds.
func crowd() *apitest.Fake {
	f := apitest.New()
	for i := range 30 {
		s := f.SliceList[0]
		s.Slice.ID, s.State, s.Job, s.Until, s.Reservations = job.SliceID(fmt.Sprintf("node-1/%d/1g.10gb@%d", i/7, i%7)), "idle", "", 0, nil
		if i == 3 {
			s.State, s.Reason = "quarantined", "process 4711 (\x1b[31mevil\x1b[0m) remains"
		}
		f.SliceList = append(f.SliceList, s)
		w := f.WindowList[0]
		w.Slice, w.State = s.Slice.ID, "unanswered"
		f.WindowList = append(f.WindowList, w)
		f.Set(status.Job{
			Name: job.ID(fmt.Sprintf("waits-%d", i)), Queue: "default", Kind: job.Items, Total: 1000, Unit: "item", Submitted: apitest.At(-time.Minute),
			Reason: "no window is long enough: needs 5m15s of a slice with 40Gi, and the next such is reserved for another job until this evening",
		})
	}
	return f
}

// pictured is a frame as text; lines that stand out are marked by their style.
func pictured(rows []terminal.Row) string {
	marks := map[terminal.Style]string{terminal.Plain: " ", terminal.Title: "=", terminal.Heading: "*", terminal.Faint: ".", terminal.Good: "+", terminal.Notable: "~", terminal.Bad: "!"}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%s|%s\n", marks[r.Style], strings.TrimRight(terminal.Line(r.Text), " "))
	}
	return b.String()
}

// topOf is a view of what a fake says, after two looks a second apart.
func topOf(t *testing.T, fake *apitest.Fake) *top {
	t.Helper()
	now := apitest.Now()
	a := newApp(Deps{Now: func() time.Time { return now }})
	a.server, a.Format = daemon(t, fake), "table"
	c, err := a.client()
	if err != nil {
		t.Fatal(err)
	}
	v := &top{a: a, c: c, rates: map[string][]point{}}
	look := func() {
		apply, err := v.fetch(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		apply()
	}
	look()
	now = now.Add(2 * time.Second)
	j, err := fake.Job(t.Context(), "count-words")
	if err != nil {
		t.Fatal(err)
	}
	j.Reported += 50
	fake.Set(j)
	look()
	return v
}

// TestTop shows the picture on small and large terminals, of few things and of many.
func TestTop(t *testing.T) {
	var all strings.Builder
	few, many := topOf(t, apitest.New()), topOf(t, crowd())
	for _, c := range []struct {
		v             *top
		columns, rows int
		notice        string
	}{{few, 80, 24, ""}, {few, 200, 50, "the daemon is away: what stands here is old"}, {many, 80, 24, ""}, {many, 200, 50, ""}, {many, 40, 10, ""}, {many, 10, 3, ""}} {
		rows := c.v.frame(c.columns, c.rows, c.notice)
		fmt.Fprintf(&all, "%d x %d\n%s\n", c.columns, c.rows, pictured(rows))
		if len(rows) > max(c.rows, 6) {
			t.Errorf("%d rows on a terminal of %d", len(rows), c.rows)
		}
	}
	for range 3 {
		many.key(terminal.KeyDown)
	}
	fmt.Fprintf(&all, "80 x 24, three down\n%s\n", pictured(many.frame(80, 24, "")))
	golden(t, "testdata/top.golden", all.String())
	for range 9 {
		many.key(terminal.KeyPageDown)
	}
	many.frame(80, 24, "")
	for range 9 {
		many.key(terminal.KeyPageUp)
	}
	if many.first != 0 {
		t.Errorf("up again at %d", many.first)
	}
}

// TestTopWithoutATerminal prints one picture, or what there is for programs.
func TestTopWithoutATerminal(t *testing.T) {
	addr := daemon(t, apitest.New())
	r := sluice(t, addr, "", "top")
	if r.code != 0 || strings.Contains(r.out, "\x1b") || !strings.Contains(r.out, "count-words") || !strings.Contains(r.out, "1 of 1 busy") {
		t.Errorf("%+v", r)
	}
	r = sluice(t, addr, "", "top", "-o", "json")
	if r.code != 0 || !strings.Contains(r.out, `"windows": [`) || !strings.Contains(r.out, `"slices": [`) {
		t.Errorf("%+v", r)
	}
	if r = sluice(t, addr, "", "top", "--every", "1ms"); r.code != command.ExitUsage {
		t.Errorf("%+v", r)
	}
}

// TestHeights: no terminal is passed, jobs come first, and nothing is left empty that somebody wants.
func TestHeights(t *testing.T) {
	for room := range 60 {
		for _, items := range [][3]int{{0, 0, 0}, {1, 1, 1}, {100, 100, 100}, {3, 50, 0}, {50, 1, 50}, {0, 0, 40}} {
			h := heights(items, room)
			used, want := 0, 0
			for i := range h {
				if h[i] > items[i] || h[i] < 0 {
					t.Fatalf("%v in %d: %v", items, room, h)
				}
				if h[i] > 0 {
					used += h[i] + 2
				}
				if items[i] > 0 {
					want += items[i] + 2
				}
			}
			if used > room || room >= 9 && used < min(want, room) || h[1] == 0 && items[1] > 0 && room > 2 {
				t.Errorf("%v in %d: %v uses %d", items, room, h, used)
			}
		}
	}
}

// TestStandingOf is the line of wait, for one job and for several.
func TestStandingOf(t *testing.T) {
	a := newApp(Deps{Now: apitest.Now})
	addr := daemon(t, apitest.New())
	a.server = addr
	c, err := a.client()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(names ...string) []*pb.Job {
		resp, err := waitOnce(t.Context(), c, names, 0)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Jobs
	}
	for _, x := range []struct {
		want  string
		names []string
	}{
		{"count-words  RUNNING  4000+900/10000 49%  1 running  may be done in 5m to 8m", []string{"count-words"}},
		{"train  PENDING  0/90000 0%  may start in 10m to 30m  no window is long enough: needs 5m15s", []string{"train"}},
		{"gang  FAILED  0/1 0%", []string{"gang"}},
		{"1 of 2 jobs over  1 running  74%  may be done in 5m to 8m", []string{"count-words", "gang"}},
		{"1 of 3 jobs over  1 running  49%", []string{"count-words", "train", "gang"}},
	} {
		if got := a.standingOf(ask(x.names...)); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}

// TestWatchWithoutATerminal prints the list again when it has changed, and only then.
func TestWatchWithoutATerminal(t *testing.T) {
	fake := apitest.New()
	addr := daemon(t, fake)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs safe
	done := make(chan int, 1)
	go func() {
		done <- Run(ctx, Deps{Args: []string{"jobs", "--watch", "--every", "100ms"}, Out: &out, Err: &errs, Now: apitest.Now, Patience: -1, Getenv: func(k string) string {
			return map[string]string{"SLUICE_SERVER": addr}[k]
		}})
	}()
	eventually(t, "the list is there", func() bool { return strings.Contains(out.String(), "count-words") })
	time.Sleep(300 * time.Millisecond) // looks that find nothing new
	fake.Set(status.Job{Name: "train", State: job.Finished, Kind: job.Steps, Total: 9, Progress: 9, Unit: "step"})
	eventually(t, "the change is there", func() bool { return strings.Contains(out.String(), "COMPLETED") })
	cancel()
	if code := <-done; code != 0 || strings.Count(out.String(), "count-words") != 2 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}
