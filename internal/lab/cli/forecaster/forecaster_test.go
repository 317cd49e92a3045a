package forecaster_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/cli/forecaster"
	histories "sluice.dev/sluice/internal/lab/history/all"
)

// text is a file that lies nowhere.
func text(name, content string) histories.File {
	return histories.File{Name: name, Open: func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(content)), nil }}
}

// dump is three days of a machine with two GPUs, as sacct prints them without a time zone.
func dump() histories.File {
	var b strings.Builder
	b.WriteString("JobIDRaw|JobID|User|Partition|State|Submit|Start|End|AllocTRES|NodeList\n")
	at := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	for i := range 60 {
		start := at.Add(time.Duration(i) * 75 * time.Minute)
		stamp := func(t time.Time) string { return t.Format("2006-01-02T15:04:05") }
		fmt.Fprintf(&b, "%d|%d|u|debug|COMPLETED|%s|%s|%s|gres/gpu:a100=1,gres/gpu=1|n1\n", i+1, i+1, stamp(start), stamp(start),
			stamp(start.Add(20*time.Minute)))
	}
	return text("sacct.txt", b.String())
}

func nodes() histories.File {
	return text("nodes.txt", "NodeName=n1 Arch=x86_64 CPUTot=8 Gres=gpu:a100:2 State=IDLE Partitions=debug\n")
}

// TestAnswer: what is asked decides the answer, how many runs go at once does not, and whoever watches sees all of them.
func TestAnswer(t *testing.T) {
	jobs := &forecaster.Jobs{File: "mine.yml", Text: "- {at: 0s, name: scan, items: {total: 100, perItem: 10s}, memory: 1Gi}\n"}
	ask := func(change func(*forecaster.Request)) string {
		t.Helper()
		r := forecaster.Request{Files: []histories.File{dump(), nodes()}, Jobs: jobs, Grace: 30 * time.Second, Seed: 1, Quick: true}
		change(&r)
		a, err := r.Answer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := forecaster.JSON(&b, a); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	ended, of := 0, 0
	plain := ask(func(r *forecaster.Request) { r.Progress = func(_ string, done, total int) { ended, of = done, total } })
	if ended == 0 || ended != of {
		t.Errorf("%d of %d runs were told of", ended, of)
	}
	if again := ask(func(r *forecaster.Request) { r.Workers, r.Files = 3, []histories.File{nodes(), dump()} }); again != plain {
		t.Errorf("another order of files and three workers change the answer:\n%s\n%s", again, plain)
	}
	const unsaid = "UTC"
	for name, c := range map[string]struct {
		change  func(*forecaster.Request)
		says    string
		missing string
	}{
		"nothing":   {func(*forecaster.Request) {}, unsaid, ""},
		"zone":      {func(r *forecaster.Request) { r.Zone = "UTC" }, `"mechanism": "sja"`, unsaid},
		"anonymize": {func(r *forecaster.Request) { r.Anonymize = true }, "jobs of your own", "mine.yml"},
		"grace":     {func(r *forecaster.Request) { r.Grace = 2 * time.Minute }, `"noticeSeconds": 120`, ""},
		"days":      {func(r *forecaster.Request) { r.Days = 2 }, "days the last 2 count", ""},
		"day":       {func(r *forecaster.Request) { r.Days = 1 }, "days the last counts", ""},
		"all days":  {func(r *forecaster.Request) { r.Days = 0 }, unsaid, "days the last"},
		"slow":      {func(r *forecaster.Request) { r.Quick = false }, `"moved"`, ""},
	} {
		if got := ask(c.change); !strings.Contains(got, c.says) || c.missing != "" && strings.Contains(got, c.missing) {
			t.Errorf("%s: want %q and no %q: %s", name, c.says, c.missing, got)
		}
	}
	if east := ask(func(r *forecaster.Request) { r.Hours = "Asia/Tokyo" }); east == plain {
		t.Error("the hours of day of another zone are the same")
	}
}

// TestStepsAreToldOf: whoever waits hears what is done between the files and the runs, and an interrupt ends it before the next step.
func TestStepsAreToldOf(t *testing.T) {
	told := func(last int) (steps []string, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := forecaster.Request{Files: []histories.File{dump(), nodes()}, Grace: 30 * time.Second, Quick: true}
		r.Progress = func(what string, _, total int) {
			if total < 0 {
				steps = append(steps, what)
			}
			if total >= 0 || len(steps) == last {
				cancel()
			}
		}
		_, err = r.Answer(ctx)
		return steps, err
	}
	all, err := told(0)
	const placing = "placing the runs"
	if want := []string{"sorting the runs", placing, placing, placing, "finding the idle time"}; !errors.Is(err, context.Canceled) ||
		!slices.Equal(all, want) {
		t.Errorf("%v, %q; want %q", err, all, want)
	}
	for last := 1; last <= len(all); last++ {
		if steps, err := told(last); !errors.Is(err, context.Canceled) || !slices.Equal(steps, all[:last]) {
			t.Errorf("interrupted in step %d: %v, %q", last, err, steps)
		}
	}
}

// TestRefused: what is wrong is said with its flag, and nothing is read where a flag is wrong.
func TestRefused(t *testing.T) {
	shut := histories.File{Name: "shut", Open: func() (io.ReadCloser, error) { return nil, errors.New("open shut: no") }}
	for name, c := range map[string]struct {
		ask  forecaster.Request
		kind errkind.Kind
		says string
	}{
		"grace":   {forecaster.Request{Grace: 2 * time.Hour}, errkind.Invalid, "--grace 2h0m0s: want 0s to 1h"},
		"days":    {forecaster.Request{Days: -1}, errkind.Invalid, "--days -1: want 1 or more"},
		"gpus":    {forecaster.Request{GPUs: -1}, errkind.Invalid, "--gpus -1: want 1 or more"},
		"zone":    {forecaster.Request{Zone: "Mars/Base"}, errkind.Invalid, "--zone Mars/Base: it is no"},
		"hours":   {forecaster.Request{Hours: "Mars/Base"}, errkind.Invalid, "--hours Mars/Base: it is no"},
		"jobs":    {forecaster.Request{Jobs: &forecaster.Jobs{File: "m.yml", Text: "- {at"}}, errkind.Invalid, "m.yml"},
		"file":    {forecaster.Request{}, errkind.Unknown, "open shut: no"},
		"unknown": {forecaster.Request{Files: []histories.File{text("notes.txt", "hello\n")}}, errkind.Invalid, "notes.txt: this is no"},
		"both": {forecaster.Request{Files: []histories.File{dump(), text("x.swf", "1 0 0 60 2 -1 -1 2 60 -1 1 1 1 -1 1 1 -1 -1\n")}},
			errkind.Invalid, "sacct.txt (slurm) and x.swf (swf) are of several clusters"},
	} {
		if c.ask.Files == nil {
			c.ask.Files = []histories.File{shut}
		}
		if _, err := c.ask.Answer(t.Context()); err == nil || errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v; want %q of kind %v", name, err, c.says, c.kind)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r := forecaster.Request{Files: []histories.File{dump(), nodes()}, Seed: 1}
	if _, err := r.Answer(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
