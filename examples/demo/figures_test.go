package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

const origin = quantity.Instant(1_700_000_000_000_000_000)

func at(seconds float64) quantity.Instant {
	return origin.Add(time.Duration(seconds * float64(time.Second)))
}

func piece(from, to float64, committed bool) status.Span {
	s := status.Span{Kind: protocol.ForLease, Job: "a", Start: at(from), End: at(to), UsedStart: at(from), UsedEnd: at(to),
		Range: job.Range{To: 1}}
	if committed {
		s.Committed = s.Range
	}
	return s
}

// plan is what demo.sh takes off the market.
var plan = []reserved{
	{"serving", 160, 10 * time.Second, 4 * time.Second}, {"serving", 96, 30 * time.Second, 4 * time.Second},
	{"maintenance", 64, 20 * time.Second, 8 * time.Second}, {"drain", 0, 120 * time.Second, 10 * time.Second},
}

// past is a history of one slice of 64 MiB, which has maintenance from 20 s to 28 s.
func past(spans ...status.Span) status.History {
	return status.History{To: at(200), Slices: []status.SliceHistory{{
		Slice: protocol.Slice{ID: "n/64", Capacity: trp.Vector{64 << 20}}, Spans: spans,
	}}}
}

func side2(title string, spans ...status.Span) *result {
	r := &result{title: title, survived: 1}
	r.take(past(spans...), origin, plan)
	return r
}

func TestTakeCounts(t *testing.T) {
	r := side2("a",
		status.Span{Start: at(2), End: at(3)}, // the daemon that came back knows of no earlier time
		piece(3, 15, true), piece(15.01, 18, false),
		status.Span{Start: at(18), End: at(20)},
		status.Span{Kind: protocol.ForMaintenance, Start: at(20), End: at(28)},
		piece(28, 40, true), status.Span{Start: at(40), End: at(40.2)}, piece(40.2, 125, true), piece(125, 130, true),
		status.Span{Start: at(130), End: at(200)},
	)
	if r.pieces != 4 || r.lost != 1 || r.took() != 130*time.Second {
		t.Errorf("%d pieces, %d lost, in %s", r.pieces, r.lost, r.took())
	}
	// Before the maintenance two pieces and one window left empty; before the drain two pieces; after it nothing is known.
	if w := r.windows; w["maintenance"] != 3 || w["drain"] != 2 || w[""] != 1 || len(w) != 3 {
		t.Errorf("windows %v", w)
	}
	if first := r.history.Slices[0].Spans[0]; first.Start != origin {
		t.Errorf("the slice was there from the beginning: %+v", first)
	}
	block := &result{blocks: true}
	if block.take(past(piece(0, 10, false)), origin, plan); block.history.Slices[0].Spans[0].UsedStart == 0 || block.lost != 1 {
		t.Errorf("the time of a block that reached its walltime is not counted: %+v", block)
	}
	if known, total := knownEnds(r.windows); known != 5 || total != 6 {
		t.Errorf("%d of %d", known, total)
	}
}

func TestConcludeJudges(t *testing.T) {
	full := func() *result { return side2("pieces", piece(0, 10, true), piece(10, 19, true)) }
	slow := func() *result { return side2("blocks", status.Span{Start: at(0), End: at(10)}, piece(10, 30, true)) }
	for _, c := range []struct {
		name          string
		pieces, block *result
		want          []string
	}{
		{"good", full(), slow(), nil},
		{"blocks fill more", slow(), full(), []string{"cutting did not fill more", "took no less time"}},
		{"filled with what did not count", side2("pieces", piece(0, 10, false), piece(10, 19, true)), side2("blocks", piece(0, 30, true)),
			[]string{"cutting did not fill more"}},
		{"no end is known", side2("pieces", piece(121, 122, true)), side2("blocks", status.Span{Start: at(0), End: at(121)},
			piece(122, 129, true)), []string{"only 0 of 1 windows"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			picture := filepath.Join(t.TempDir(), "demo.svg")
			err := conclude(&out, []*result{c.pieces, c.block}, picture, plan)
			if (err == nil) != (c.want == nil) {
				t.Fatalf("conclude: %v\n%s", err, out.String())
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q lacks %q", err, w)
				}
			}
			if svg, err := os.ReadFile(picture); err != nil || !bytes.Contains(svg, []byte("measured to here")) {
				t.Errorf("the picture: %v\n%s", err, svg)
			}
			first, _, _ := strings.Cut(out.String(), "\n")
			if good := strings.HasPrefix(first, "Cutting to fit did the same work in 19s, and filled "); good != !slices.ContainsFunc(
				c.want, func(w string) bool { return strings.Contains(w, "fill more") }) && c.name != "no end is known" {
				t.Errorf("it begins with %q", first)
			}
			if !strings.Contains(out.String(), "windows") && !strings.Contains(out.String(), "Windows") {
				t.Errorf("no word of windows:\n%s", out.String())
			}
		})
	}
	none, neither := full(), slow()
	none.survived, neither.survived = 0, 0
	if err := conclude(&bytes.Buffer{}, []*result{none, neither}, filepath.Join(t.TempDir(), "x.svg"), plan); err == nil ||
		!strings.Contains(err.Error(), "lived through") {
		t.Errorf("a kill that nothing lived through: %v", err)
	}
}

