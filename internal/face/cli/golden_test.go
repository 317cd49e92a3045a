package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/data"
	"sluice.dev/sluice/internal/face/cli/session"
	lab "sluice.dev/sluice/internal/lab/cli"
)

var update = flag.Bool("update", false, "write testdata/*.golden from what the command says now")

// answering serves a fake until the test ends and returns its address.
func answering(t *testing.T, fake *apitest.Fake) string {
	t.Helper()
	return served(t, fake)
}

// served is the address of a daemon with any service.
func served(t *testing.T, service api.Service) string {
	t.Helper()
	s := httptest.NewServer(api.Handler(api.Options{Service: service, Now: apitest.Now}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// result is what a run of the command left.
type result struct {
	code     int
	out, err string
}

// sluice runs the command against the daemon at addr, at the fake's moment.
func sluice(t *testing.T, addr, in string, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), Deps{
		Sim: lab.Command, Args: args, Options: session.Options{Version: "v1", Commit: "abc", In: strings.NewReader(in), Out: &out,
			Err: &errs,
			Now: apitest.Now, Patience: -1, Getenv: func(k string) string { return map[string]string{"SLUICE_SERVER": addr}[k] }},
		Data: data.Tools{Verify: func(_ context.Context, dir string) (string, error) {
			if dir == "bad" {
				return "", fmt.Errorf("record 7 is damaged")
			}
			return dir + ": whole, 9 records", nil
		},
			AcceptEnd: func(string, uint64) error { return nil },
			Repair:    func(string, int64, uint64) (string, error) { return "7 jobs are in the archive", nil }},
	})
	return result{code, out.String(), errs.String()}
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

// TestAnswers shows every command with its answer and exit code.
func TestAnswers(t *testing.T) {
	addr := answering(t, apitest.New())
	var all strings.Builder
	for _, line := range strings.Split(strings.TrimSpace(`
jobs
jobs -o wide
jobs -o name
jobs -o json --state R
jobs --queue nobody
jobs --limit 1
job count-words
job count-words -o wide
job train
job train -o yaml
job gang -o json
job nobody
explain train
explain train -o json
slices
slices -o wide
slices -o yaml
windows
windows -o json
queues
queues -o json
zones
zones -o wide
zones -o json
airlock
airlock -o wide
airlock -o json
airlock -o name
airlock --every 1ms
airlock node-1
explain count-words
explain gang
zones drain
zones drain nowhere --yes
zones drain local-2
zones drain local-1
zones drain local-2 --yes --timeout 1h
zones drain local-2 --yes
zones
zones -o json
zones drain local-2 --wait --timeout 1ms --quiet
zones drain local-2 -o json
queue set research --weight 3 --cap 4 --max-window 15m
queue set default --user ada
queue set Research
queue sett
output count-words
output count-words -o json
logs count-words
wait gang
wait gang -o json
wait train --timeout 1ms
cancel train
cancel train nobody
cancel train nobody -o json
requeue gang
requeue gang --deadline 2026-03-02T18:00:00Z
requeue gang --deadline none
requeue gang --deadline soon
requeue train nobody
delete gang
delete train
pause train
pause node-1/0/3g.40gb --for 2h
pause train --for 2h
pause node-1/0/3g.40gb --for 0s
resume train
resume train -o name
resume node-1/0/3g.40gb
resume node-1/0/7g.80gb
agent key train
agent key nobody
agent key
reserve --all --kind drain
reserve node-1/0/3g.40gb --kind serving --start 13:00 --for 10h --every 24h --zone UTC --source ops -o json
reserve node-1/0/3g.40gb --kind serving --start 08:00 --for 10h --days mon-fri --zone America/New_York
reserve node-1/0/3g.40gb --kind serving --start 22:00 --end 06:00 --every 24h --zone Europe/Berlin --source ops -o json
reserve node-1/0/3g.40gb --kind serving --start 02:30 --for 1h --every 168h --zone America/New_York
reserve node-1/0/3g.40gb --start 20:00 --end 18:00 --zone Asia/Kolkata
reserve node-1/0/3g.40gb --for 1h --every 36h
reserve node-1/0/3g.40gb --for 1h --every 24h --zone Europe/Berln
reserve node-1/0/3g.40gb --for 1h --every 48h --days mon
reserve node-1/0/3g.40gb --for 1h --days monday-someday
reserve node-1/0/3g.40gb --for 49h --days mon,wed --zone UTC
reserve node-1/0/3g.40gb --every 24h
reserve node-1/0/3g.40gb --end +1h --truncate -o name
reserve
reserve x --all
reserve x --for 1h --end +1h
reserve x --kind lease
reserve x --start noon
reserve x --for 0s
reserve x --for 1h --every 0s
reserve node-1/0/3g.40gb --source twice
unreserve 17
unreserve x
unreserve 17 -o yaml
release node-1/0/3g.40gb -o json
queue set research --weight 3 -o json
agent key train -o json
journal verify --data dir -o json
logs count-words -o json
explain spec.rigid
explain spec.rigid.slices -o json
explain spec.rigd
explain --job spec
explain
run --items 1000 --per-item 20ms --mem 1Gi
run --per-item 20ms --mem 1Gi -- work
run --items 1000 -- work
run --items 0 --per-item soon --mem 1Gi --set theta=2 --env x -- work
run --items 0 --per-item soon --mem 1Gi --set theta=2 -- work
run --items 10 --per-item 1s --mem 1Gi -- ./work
run --rigid --walltime 40m --mem 8Gi --slices 2 --name big --env A=b -e C=d --set grace=1s --print -- /bin/work --name x -o json
run --steps 40 --per-step 1s --every 10 --mem 8Gi --name chain --detach -- work
init item
unquarantine node-1/0/3g.40gb
timeline --width 80
timeline -o wide
timeline -o json
about
status -o json
version
version -o name
journal verify --data dir
journal verify --data bad
journal truncate --data dir
journal accept-end --data dir --record 7
archive repair --data dir --without 3
archive repair --data dir --without -1
journal
submit
submit nowhere.yml
jobs -o xml
jobs extra
jobs --nothing
dance
up --log loud
`), "\n") {
		r := sluice(t, addr, "", strings.Fields(line)...)
		out := r.out + r.err
		if strings.HasPrefix(line, "version") {
			out = strings.Join(strings.Fields(out)[:1], "") + " ...\n" // the rest is of this machine
		}
		fmt.Fprintf(&all, "$ sluice %s\n%s[exit %d]\n\n", line, out, r.code)
	}
	golden(t, "testdata/answers.golden", strings.ReplaceAll(all.String(), addr, "SERVER"))
}

// TestHelp walks all commands: each has a short help and an example that names it, and each that does something has -o.
func TestHelp(t *testing.T) {
	d := Deps{Sim: lab.Command}
	count := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		count++
		if c.Short == "" || !strings.Contains(c.Example, c.CommandPath()) && c.HasParent() {
			t.Errorf("%s: short help %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		if c.RunE != nil && !c.HasSubCommands() && c.Flags().ShorthandLookup("o") == nil {
			t.Errorf("%s has no -o", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(d.root(session.New(d.Options)))
	if count < 40 {
		t.Errorf("%d commands", count)
	}
	r := sluice(t, "127.0.0.1:1", "", "completion", "bash")
	if r.code != 0 || !strings.Contains(r.out, "complete") {
		t.Errorf("completion: %d %.200s", r.code, r.err)
	}
	if r := sluice(t, "127.0.0.1:1", "", "--version"); r.code != 0 || r.out != "sluice v1 abc\n" {
		t.Errorf("--version: %+v", r)
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 65_400 * time.Nanosecond: "65µs", 850 * time.Millisecond: "850ms", 42 * time.Second: "42s", 200 * time.Second: "3m20s",
		time.Hour: "1h", 65 * time.Minute: "1h5m",
		51 * time.Hour: "2d3h", -time.Minute: "-1m", time.Minute + 100*time.Millisecond: "1m", 59*time.Minute + 59*time.Second: "59m59s",
	} {
		if got := command.Short(d); got != want {
			t.Errorf("Short(%s) = %q, want %q", d, got, want)
		}
	}
}

// TestFlat: what a job wrote can't move a terminal's cursor.
func TestFlat(t *testing.T) {
	if got := command.Flat("\x1b[2Jboo\n\u009bm\x7f"); got != `^[[2Jboo \u009bm^?` {
		t.Errorf("%q", got)
	}
}
