package directory

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

const (
	verb    = "adapt"
	unready = 86
	// patience bounds a wait for what must come.
	patience = time.Minute
)

// TestMain lets the test binary be the adapter.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == verb {
		var s Settings
		if err := json.Unmarshal([]byte(os.Args[2]), &s); err != nil {
			panic(err)
		}
		os.Exit(Main(s, unready, os.Args[3], os.Args[4:]))
	}
	os.Exit(m.Run())
}

// trainer is a program that knows nothing of Sluice: it goes on from the last state in ckpt, prints its steps, and saves every few and when
// it gets SIGTERM. The state of a step depends on all before. %d steps, of %s each; %s ends it on SIGTERM.
const trainer = `
i=0; sum=7
for f in ckpt/state-*; do [ -e "$f" ] && n=${f##*-} && [ "$n" -gt $i ] && i=$n; done
[ $i -gt 0 ] && sum=$(cat ckpt/state-$i)
save() { echo $sum > ckpt/.new && mv ckpt/.new ckpt/state-$i && for f in ckpt/state-*; do [ $f = ckpt/state-$i ] || rm $f; done; }
told=
trap 'told=1' TERM
while [ $i -lt %d ]; do
	i=$((i+1)); sum=$(( (sum * 31 + i) %% 1000003 )); echo "step $i of %d"
	sleep %s
	[ $((i %% 7)) = 0 ] && save
	if [ -n "$told" ]; then save; %s; fi
done
save
echo $sum > ckpt/result
`

// chain is a job of a program that is cut into subjobs.
type chain struct {
	*testing.T
	s      Settings
	script string
	dir    string
	// from is how far it is, resume the last checkpoint that counts; subjobs counts.
	from    int64
	resume  string
	subjobs int
	// ended: the last one said that all is done.
	ended bool
}

func newChain(t *testing.T, steps int64, progress, each, end string) *chain {
	return &chain{T: t, dir: t.TempDir(), s: Settings{Directory: job.Directory{Path: "ckpt", Progress: progress}, Grace: 20 * time.Second,
		Total: steps}, script: fmt.Sprintf(trainer, steps, steps, each, end)}
}