// TestAward: who held slices longest stands first, and a job that won nothing, ran what nobody bid for, or was held against
// nothing is an error.
func TestAward(t *testing.T) {
	moment := func(s float64) *timestamppb.Timestamp {
		return timestamppb.New(time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))))
	}
	trust := &pb.Trust{Believed: .83, Error: .09, Seen: 2}
	frames := winnerOf(&pb.Job{Name: auctioned, Progress: 240, Unit: "frame", Trust: trust, History: []*pb.Subjob{
		{Bid: &pb.Bid{}, Start: moment(0), End: moment(1.5)}, {Bid: &pb.Bid{}, Start: moment(2), End: moment(3)}, {Bid: &pb.Bid{}},
	}})
	count := winnerOf(&pb.Job{Name: "count-words", Progress: 400, Unit: "item", Trust: trust,
		History: []*pb.Subjob{{Bid: &pb.Bid{}, Start: moment(0), End: moment(7.5)}}})
	queues := []*pb.Queue{{Settings: &pb.QueueSettings{Name: "default"}, Trust: trust}, {Settings: &pb.QueueSettings{Name: "unused"},
		Trust: &pb.Trust{Believed: 1}}}
	var out bytes.Buffer
	if err := award(&out, []winner{frames, count}, queues, "70 frames"); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	want := []string{
		"count-words  400 items         1  7.5s     75%    83%",
		"frames       240 frames        3  2.5s     25%    83% (error 0.09 over 2 subjobs)  <- its agent",
		"queue default would be believed to 83%", "the last it said: 70 frames",
	}
	rest := out.String()
	for _, w := range want {
		_, after, found := strings.Cut(rest, w)
		if !found {
			t.Errorf("no %q, or not in this order:\n%s", w, out.String())
			continue
		}
		rest = after
	}
	if strings.Contains(out.String(), "unused") {
		t.Errorf("a queue of which nothing is known is shown:\n%s", out.String())
	}
	for name, w := range map[string]winner{
		"won nothing":      {job: "a", trust: trust},
		"ran without":      {job: "a", pieces: 2, bids: 1, trust: trust},
		"nothing observed": {job: "a", pieces: 1, bids: 1, trust: &pb.Trust{Believed: 1}},
	} {
		if award(&bytes.Buffer{}, []winner{w}, nil, "") == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestAPictureInAnyCase: one side alone is drawn too, and so is one in which work was lost.
func TestAPictureInAnyCase(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.svg")
	var out bytes.Buffer
	r := side2("pieces", piece(0, 10, true), piece(10, 19, false))
	r.ran, r.waited = 20*time.Second, 14*time.Second
	if err := conclude(&out, []*result{r}, file, plan); err != nil ||
		!strings.Contains(out.String(), "the machine was busy 70% of the time") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if svg, err := os.ReadFile(file); err != nil || !bytes.Contains(svg, []byte("<svg")) {
		t.Errorf("the picture: %v", err)
	}
	if err := conclude(&out, nil, file, plan); err == nil {
		t.Error("nothing at all is no error")
	}
}

// TestABusyMachineComparesNothing: with both sides done there is no verdict where the machine disturbed one of them, and that is no error.
func TestABusyMachineComparesNothing(t *testing.T) {
	var out bytes.Buffer
	pieces, blocks := side2("pieces", piece(0, 10, true), piece(10, 30, true)), side2("blocks", piece(0, 19, true))
	blocks.ran, blocks.waited = 20*time.Second, 14*time.Second
	err := conclude(&out, []*result{pieces, blocks}, filepath.Join(t.TempDir(), "demo.svg"), plan)
	first, _, _ := strings.Cut(out.String(), "\n")
	if err != nil || !strings.Contains(first, "in 30s and in rigid blocks in 19s. This machine is too busy to compare them") {
		t.Errorf("%v, it begins with %q", err, first)
	}
}
