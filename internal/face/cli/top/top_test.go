package top

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/face/cli/clitest"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/api/apitest"
)

var update = flag.Bool("update", false, "write testdata/*.golden from what is drawn now")

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
			Name: job.ID(fmt.Sprintf("waits-%d", i)), Queue: "default", Kind: job.Items, Total: 1000, Unit: "item",
			Submitted: apitest.At(-time.Minute),
			Reason: "no window is long enough: needs 5m15s of a slice with 40Gi, and the next such is reserved for another job until " +
				"this evening",
		})
	}
	return f
}

// topOf is a view of what a fake says, after two looks a second apart.
func topOf(t *testing.T, fake *apitest.Fake) *top {
	t.Helper()
	now := apitest.Now()
	a := clitest.Session(t, fake, func() time.Time { return now })
	c, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	v := &top{a: a, c: c, rates: map[string][]point{}}
	look := func() {
		apply, err := v.Fetch(t.Context())
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
	}{{few, 80, 24, ""}, {few, 200, 50, "the daemon is away: what stands here is old"}, {many, 80, 24, ""}, {many, 200, 50, ""},
		{many, 40, 10, ""}, {many, 10, 3, ""}} {
		rows := c.v.Frame(c.columns, c.rows, c.notice)
		fmt.Fprintf(&all, "%d x %d\n%s\n", c.columns, c.rows, clitest.Pictured(rows))
		if len(rows) > max(c.rows, 6) {
			t.Errorf("%d rows on a terminal of %d", len(rows), c.rows)
		}
	}
	for range 3 {
		many.Key(terminal.KeyDown)
	}
	fmt.Fprintf(&all, "80 x 24, three down\n%s\n", clitest.Pictured(many.Frame(80, 24, "")))
	golden(t, "testdata/top.golden", all.String())
	for range 9 {
		many.Key(terminal.KeyPageDown)
	}
	many.Frame(80, 24, "")
	for range 9 {
		many.Key(terminal.KeyPageUp)
	}
	if many.first != 0 {
		t.Errorf("up again at %d", many.first)
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

// golden compares with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run the test with -update and look at the difference:\n%s", name, got)
	}
}
