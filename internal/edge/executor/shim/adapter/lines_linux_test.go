package adapter

import (
	"encoding/json"
	"errors"
	"fmt"
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

// TestMain lets the test binary be the adapter.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		os.Exit(Main(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// patience bounds a wait for what must come.
const patience = time.Minute

// world is a piece of a job of lines.
type world struct {
	*testing.T
	dir      string
	s        Settings
	from, to int64
}

// worldOf has an input of text, of which lines from to to are the piece.
func worldOf(t *testing.T, text string, from, to int64) *world {
	w := &world{T: t, dir: t.TempDir(), from: from, to: to, s: Settings{Grace: 20 * time.Second}}
	w.s.Root, w.s.Lines.Input = w.dir, "input"
	if err := errors.Join(os.WriteFile(filepath.Join(w.dir, "input"), []byte(text), 0o600), os.Mkdir(filepath.Join(w.dir, "output"), 0o700),
		os.Mkdir(filepath.Join(w.dir, "progress"), 0o700)); err != nil {
		t.Fatal(err)
	}
	return w
}

// numbers are lines 0 to n-1.
func numbers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintln(&b, i)
	}
	return b.String()
}

// command is the adapter's process for a command.
func (w *world) command(argv ...string) (*exec.Cmd, words) {
	w.Helper()
	self, err := os.Executable()
	if err != nil {
		w.Fatal(err)
	}
	program, err := exec.LookPath(argv[0])
	if err != nil {
		program = argv[0]
	}
	args, err := w.s.Arguments(program, argv)
	if err != nil {
		w.Fatal(err)
	}
	said := words(filepath.Join(w.dir, "stderr"))
	f, err := os.Create(string(said))
	if err != nil {
		w.Fatal(err)
	}
	c := &exec.Cmd{Path: self, Args: args, Stderr: f, Dir: w.dir, SysProcAttr: &syscall.SysProcAttr{Setpgid: true}}
	c.Env = append(os.Environ(),
		"SLUICE_FROM="+strconv.FormatInt(w.from, 10), "SLUICE_TO="+strconv.FormatInt(w.to, 10),
		"SLUICE_OUTPUT_DIR="+filepath.Join(w.dir, "output"),
		"SLUICE_PROGRESS_FILE="+filepath.Join(w.dir, "progress", "progress.json"))
	w.Cleanup(func() {
		_ = f.Close()
		if c.Process != nil {
			_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what its command leaves, as a supervisor does
		}
	})
	return c, said
}

// words are what a process said, by the path of a file.
type words string

func (w words) String() string {
	data, err := os.ReadFile(string(w))
	return string(data) + fmt.Sprint(err)
}

// progress is what the progress file says, as the supervisor reads it; the piece's beginning where there is none.
func (w *world) progress() int64 {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "progress", "progress.json"))
	if errors.Is(err, os.ErrNotExist) {
		return w.from
	}
	var p shim.Progress
	if err = errors.Join(err, json.Unmarshal(data, &p)); err != nil {
		w.Fatal(err)
	}
	return p.Progress
}

// answers are the lines that count, in one text.
func (w *world) answers() string {
	w.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir, "output", Answers))
	if err != nil {
		w.Fatal(err)
	}
	n := int(w.progress() - w.from)
	list := strings.SplitAfterN(string(data), "\n", n+1)
	if len(list) < n {
		w.Fatalf("progress of %d lines, and answers %q", n, data)
	}
	return strings.Join(list[:n], "")
}

// await waits for progress.
func (w *world) await(least int64) {
	w.Helper()
	for until := time.Now().Add(patience); w.progress() < least; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			w.Fatalf("progress %d, want %d", w.progress(), least)
		}
	}
}