// run runs one subjob up to a step in a work directory of its own, and does something to it meanwhile. It returns its exit status, and
// what it said.
func (c *chain) run(to int64, meanwhile func(*exec.Cmd)) (status int, said string) {
	c.Helper()
	c.subjobs++
	at := filepath.Join(c.dir, strconv.Itoa(c.subjobs))
	place := func(name string) string { return filepath.Join(at, name) }
	for _, name := range []string{"work", "checkpoint", "output", "progress"} {
		if err := os.MkdirAll(place(name), 0o700); err != nil {
			c.Fatal(err)
		}
	}
	settings, err := json.Marshal(c.s)
	if err != nil {
		c.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		c.Fatal(err)
	}
	var text bytes.Buffer
	p := &exec.Cmd{Path: self, Args: []string{"sluice-shim", verb, string(settings), "/bin/sh", "sh", "-c", c.script}, Dir: place("work"),
		Stdout: &text, Stderr: &text, WaitDelay: patience, SysProcAttr: &syscall.SysProcAttr{Setpgid: true},
		Env: append(os.Environ(), "SLUICE_FROM="+strconv.FormatInt(c.from, 10), "SLUICE_TO="+strconv.FormatInt(to, 10),
			"SLUICE_CHECKPOINT_DIR="+place("checkpoint"), "SLUICE_OUTPUT_DIR="+place("output"),
			"SLUICE_PROGRESS_FILE="+filepath.Join(place("progress"), "progress.json"))}
	if c.resume != "" {
		p.Env = append(p.Env, "SLUICE_RESUME_DIR="+c.resume)
	}
	if err := p.Start(); err != nil {
		c.Fatal(err)
	}
	if meanwhile != nil {
		meanwhile(p)
	}
	_ = p.Wait()
	data, err := os.ReadFile(filepath.Join(place("progress"), "progress.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return p.ProcessState.ExitCode(), text.String()
	}
	var got struct {
		Progress          int64
		Checkpoint, Ended bool
	}
	if err = errors.Join(err, json.Unmarshal(data, &got)); err != nil || got.Progress <= c.from || got.Progress > to {
		c.Fatalf("subjob [%d,%d) says %s: %v", c.from, to, data, err)
	}
	if !got.Checkpoint { // said on the way, and counts for nothing
		return p.ProcessState.ExitCode(), text.String()
	}
	c.from, c.resume, c.ended = got.Progress, place("checkpoint"), got.Ended
	return p.ProcessState.ExitCode(), text.String()
}

// result is what the last subjob has left as output.
func (c *chain) result() string {
	c.Helper()
	data, err := os.ReadFile(filepath.Join(c.dir, strconv.Itoa(c.subjobs), "output", "ckpt", "result"))
	if err != nil {
		c.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

// reference is the result of a run that nobody cuts.
func reference(steps int64) string {
	sum := int64(7)
	for i := int64(1); i <= steps; i++ {
		sum = (sum*31 + i) % 1_000_003
	}
	return strconv.FormatInt(sum, 10)
}

// TestNobodyKnowsItsLength: a program whose length nobody says is done when it ends with 0 by itself, and not when it was told to; how far
// it is its output says, or the time that it has run.
func TestNobodyKnowsItsLength(t *testing.T) {
	for name, progress := range map[string]string{"by its output": `step (\d+)`, "by time": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const steps = 60
			w := newChain(t, steps, progress, "0.05", "exit 0")
			w.s.Total = job.OpenTotal
			if status, said := w.run(job.OpenTotal, func(p *exec.Cmd) {
				time.Sleep(1500 * time.Millisecond)
				_ = p.Process.Signal(syscall.SIGTERM)
			}); status != shim.YieldCode || w.ended || w.from == 0 || w.from >= steps {
				t.Fatalf("exit %d, at %d: %s", status, w.from, said)
			}
			before := w.from
			if status, said := w.run(w.from+1, nil); status != 0 || w.ended || w.from != before+1 {
				t.Fatalf("a part of one step: exit %d, at %d: %s", status, w.from, said)
			}
			if status, said := w.run(w.from+10_000, nil); status != 0 || !w.ended || w.result() != reference(steps) {
				t.Fatalf("exit %d, at %d: %s", status, w.from, said)
			}
			if progress != "" && w.from != steps || progress == "" && (w.from < 2 || w.from > 30) {
				t.Errorf("its length is %d", w.from)
			}
			before, w.ended = w.from, false // as after a crash behind its end
			if status, said := w.run(w.from+10_000, nil); status != 0 || !w.ended || w.from != before+1 {
				t.Errorf("exit %d, at %d: %s", status, w.from, said)
			}
		})
	}
}

// TestCutEqualsUncut: a program is told to end, or killed with all that it has started, at random moments in random parts, and what it has
// in the end is what it has without that; told by its output or by the names of its checkpoints, whatever it exits with.
func TestCutEqualsUncut(t *testing.T) {
	for name, c := range map[string]struct{ progress, end string }{
		"by its output, exit 0":   {`step (\d+)`, "exit 0"},
		"by its output, exit 3":   {`step (\d+)`, "exit 3"},
		"by its checkpoints":      {"", "exit 1"},
		"it does not end in time": {"", ":"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const steps = 120
			w := newChain(t, steps, c.progress, "0.01", c.end)
			if c.end == ":" {
				w.s.Grace = 2 * time.Second
			}
			seed := rand.Uint64()
			draw := rand.New(rand.NewPCG(seed, 1))
			for w.from < steps {
				if w.subjobs > 300 {
					t.Fatalf("at step %d after %d subjobs (seed %d)", w.from, w.subjobs, seed)
				}
				to := min(steps, w.from+1+draw.Int64N(60))
				strike := draw.IntN(4)
				w.run(to, func(p *exec.Cmd) {
					if w.subjobs > 60 || strike > 1 { // in the end it is left alone
						return
					}
					time.Sleep(time.Duration(draw.IntN(900)) * time.Millisecond)
					if strike == 0 {
						_ = p.Process.Signal(syscall.SIGTERM)
					} else {
						_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
					}
				})
			}
			if got := w.result(); got != reference(steps) {
				t.Errorf("the result is %s, uncut %s (seed %d)", got, reference(steps), seed)
			}
			if w.subjobs < 3 {
				t.Errorf("it ran in %d subjobs", w.subjobs)
			}
		})
	}
}

