package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
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
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/terminal"
)

const origin = quantity.Instant(1_700_000_000_000_000_000)

func at(seconds float64) quantity.Instant {
	return origin.Add(time.Duration(seconds * float64(time.Second)))
}

func piece(from, to float64, committed bool) status.Span {
	s := status.Span{Kind: protocol.ForLease, Job: "a", Start: at(from), End: at(to), UsedStart: at(from), UsedEnd: at(to), Range: job.Range{To: 1}}
	if committed {
		s.Committed = s.Range
	}
	return s
}

// past is a history of one slice of 64 MiB, which has maintenance from 20 s to 28 s.
func past(spans ...status.Span) status.History {
	return status.History{To: at(200), Slices: []status.SliceHistory{{
		Slice: protocol.Slice{ID: "n/64", Capacity: trp.Vector{64 << 20}}, Spans: spans,
	}}}
}

func side2(title string, spans ...status.Span) *result {
	r := &result{title: title, survived: 1}
	r.take(past(spans...), origin)
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
	if block.take(past(piece(0, 10, false)), origin); block.history.Slices[0].Spans[0].UsedStart == 0 || block.lost != 1 {
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
		{"filled with what did not count", side2("pieces", piece(0, 10, false), piece(10, 19, true)), side2("blocks", piece(0, 30, true)), []string{"cutting did not fill more"}},
		{"no end is known", side2("pieces", piece(121, 122, true)), side2("blocks", status.Span{Start: at(0), End: at(121)}, piece(122, 129, true)), []string{"only 0 of 1 windows"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out bytes.Buffer
			picture := filepath.Join(t.TempDir(), "demo.svg")
			err := conclude(&out, []*result{c.pieces, c.block}, picture)
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
			if good := strings.HasPrefix(first, "Cutting to fit did the same work in 19s, and filled "); good != !slices.ContainsFunc(c.want, func(w string) bool { return strings.Contains(w, "fill more") }) && c.name != "no end is known" {
				t.Errorf("it begins with %q", first)
			}
			if !strings.Contains(out.String(), "windows") && !strings.Contains(out.String(), "Windows") {
				t.Errorf("no word of windows:\n%s", out.String())
			}
		})
	}
	none, neither := full(), slow()
	none.survived, neither.survived = 0, 0
	if err := conclude(&bytes.Buffer{}, []*result{none, neither}, filepath.Join(t.TempDir(), "x.svg")); err == nil || !strings.Contains(err.Error(), "lived through") {
		t.Errorf("a kill that nothing lived through: %v", err)
	}
}