// TestWhatCounts: what counts of a piece by how its command ends.
func TestWhatCounts(t *testing.T) {
	each := func(body string) []string { return []string{"sh", "-c", "while read x; do " + body + "; done"} }
	for name, c := range map[string]struct {
		argv []string
		// status of the piece, up to where it counts, and a word of what is said.
		status int
		to     int64
		says   string
	}{
		"answers as it reads":        {[]string{"cat"}, 0, 20, ""},
		"answers at the end":         {[]string{"sh", "-c", `x=$(cat); echo "$x"`}, 0, 20, ""},
		"no end of the last line":    {[]string{"sh", "-c", `printf %s "$(cat)"`}, 0, 20, ""},
		"one too many":               {[]string{"sh", "-c", "cat; echo more"}, 1, 10, "wrote 11 lines for 10 that it read"},
		"many too many":              {[]string{"sh", "-c", "cat; exec yes"}, 1, 10, "none counts"},
		"one too few":                {[]string{"sed", "1d"}, 1, 10, "wrote 9 lines for 10 that it read"},
		"none":                       {[]string{"sh", "-c", "cat > /dev/null"}, 1, 10, "wrote 0 lines for 10"},
		"fails at a line":            {each("[ $x = 14 ] && exit 7; echo $x"), 7, 14, ""},
		"fails in mid line":          {each("[ $x = 14 ] && { printf half; exit 7; }; echo $x"), 7, 14, ""},
		"a signal at a line":         {each("[ $x = 14 ] && kill -SEGV $$; echo $x"), 128 + 11, 14, ""},
		"SIGKILL at a line":          {each("[ $x = 14 ] && kill -KILL $$; echo $x"), -1, 14, ""},
		"a word of ours":             {each("[ $x = 14 ] && exit 86; echo $x"), 1, 14, ""},
		"another word of ours":       {each("[ $x = 14 ] && exit 85; echo $x"), 1, 14, ""},
		"fails when all is answered": {[]string{"sh", "-c", "cat; exit 9"}, 0, 20, "they count"},
		"stops reading":              {[]string{"sh", "-c", "read x; echo $x; read x; echo $x"}, 1, 10, "wrote 2 lines for 10"},
		"fails before it reads":      {[]string{"sh", "-c", "echo no module >&2; exit 1"}, Unready, 10, "before it read a line"},
		"does not read":              {[]string{"true"}, Unready, 10, "gets them on stdin"},
		"answers without reading":    {[]string{"sh", "-c", "seq 10"}, Unready, 10, "gets them on stdin"},
		"writes without reading":     {[]string{"sh", "-c", "seq 11"}, Unready, 10, "gets them on stdin"},
		"is not there":               {[]string{"/nothing/there"}, Unready, 10, "no such file"},
		"leaves somebody behind":     {[]string{"sh", "-c", "sleep 20 2> /dev/null & cat"}, 0, 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(t, numbers(30), 10, 20)
			p, said := w.command(c.argv...)
			_ = p.Run()
			if got := p.ProcessState.ExitCode(); got != c.status {
				t.Errorf("status %d, want %d; it says %s", got, c.status, said)
			}
			if got := w.progress(); got != c.to {
				t.Errorf("progress %d, want %d; it says %s", got, c.to, said)
			}
			if !strings.Contains(said.String(), c.says) {
				t.Errorf("it says %q, want %q", said, c.says)
			}
			if c.argv[0] == "/nothing/there" {
				return
			}
			if got, want := w.answers(), strings.Join(strings.SplitAfter(numbers(30), "\n")[10:c.to], ""); got != want {
				t.Errorf("answers %q, want %q", got, want)
			}
		})
	}
}

// TestHeaders: a header goes to every piece, and the command may write one too.
func TestHeaders(t *testing.T) {
	for name, c := range map[string]struct {
		argv   []string
		writes bool
		status int
		want   string
		says   string
	}{
		"read":             {[]string{"awk", `NR > 1 {print $0 "!"}`}, false, 0, "3,4!\n", ""},
		"read and written": {[]string{"cat"}, true, 0, "a,b\n3,4\n", ""},
		"not told":         {[]string{"cat"}, false, 1, "a,b\n3,4\n", "answersHeader: true"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(t, "a,b\n\"1\n\",2\n\n3,4\n5,6\n", 1, 2)
			w.s.Lines.Format, w.s.Lines.Header, w.s.Lines.AnswersHeader = job.CSV, true, c.writes
			p, said := w.command(c.argv...)
			_ = p.Run()
			data, err := os.ReadFile(filepath.Join(w.dir, "output", Answers))
			if got := p.ProcessState.ExitCode(); err != nil || got != c.status || string(data) != c.want ||
				!strings.Contains(said.String(), c.says) {
				t.Errorf("status %d, answers %q %v, says %q", got, data, err, said)
			}
		})
	}
}

