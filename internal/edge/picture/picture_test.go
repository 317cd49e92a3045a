package picture

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/picture/picturetest"
)

// origin of the test histories; only differences are shown.
const origin = quantity.Instant(1_700_000_000_000_000_000)

// at is an instant s seconds after origin.
func at(s float64) quantity.Instant { return origin.Add(time.Duration(s * float64(time.Second))) }

func slice(id string, gib float64) protocol.Slice {
	return protocol.Slice{ID: job.SliceID(id), Capacity: trp.Vector{quantity.Amount(gib * (1 << 30))}}
}

// lease from a to b whose process ran from a bit after a to a bit before b.
func lease(name string, a, b float64, from, to int64, outcome string) status.Span {
	return status.Span{Kind: protocol.ForLease, Job: job.ID(name), Start: at(a), End: at(b), Range: job.Range{From: from, To: to},
		Token: job.Token{Epoch: 1, Seq: uint64(from + 1)}, Outcome: outcome, UsedStart: at(a + 0.4), UsedEnd: at(b - 0.6),
		Committed: job.Range{From: from, To: to}}
}

func window(a, b float64, until protocol.ReservationKind) status.Span {
	return status.Span{Start: at(a), End: at(b), Until: until}
}

// example is a small story: the same work in pieces and as blocks.
func example() []Panel {
	var small []status.Span
	for i := range 11 {
		outcome := "done"
		if i == 4 {
			outcome = "memory"
		}
		small = append(small, lease("count-words", float64(i)*7, float64(i)*7+6.8, int64(i)*100, int64(i)*100+100, outcome))
	}
	running := lease("train", 62, 90, 3000, 4000, "")
	running.UsedEnd = 0
	late := lease("train", 50, 55, 2500, 3000, "start-failed")
	late.UsedStart, late.UsedEnd = 0, 0
	atoms := status.History{From: origin, To: at(80), Slices: []status.SliceHistory{
		{Slice: slice("n1/gpu0/3g.40gb@0", 40), Spans: []status.Span{
			lease("train", 0, 20, 0, 1000, "done"), lease("big-sort", 20.2, 50, 0, 1, "done"), late,
			window(55, 62, protocol.ForMaintenance), running,
		}},
		{Slice: slice("n1/gpu0/2g.20gb@4", 20), Spans: append(small, window(77, 80, 0))},
		{Slice: slice("n1/gpu0/1g.10gb@6", 10), Spans: []status.Span{
			lease("growing", 1, 24, 0, 400, "done"), lease("count-words", 24.1, 40, 1200, 1500, "yielded"),
			{Kind: protocol.ForMaintenance, Start: at(40), End: quantity.Never, Outcome: "alice"},
		}},
		{Slice: slice("n1/gpu0/1g.10gb@7", 0.5), Spans: []status.Span{
			{Kind: protocol.ForOwner, Start: at(0), End: at(2)}, window(2, 30, 0), {Kind: protocol.ForRigid, Job: "big-sort", Start: at(30),
				End: at(44)}, window(44, 80, 0),
		}},
	}}
	blocks := status.History{From: at(200), To: at(310), Slices: []status.SliceHistory{
		{Slice: slice("n1/gpu0/3g.40gb@0", 40), Spans: []status.Span{lease("train", 200, 275, 0, 4000, "done"),
			lease("big-sort", 275, 305, 0, 1, "done"), window(305, 310, 0)}},
		{Slice: slice("n1/gpu0/2g.20gb@4", 20), Spans: []status.Span{lease("count-words", 200, 290, 0, 1500, "done"), window(290, 310, 0)}},
		{Slice: slice("n1/gpu0/1g.10gb@6", 10), Spans: []status.Span{window(200, 240, protocol.ForMaintenance),
			{Kind: protocol.ForMaintenance, Start: at(240), End: quantity.Never}}},
		{Slice: slice("n1/gpu0/1g.10gb@7", 0.5), Spans: []status.Span{window(200, 310, 0)}},
	}}
	return []Panel{{Title: "Atoms", History: atoms}, {Title: "Rigid blocks <&>", History: blocks}}
}

func TestSVG(t *testing.T) {
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := SVG(w, example()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two pictures of the same panels differ")
	}
	picturetest.WellFormed(t, first.Bytes())
	picturetest.Golden(t, "example.svg", first.Bytes())
}

func TestTerminal(t *testing.T) {
	for _, c := range []struct {
		name  string
		width int
		color bool
	}{{"wide.txt", 120, false}, {"narrow.txt", 60, false}, {"color.txt", 100, true}} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := Terminal(&out, example(), c.width, c.color); err != nil {
				t.Fatal(err)
			}
			if c.color != strings.Contains(out.String(), "\x1b[") {
				t.Error("colors where none were asked for, or none where they were")
			}
			if !c.color {
				for _, line := range strings.Split(out.String(), "\n") {
					if strings.Contains(line, "slice-seconds") {
						continue // a title is as long as it is
					}
					if n := utf8.RuneCountInString(line); n > c.width {
						t.Errorf("a line of %d characters in a picture of %d: %q", n, c.width, line)
					}
				}
			}
			picturetest.Golden(t, c.name, out.Bytes())
		})
	}
}