// TestPlaceIsHeldOnce: two demos at once work in two folders.
func TestPlaceIsHeldOnce(t *testing.T) {
	base := t.TempDir()
	first, release, err := place(base)
	if err != nil {
		t.Fatal(err)
	}
	second, other, err := place(base)
	if err != nil || second == first {
		t.Fatalf("%q twice, %v", second, err)
	}
	other()
	if err := os.WriteFile(filepath.Join(first, "old"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	release()
	again, release, err := place(base)
	if err != nil || again != first {
		t.Fatalf("%q after %q was released, %v", again, first, err)
	}
	defer release()
	if _, err := os.Stat(filepath.Join(first, "old")); err == nil {
		t.Error("what an earlier demo left is still there")
	}
}

// TestJobFiles: without python3 the rest is still a job file, and the sizes to check are those that are run.
func TestJobFiles(t *testing.T) {
	for name, want := range map[string]int{"atoms.yaml": 3, "blocks.yaml": 6} {
		text, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := config.ParseJobs(name, []byte(without(string(text), map[string]bool{"train": true})))
		if err != nil || len(jobs) != want {
			t.Errorf("%s: %d jobs without train, want %d (%v)", name, len(jobs), want, err)
		}
		for _, j := range jobs {
			if j.Spec.Name == "train" {
				t.Errorf("%s still has train", name)
			}
		}
		for _, e := range examples() {
			if !bytes.Contains(text, []byte(e.size)) {
				t.Errorf("%s does not name the size %s of %s", name, e.size, e.job)
			}
		}
	}
}

// TestBidsFile: the jobs that bid are those that are checked, in the sizes that are checked, and only one has an agent.
func TestBidsFile(t *testing.T) {
	text, err := files.ReadFile("bids.yaml")
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := config.ParseJobs("bids.yaml", text)
	if err != nil || len(jobs) != len(bidding()) {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	for i, e := range bidding() {
		if s := jobs[i].Spec; string(s.Name) != e.job || strconv.FormatInt(s.Total, 10) != e.size || s.External != (e.job == auctioned) {
			t.Errorf("%s of %d units (external: %v) is to be checked as %+v", s.Name, s.Total, s.External, e)
		}
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
	count := winnerOf(&pb.Job{Name: "count-words", Progress: 400, Unit: "item", Trust: trust, History: []*pb.Subjob{{Bid: &pb.Bid{}, Start: moment(0), End: moment(7.5)}}})
	queues := []*pb.Queue{{Settings: &pb.QueueSettings{Name: "default"}, Trust: trust}, {Settings: &pb.QueueSettings{Name: "unused"}, Trust: &pb.Trust{Believed: 1}}}
	var out bytes.Buffer
	if err := award(&out, []winner{frames, count}, queues, "70 frames"); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	want := []string{
		"count-words  400 items         1  7.5s     75%    83%", "frames       240 frames        3  2.5s     25%    83% (error 0.09 over 2 subjobs)  <- its agent",
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

// TestBidsNeedPython: without python3 the part says that it is left out, and starts nothing.
func TestBidsNeedPython(t *testing.T) {
	var out, told bytes.Buffer
	if n, err := bids(t.Context(), &out, &told, filepath.Join(t.TempDir(), "x"), false); err != nil || n != 0 || out.Len() > 0 || !strings.Contains(told.String(), "no python3 on this machine") {
		t.Errorf("%d, %v\n%s%s", n, err, out.String(), told.String())
	}
}

// TestBlockOutputs gives each block the name that the check of the work wants.
func TestBlockOutputs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"count-words-1", "count-words-2", "count-words-3", "count-words-4", "train", "growing", "big-sort"} {
		if err := os.MkdirAll(filepath.Join(dir, "data", "output", name, "0-1"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	places, err := blockOutputs(dir)
	if err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]string{"items": "0-1250 1250-2500 2500-3750 3750-5000", "steps": "0-1000", "growing": "0-320",
		"rigid": "0-1"} {
		list, err := os.ReadDir(places[folder])
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range list {
			names = append(names, e.Name())
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s has %q, want %q", folder, got, want)
		}
	}
}

// TestView: where nothing can be drawn again it is a line now and then; at a terminal one line.
func TestView(t *testing.T) {
	jobs := []*pb.Job{{Name: "a", Total: 10, Progress: 5, Running: 2}, {Name: "b", Total: 1}, {Name: "c", Final: true, Total: 1, Progress: 1}, {Name: "d", Final: true, Total: 2, Progress: 2}}
	var out bytes.Buffer
	v := newView(&out, "1 of 3", 4)
	for s := range 40 {
		v.show(time.Duration(s)*time.Second, jobs, s == 39)
		if s == 8 {
			v.say(8*time.Second, "the daemon is killed")
		}
	}
	want := ""
	for _, at := range []string{"  0s", "  8s", " 15s", " 30s"} {
		if at == "  8s" {
			want += "1 of 3   8s the daemon is killed\n"
			continue
		}
		want += "1 of 3 " + at + " [#######.....]  62%  2 of 4 jobs done, 2 slices busy\n"
	}
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
	out.Reset()
	v = &view{out: &out, title: "1 of 3", slices: 4, live: terminal.NewLive(&out)}
	for s := range 30 {
		v.show(time.Duration(s)*time.Second, jobs, false)
		v.say(time.Duration(s)*time.Second, "the daemon is killed")
	}
	v.show(30*time.Second, jobs, true)
	if got := out.String(); strings.Contains(got, "\n") || strings.Count(got, "\r") != 31 || !strings.HasSuffix(got, "\r\x1b[K") || !strings.Contains(got, "62%  the daemon is killed\r") {
		t.Errorf("on a terminal it is one line, drawn in place: %q", got)
	}
}

// TestOpener: a picture is opened only for somebody who sits there.
func TestOpener(t *testing.T) {
	found := func(name string) (string, error) { return "/bin/" + name, nil }
	none := func(string) (string, error) { return "", exec.ErrNotFound }
	for _, c := range []struct {
		name, system string
		tty          bool
		env          map[string]string
		find         func(string) (string, error)
		want         string
	}{
		{"X", "linux", true, map[string]string{"DISPLAY": ":0"}, found, "/bin/xdg-open"},
		{"Wayland", "linux", true, map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, found, "/bin/xdg-open"},
		{"a Mac", "darwin", true, nil, found, "/bin/open"},
		{"no display", "linux", true, nil, found, ""},
		{"a file", "linux", false, map[string]string{"DISPLAY": ":0"}, found, ""},
		{"a build server", "linux", true, map[string]string{"DISPLAY": ":0", "CI": "true"}, found, ""},
		{"a build server's Mac", "darwin", true, map[string]string{"CI": "1"}, found, ""},
		{"no xdg-open", "linux", true, map[string]string{"DISPLAY": ":0"}, none, ""},
	} {
		if got := opener(c.system, c.tty, func(k string) string { return c.env[k] }, c.find); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if reveal(&bytes.Buffer{}, "x.svg") {
		t.Error("a picture was opened for a file")
	}
}

func TestFailed(t *testing.T) {
	err := failed([]*pb.Job{{Name: "a", State: pb.Job_RUNNING}, {Name: "b", Final: true, State: pb.Job_FAILED, Reason: "exit 3"}, {Name: "c", Final: true, State: pb.Job_COMPLETED}, {Name: "d", Final: true, State: pb.Job_EXPIRED}})
	if err == nil || !strings.Contains(err.Error(), "job b is FAILED: exit 3") || !strings.Contains(err.Error(), "d is EXPIRED") || strings.Contains(err.Error(), "job a") {
		t.Errorf("%v", err)
	}
}

// TestOutsideTheClone says where to run it.
func TestOutsideTheClone(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := run(t.Context(), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), "root of the clone") {
		t.Errorf("%v", err)
	}
}