// TestCut: a piece that is asked to end gives its command no more lines, has it answer those that it has, and keeps them.
func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		grace time.Duration
	}{
		"answers as it reads": {"while read x; do sleep 0.02; echo $x; done", patience},
		"answers at the end":  {"while read x; do a=\"$a$x\n\"; sleep 0.02; done; printf %s \"$a\"", patience},
		"hears SIGTERM only":  {"trap 'exit 0' TERM; while read x; do echo $x; done; while :; do sleep 0.05; done", 4 * time.Second},
		"does not end":        {"trap '' TERM; while read x; do echo $x; done; while :; do sleep 0.05; done", 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.ReplaceAll(numbers(10_000), "\n", strings.Repeat(".", 200)+"\n") // few fit into a pipe
			w := worldOf(t, text, 10, 10_000)
			w.s.Grace = c.grace
			p, said := w.command("sh", "-c", c.body)
			if err := p.Start(); err != nil {
				t.Fatal(err)
			}
			if name == "answers at the end" {
				time.Sleep(500 * time.Millisecond) // whatever it has read by then
			} else {
				w.await(12)
			}
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = p.Wait()
			if got := p.ProcessState.ExitCode(); got != yield {
				t.Errorf("status %d, want %d; it says %s", got, yield, said)
			}
			to := w.progress()
			if got, want := w.answers(), strings.Join(strings.SplitAfter(text, "\n")[10:to], ""); got != want {
				t.Errorf("up to %d: answers of %d bytes, want %d", to, len(got), len(want))
			}
			if to == 10 && name != "answers at the end" || to == 10_000 {
				t.Errorf("progress %d", to)
			}
		})
	}
}

// TestAKillKeepsAnswers: of an adapter that is killed what the progress file says is there.
func TestAKillKeepsAnswers(t *testing.T) {
	t.Parallel()
	w := worldOf(t, numbers(1_000_000), 0, 1_000_000)
	p, _ := w.command("sh", "-c", "while read x; do echo $x; done")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	w.await(100)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait()
	to := w.progress()
	if got, want := w.answers(), strings.Join(strings.SplitAfter(numbers(int(to)), "\n")[:to], ""); got != want {
		t.Errorf("up to %d: answers of %d bytes, want %d", to, len(got), len(want))
	}
}

// TestInputs: an input that is not what was counted is no fault of any line.
func TestInputs(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*world)
		to     int64
		says   string
	}{
		"is not there": {func(w *world) { w.s.Lines.Input = "other" }, 10, "no such file"},
		"is shorter":   {func(w *world) { w.to = 40 }, 30, "has 30 lines, and the job's total is more"},
		"has no index": {func(w *world) { w.s.Lines.Index = "index" }, 10, "the index of the input's lines"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldOf(t, numbers(30), 10, 20)
			c.change(w)
			p, said := w.command("cat")
			_ = p.Run()
			if got := p.ProcessState.ExitCode(); got != Unready || w.progress() != c.to || !strings.Contains(said.String(), c.says) {
				t.Errorf("status %d, progress %d, says %q; want %d, %d, %q", got, w.progress(), said, Unready, c.to, c.says)
			}
		})
	}
}

// TestNoRoomForAnswers: a disk without room is no line's fault, and the command is not kept at lines of which nothing counts.
func TestNoRoomForAnswers(t *testing.T) {
	t.Parallel()
	w := worldOf(t, numbers(1000), 10, 1000)
	if err := os.Symlink("/dev/full", filepath.Join(w.dir, "output", Answers)); err != nil {
		t.Fatal(err)
	}
	p, said := w.command("sh", "-c", "head -n 1; exec sleep 1000")
	_ = p.Run()
	if got := p.ProcessState.ExitCode(); got != NoRoom || !strings.Contains(said.String(), "no space left") {
		t.Errorf("status %d, want %d; it says %s", got, NoRoom, said)
	}
	if to := w.progress(); to != 10 {
		t.Errorf("progress %d of answers that are nowhere", to)
	}
}