// TestItIsStoppedWhenItsPartIsDone: a program that would go on is told to end once it says that it has come to the end of its part, and
// what it started is gone when the adapter is.
func TestItIsStoppedWhenItsPartIsDone(t *testing.T) {
	w := newChain(t, 1_000_000, `step (\d+)`, "0.02", "exit 0")
	w.script = "sleep 600 & echo $! > child; " + w.script
	begun := time.Now()
	if status, said := w.run(5, nil); status != 0 || w.from != 5 {
		t.Fatalf("status %d at step %d: %s", status, w.from, said)
	}
	if took := time.Since(begun); took > patience/2 {
		t.Errorf("it took %v", took)
	}
	data, err := os.ReadFile(filepath.Join(w.dir, "1", "work", "child"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err == nil {
		if state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); !bytes.Contains(state, []byte(") Z ")) {
			t.Errorf("its child lives: %s", state)
		}
	}
}

// TestWhatIsWrongIsSaid: what a subjob says whose program leaves nothing that counts, and with which status it ends.
func TestWhatIsWrongIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		script, progress string
		status           int
		says             string
	}{
		"no checkpoint":  {"echo step 3", `step (\d+)`, 1, "the program ended by itself, and has saved nothing in ckpt"},
		"no number":      {"echo hello; echo x > ckpt/last", `step (\d+)`, 1, "nothing says how far"},
		"no name":        {"echo x > ckpt/last", "", 1, "nothing says how far"},
		"a failure":      {"exit 7", "", 7, "nothing was saved in ckpt before the program ended"},
		"no expression":  {"exit 0", "(", unready, "expression of progress"},
		"a word of ours": {"exit 85", "", 1, "nothing was saved in ckpt"},
		"killed at once": {"kill -KILL $$", "", -1, "nothing was saved in ckpt before the program ended"},
		"told to end":    {"echo step 60; sleep 600", `step (\d+)`, 128 + 15, "nothing was saved in ckpt before the program had to end"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newChain(t, 100, c.progress, "0", "exit 0")
			w.script = c.script
			if status, said := w.run(50, nil); status != c.status || !strings.Contains(said, c.says) || w.from != 0 {
				t.Errorf("status %d at %d: %s; want %d and %q", status, w.from, said, c.status, c.says)
			}
		})
	}
}

// TestTheDirectoryIsTheOneBefore: what came along in the place of the program's directory is there at first, and gone once a subjob has
// left one; files keep their modes and times, and links what they say.
func TestTheDirectoryIsTheOneBefore(t *testing.T) {
	w := newChain(t, 100, "", "0", "exit 0")
	w.script = `mkdir ckpt/sub; echo a > ckpt/sub/state-1; chmod 751 ckpt/sub/state-1; touch -d @1000000000 ckpt/sub/state-1
ln -s sub/state-1 ckpt/latest-3; : > ckpt/old`
	if status, said := w.run(50, nil); status != 85 || w.from != 3 {
		t.Fatalf("status %d at %d: %s", status, w.from, said)
	}
	w.script = `[ -e ckpt/old ] && rm ckpt/old && [ "$(cat ckpt/latest-3)" = a ] && 
[ "$(stat -c '%a %Y' ckpt/sub/state-1)" = '751 1000000000' ] && : > ckpt/state-9`
	if status, said := w.run(50, nil); status != 85 || w.from != 9 {
		t.Fatalf("status %d at %d: %s", status, w.from, said)
	}
	w.script = "[ ! -e ckpt/old ] && : > ckpt/state-20"
	if status, said := w.run(50, nil); status != 85 || w.from != 20 {
		t.Fatalf("status %d at %d: %s", status, w.from, said)
	}
}

// TestABarOfProgressIsRead: a program that only returns in its line, as bars of progress do, is heard before its line ends.
func TestABarOfProgressIsRead(t *testing.T) {
	c := newChain(t, 1000, `step (\d+)`, "0.01", "exit 0")
	c.script = strings.Replace(c.script, `echo "step $i of 1000"`, `printf '\rstep %d of 1000 ' $i`, 1)
	if status, said := c.run(3, nil); status != 0 || c.from != 3 {
		t.Fatalf("it has ended with %d, and has done %d: %s", status, c.from, said)
	}
	if at, err := os.ReadFile(filepath.Join(c.resume, mileage)); err != nil || strings.HasPrefix(string(at), "1000 ") {
		t.Errorf("it ran to %s, for a part of 3: %v", at, err)
	}
}