func TestNothingToDraw(t *testing.T) {
	for _, panels := range [][]Panel{nil, {{Title: "empty"}},
		{{Title: "no spans", History: status.History{From: at(0), To: at(0), Slices: []status.SliceHistory{{Slice: slice("a", 0)}}}}}} {
		var svg, text bytes.Buffer
		if err := errors.Join(SVG(&svg, panels), Terminal(&text, panels, 0, false)); err != nil {
			t.Fatal(err)
		}
		picturetest.WellFormed(t, svg.Bytes())
		for _, broken := range []string{"NaN", "Inf", "%!"} {
			if strings.Contains(svg.String()+text.String(), broken) {
				t.Errorf("%d panels: the picture contains %s", len(panels), broken)
			}
		}
	}
}

// TestManyJobs: more jobs than colors and letters.
func TestManyJobs(t *testing.T) {
	h := status.History{From: at(0), To: at(40)}
	row := status.SliceHistory{Slice: slice("s", 1)}
	for i := range 40 {
		row.Spans = append(row.Spans, lease(fmt.Sprintf("job-%02d", i), float64(i), float64(i)+1, 0, 1, "done"))
	}
	h.Slices = append(h.Slices, row)
	d := drawing{jobs: jobs([]Panel{{History: h}})}
	seen := map[string]job.ID{}
	for _, id := range d.jobs {
		if other, ok := seen[d.color(id)]; ok {
			t.Errorf("%s and %s have the same color", id, other)
		}
		seen[d.color(id)] = id
	}
	var out bytes.Buffer
	if err := errors.Join(SVG(&out, []Panel{{History: h}}), Terminal(io.Discard, []Panel{{History: h}}, 80, true)); err != nil {
		t.Fatal(err)
	}
	picturetest.WellFormed(t, out.Bytes())
}

// failing writes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriteErrorsAreReported(t *testing.T) {
	if err := SVG(failing{}, example()); !errors.Is(err, os.ErrClosed) {
		t.Errorf("SVG: %v", err)
	}
	if err := Terminal(failing{}, example(), 80, false); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Terminal: %v", err)
	}
}

func TestElapsed(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0", 5 * time.Second: "5s", 90 * time.Second: "1m30s", 2 * time.Minute: "2m",
		2 * time.Hour: "2h", 150 * time.Minute: "2h30m"} {
		if got := elapsed(d); got != want {
			t.Errorf("elapsed(%v) = %q, want %q", d, got, want)
		}
	}
	for d := time.Second; d < 400*24*time.Hour; d = d*5/3 + 1 {
		if every := step(d, 12); every <= 0 || d/every > 12 {
			t.Errorf("step(%v) = %v: %d ticks", d, every, d/every)
		}
	}
}

func TestTrim(t *testing.T) {
	h := status.History{From: at(0), To: at(100), Slices: []status.SliceHistory{{},
		{Spans: []status.Span{window(40, 50, 0), window(30, 40, 0)}}}}
	if got := Trim(h); got.From != at(30) || got.To != at(100) {
		t.Errorf("from %v to %v", got.From.Sub(origin), got.To.Sub(origin))
	}
	h.From = at(35)
	if got := Trim(h); got.From != at(35) {
		t.Errorf("from %v: a span that began earlier moves nothing", got.From.Sub(origin))
	}
	if got := Trim(status.History{From: at(0), To: at(9)}); got.From != at(9) {
		t.Errorf("from %v: nothing is known", got.From.Sub(origin))
	}
}

// TestMeasure takes the shares over the beginning only, and marks where that ends.
func TestMeasure(t *testing.T) {
	h := status.History{From: at(0), To: at(40), Slices: []status.SliceHistory{{Slice: slice("a", 1), Spans: []status.Span{
		lease("train", 0, 10.6, 0, 1, "done"), window(10.6, 40, 0),
	}}}}
	whole, part, longer := Panel{History: h}, Panel{History: h, Measure: 20 * time.Second}, Panel{History: h, Measure: time.Hour}
	if w, l := whole.Share(), longer.Share(); w != l || w.Used != 9600*time.Millisecond || w.Available != 40*time.Second {
		t.Errorf("all of it: %+v and %+v", w, l)
	}
	if p := part.Share(); p.Used != 9600*time.Millisecond || p.Available != 20*time.Second {
		t.Errorf("half of it: %+v", p)
	}
	for _, c := range []struct {
		panel Panel
		want  bool
	}{{whole, false}, {part, true}, {longer, false}} {
		var svg, text bytes.Buffer
		if err := errors.Join(SVG(&svg, []Panel{c.panel}), Terminal(&text, []Panel{c.panel}, 80, false)); err != nil {
			t.Fatal(err)
		}
		for _, said := range []string{svg.String(), text.String()} {
			if strings.Contains(said, "measured to here") != c.want || strings.Contains(said, "in the first 20s") != c.want {
				t.Errorf("measure %s: want the mark %v:\n%s", c.panel.Measure, c.want, said)
			}
		}
	}
	wide := func(m time.Duration) string {
		var text bytes.Buffer
		if err := Terminal(&text, []Panel{{History: h, Measure: m}}, 60, false); err != nil {
			t.Fatal(err)
		}
		return text.String()
	}
	if said := wide(39 * time.Second); !strings.Contains(said, "measured to here ^\n") {
		t.Errorf("near the right edge the mark stands before its place:\n%s", said)
	}
}
