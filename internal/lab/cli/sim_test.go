package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/command"
	face "sluice.dev/sluice/internal/face/cli"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

var update = flag.Bool("update", false, "write testdata/*.golden from what the command says now")

// result is what a run of the command left.
type result struct {
	code     int
	out, err string
}

// sluice runs the whole program's command line, where no daemon answers.
func sluice(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs strings.Builder
	code := face.Run(t.Context(), face.Deps{
		Sim: Command, Forecast: ForecastCommand, Args: args,
		Options: session.Options{
			Version: "v1", Commit: "abc", In: strings.NewReader(""), Out: &out, Err: &errs, Patience: -1,
			Getenv: func(k string) string { return map[string]string{"SLUICE_SERVER": "127.0.0.1:1"}[k] },
		},
	})
	return result{code, out.String(), errs.String()}
}

// TestSimAnswers shows the commands of the simulator with their answers and exit codes.
func TestSimAnswers(t *testing.T) {
	dir := t.TempDir()
	runs := func(name, mechanism string, waits ...float64) string {
		var list []measure.Run
		for i, w := range waits {
			list = append(list, measure.Run{Scenario: "s", Mechanism: mechanism, Seed: uint64(i),
				Metrics: measure.Metrics{{Name: measure.WaitMean, Value: w}, {Name: measure.Utilization, Value: .5}}})
		}
		path := filepath.Join(dir, name)
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := measure.WriteJSON(f, list); err != nil {
			t.Fatal(err)
		}
		return path
	}
	runs("before.json", "sja", 60, 62, 61)
	runs("after.json", "sja", 50, 51, 51)
	runs("easy.json", "easy", 70, 75, 70)
	if err := os.WriteFile(filepath.Join(dir, "bad.yml"),
		[]byte("scenario: bad\ncluster: {node: []}\nworkload: {jobs: []}\nexpect: [utilisation > 0]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(`
sim run stories/backfill
sim run stories/backfill -m sja:fair,easy --seeds 1-2
sim run stories/backfill --set mechanism.horizon=1m
sim run stories/backfill --seeds 2 -o csv
sim run stories/late -m sja
sim run stories/late -m jasda
sim run stories/late --set mechanism.starve=never
sim run stories/late -m jasda --set mechanism.starve=never
sim run storys/backfill
sim run DIR/bad.yml
sim run DIR/nowhere.yml
sim run small -m esay,sja:fast
sim run small --set mechanism.policy
sim run small --set mechanism.polcy=fifo
sim run small --seeds 3-1
sim run small --workers -1
sim run stories/partition -m easy
sim run philly-mig
sim run
sim run small -o yaml
sim compare stories/backfill
sim compare DIR/before.json DIR/after.json
sim compare DIR/before.json DIR/easy.json --metric waitMean -o json
sim compare DIR/before.json DIR/easy.json --metric waitMean -o csv
sim compare DIR/before.json DIR/bad.yml
sim compare small -m sja,easy --metric waitmean
sim show stories/pieces
sim show nothing
sim list stories/backfill philly-mig
sim list stories/backfill philly-mig -o json
sim replay DIR
sim dance
`), "\n") {
		r := sluice(t, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		fmt.Fprintf(&all, "$ sluice %s\n%s[exit %d]\n\n", line, r.out+r.err, r.code)
	}
	got, file := strings.ReplaceAll(all.String(), dir, "DIR"), filepath.Join("testdata", "sim.golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(file); err != nil || got != string(want) {
		t.Errorf("%s differs (%v); run the test with -update and look at the difference:\n%s", file, err, got)
	}
}

// TestOlderNamesOfKeys: a scenario with a key by its older name plays as before, and is told once what the name is now.
func TestOlderNamesOfKeys(t *testing.T) {
	args := []string{"sim", "run", "small", "-o", "json", "--seeds", "1", "-m", "sja", "--set", "window={until: 20m, limit: 1h}", "--set"}
	old, now := sluice(t, append(args, "mechanism.tauMin=2m")...), sluice(t, append(args, "mechanism.minRuntime=2m")...)
	if old.out != now.out || old.code != now.code || !strings.Contains(now.out, "waitMean") {
		t.Errorf("by the older name it plays otherwise: %d %s, and %d %s", old.code, old.out, now.code, now.out)
	}
	const told = "mechanism.tauMin is called minRuntime now"
	if strings.Count(old.err, told) != 1 || strings.Contains(now.err, "is called") {
		t.Errorf("want it told once that %s: %s, and %s", told, old.err, now.err)
	}
}

// TestPictures: both files are written and are what they say.
func TestPictures(t *testing.T) {
	dir := t.TempDir()
	page, tracks := filepath.Join(dir, "r.html"), filepath.Join(dir, "p.json")
	if r := sluice(t, "sim", "run", "stories/backfill", "--report", page, "--perfetto", tracks); r.code != command.ExitOK {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	for path, want := range map[string]string{page: "<!doctype html>", tracks: `"ph"`} {
		data, err := os.ReadFile(path)
		if err != nil || !strings.Contains(strings.ToLower(string(data)), want) {
			t.Errorf("%s: %v, no %s in %.200s", path, err, want, data)
		}
	}
	// What can't be written is said before anything runs, and what is there stays.
	nowhere, other := filepath.Join(dir, "no", "r.html"), filepath.Join(dir, "other.json")
	r := sluice(t, "sim", "run", "stories/backfill", "--report", nowhere, "--perfetto", other)
	if r.code != command.ExitUsage || r.out != "" || !strings.Contains(r.err, "--report: open "+nowhere) {
		t.Errorf("a picture that can't be written ends in %d: %s%s", r.code, r.out, r.err)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("it left an empty file")
	}
	before, _ := os.ReadFile(page)
	sluice(t, "sim", "run", "stories/backfill", "--report", page, "--perfetto", nowhere)
	if after, err := os.ReadFile(page); err != nil || string(after) != string(before) {
		t.Errorf("a page that was there is changed: %v", err)
	}
}

// TestInterrupted: what is whole is printed, and the exit code says that it is not all.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	code := face.Run(ctx, face.Deps{Sim: Command, Args: []string{"sim", "run", "small", "-o", "json"},
		Options: session.Options{Out: &out, Err: &errs, Getenv: func(string) string { return "" }}})
	if code != command.ExitInterrupted || out.String() != "[\n]\n" ||
		!strings.Contains(errs.String(), "interrupted: 0 of 3 runs are whole") {
		t.Errorf("exit %d, %q, %q", code, out.String(), errs.String())
	}
	partial := []outcome.Result{{Run: measure.Run{Mechanism: "a", Seed: 1}, Partial: true, Finished: 9},
		{Run: measure.Run{Mechanism: "a", Seed: 2}, Finished: 4}, {Run: measure.Run{Mechanism: "b", Seed: 1}, Partial: true, Finished: 2}}
	g := perMechanism(partial)
	if len(g) != 2 || g[0].seeds() != "1 (1 more cut off)" || g[0].finished() != 4 || g[1].seeds() != "1, cut off" || g[1].finished() != 2 {
		t.Errorf("%+v", g)
	}
}

func TestProgressLine(t *testing.T) {
	for want, p := range map[string]play.Progress{
		"0 of 20 runs": {Total: 20},
		"5 of 20 runs, virtual time 1h, 3 jobs, about 30s to go": {Done: 5, Total: 20, Now: 3600e9, Live: 3},
		"20 of 20 runs": {Done: 20, Total: 20},
	} {
		if got := progressLine(p, 10*time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
