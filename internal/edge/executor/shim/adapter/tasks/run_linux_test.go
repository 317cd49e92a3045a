package tasks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter/contract"
)

const (
	settingsEnv = "TASKS_TEST_SETTINGS"
	unready     = 86
)

// TestMain plays the adapter where it is started as one.
func TestMain(m *testing.M) {
	if text := os.Getenv(settingsEnv); text != "" {
		var s Settings
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			panic(err)
		}
		os.Exit(Main(s, unready, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// subjob is one run of the adapter.
type subjob struct {
	t              *testing.T
	dir            string
	cmd            *exec.Cmd
	stdout, stderr bytes.Buffer
}

func start(t *testing.T, s Settings, from, to int, command ...string) *subjob {
	t.Helper()
	j := &subjob{t: t, dir: t.TempDir()}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(j.path("out"), 0o700); err != nil {
		t.Fatal(err)
	}
	j.cmd = exec.Command(os.Args[0], command...)
	j.cmd.Dir, j.cmd.Stdout, j.cmd.Stderr = j.dir, &j.stdout, &j.stderr
	j.cmd.Env = append(os.Environ(), settingsEnv+"="+string(text), "SLUICE_JOB=job", fmt.Sprint("SLUICE_FROM=", from),
		fmt.Sprint("SLUICE_TO=", to),
		"SLUICE_OUTPUT_DIR="+j.path("out"), "SLUICE_PROGRESS_FILE="+j.path("progress"))
	j.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if s.Trials != nil {
		f, err := os.Create(j.path(s.Trials.Table))
		if err == nil {
			err = errors.Join(WriteTable(f, []string{"lr", "seed"}, [][]string{{"1e-3", "0"}, {"3e-4", "0"}, {"a b'\"", "1"}}), f.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := j.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return j
}

func (j *subjob) path(name string) string { return filepath.Join(j.dir, name) }

// wait is the exit status of the adapter, or minus the signal that ended it.
func (j *subjob) wait() int {
	j.t.Helper()
	var exit *exec.ExitError
	if err := j.cmd.Wait(); err != nil && !errors.As(err, &exit) {
		j.t.Fatal(err)
	}
	status := j.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return -int(status.Signal())
	}
	return status.ExitStatus()
}

// said is the content of a file, "" if there is none.
func (j *subjob) said(name string) string {
	j.t.Helper()
	data, err := os.ReadFile(j.path(name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		j.t.Fatal(err)
	}
	return string(data)
}

// left are all files of the output, with the folders that are empty.
func (j *subjob) left() (list []string) {
	j.t.Helper()
	err := filepath.WalkDir(j.path("out"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(j.path("out"), path)
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		j.t.Fatal(err)
	}
	return list
}

func (j *subjob) records() (out []string) {
	j.t.Helper()
	list, err := ReadRecords(strings.NewReader(j.said("out/"+RecordFile)), 0, 1<<40)
	if err != nil {
		j.t.Fatal(err)
	}
	for _, r := range list {
		out = append(out, fmt.Sprintf("%d:%d", r.Unit, r.Exit))
	}
	return out
}

// until waits for a file to hold something.
func (j *subjob) until(name string) {
	j.t.Helper()
	for end := time.Now().Add(time.Minute); j.said(name) == ""; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			j.t.Fatalf("nothing in %s: %s%s", name, &j.stdout, &j.stderr)
		}
	}
}

func TestEachTaskHasItsOwn(t *testing.T) {
	t.Parallel()
	j := start(t, Settings{Array: &Array{Indices: "3,5-9:2,20", Name: "My Job"}}, 1, 4, "sh", "-c",
		`a=$SLURM_ARRAY_TASK_MIN-$SLURM_ARRAY_TASK_MAX
echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID $a $SLURM_ARRAY_TASK_COUNT $SLURM_ARRAY_TASK_STEP"
echo "$SLURM_JOB_ID $SLURM_JOB_NAME $SLUICE_FROM-$SLUICE_TO" >&2; [ "$SLURM_SUBMIT_DIR" = "$PWD" ] || echo "$SLURM_SUBMIT_DIR"
[ $SLUICE_FROM = 1 ] || echo x > "$SLUICE_OUTPUT_DIR/x"`)
	if status := j.wait(); status != 0 || j.said("progress") != `{"progress": 4, "idle": 0}` {
		t.Fatalf("exit %d, progress %q: %s", status, j.said("progress"), &j.stderr)
	}
	if got, want := j.left(), []string{"slurm-job_5.out", "slurm-job_7.out", "slurm-job_9.out", "task-7/x", "task-9/x",
		RecordFile}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := j.said("out/slurm-job_7.out"); got != "job 7 3-20 5 1\njob_7 My Job 2-3\n" {
		t.Errorf("%q", got)
	}
	if got := j.records(); !slices.Equal(got, []string{"1:0", "2:0", "3:0"}) {
		t.Errorf("%q", got)
	}
	if !strings.Contains(j.stdout.String(), "job 9 3-20 5 1") {
		t.Errorf("the log says %q", &j.stdout)
	}
}

func TestFailuresAreKept(t *testing.T) {
	t.Parallel()
	const fails = `case $SLURM_ARRAY_TASK_ID in 1) echo bad >&2; exit 3;; 2) kill -SEGV $$;; esac`
	j := start(t, Settings{Keep: true, Array: &Array{Indices: "0-3", Output: "%a/%x", Error: "%a/e"}}, 0, 4, "sh", "-c", fails)
	if status := j.wait(); status != 0 || j.said("progress") != `{"progress": 4, "idle": 0}` {
		t.Fatalf("exit %d: %s", status, &j.stderr)
	}
	if got := j.records(); !slices.Equal(got, []string{"0:0", "1:3", "2:-1", "3:0"}) {
		t.Errorf("%q", got)
	}
	if j.said("out/1/e") != "bad\n" || j.said("out/1/job") != "" {
		t.Errorf("%q", j.left())
	}

	j = start(t, Settings{Array: &Array{Indices: "0-3"}}, 0, 4, "sh", "-c", fails)
	if status := j.wait(); status != 3 || j.said("progress") != `{"progress": 1, "idle": 0}` || !strings.Contains(j.stderr.String(),
		"bad\nsluice: task 1: exit 3") {
		t.Errorf("exit %d, %q: %s", status, j.said("progress"), &j.stderr)
	}
	if got := j.left(); !slices.Equal(got, []string{"slurm-job_0.out", RecordFile}) {
		t.Errorf("%q", got)
	}

	// Statuses that mean something to Sluice mean nothing of a command that doesn't know it.
	j = start(t, Settings{Array: &Array{Indices: "0"}}, 0, 1, "sh", "-c", "exit 85")
	if status := j.wait(); status != 1 {
		t.Errorf("exit %d: %s", status, &j.stderr)
	}

	j = start(t, Settings{Keep: true, Array: &Array{Indices: "0"}}, 0, 1, "/no/such/program")
	if status := j.wait(); status != unready || !strings.Contains(j.stderr.String(), "/no/such/program") {
		t.Errorf("exit %d: %s", status, &j.stderr)
	}
}

// TestKilledTasks: a task that is killed behind others is tried again by the next subjob, as its first. There it is run once more, and what
// kills it then is its end, so that the tasks behind it run.
func TestKilledTasks(t *testing.T) {
	t.Parallel()
	const killed = `echo $SLURM_ARRAY_TASK_ID >> tries; [ $SLURM_ARRAY_TASK_ID != 1 ] || kill -9 $$`
	array := Settings{Keep: true, Array: &Array{Indices: "0-3"}}
	j := start(t, array, 0, 4, "sh", "-c", killed)
	if status := j.wait(); status != -9 || j.said("progress") != `{"progress": 1, "idle": 0}` || j.said("tries") != "0\n1\n" {
		t.Errorf("exit %d, %q, tries %q: %s", status, j.said("progress"), j.said("tries"), &j.stderr)
	}

	j = start(t, array, 1, 4, "sh", "-c", killed)
	if status := j.wait(); status != 0 || j.said("tries") != "1\n1\n2\n3\n" {
		t.Errorf("exit %d, tries %q: %s", status, j.said("tries"), &j.stderr)
	}
	var said shim.Progress
	if err := json.Unmarshal([]byte(j.said("progress")), &said); err != nil || said.Progress != 4 || said.Idle < resting {
		t.Errorf("it reports %+v, %v; want 4, and that it rested for %v, which no task has cost", said, err, resting)
	}
	list, err := ReadRecords(strings.NewReader(j.said("out/"+RecordFile)), 1, 4)
	if err != nil || len(list) != 3 || list[0].Signal != 9 || list[1].Failed() || list[2].Failed() {
		t.Fatalf("%+v, %v", list, err)
	}
	if said := list[0].Said(); !strings.Contains(said, "signal 9 (killed)") || !strings.Contains(said, "want of memory") {
		t.Errorf("it says %q", said)
	}
	if said := j.stderr.String(); strings.Count(said, "task 1: ") != 2 || !strings.Contains(said, "is run once more") {
		t.Errorf("the log says %q", said)
	}

	// With fail the subjob ends as the task did, at once.
	j = start(t, Settings{Array: &Array{Indices: "0-3"}}, 1, 4, "sh", "-c", killed)
	if status := j.wait(); status != -9 || j.said("progress") != "" || j.said("tries") != "1\n" {
		t.Errorf("exit %d, %q, tries %q: %s", status, j.said("progress"), j.said("tries"), &j.stderr)
	}
}

// TestKilledOnce: the second run of a task finds nothing of what the first has left, and its end is the task's.
func TestKilledOnce(t *testing.T) {
	t.Parallel()
	j := start(t, Settings{Keep: true, Trials: &Trials{Table: "table"}}, 0, 2, "sh", "-c",
		`n=first; [ ! -e seen ] || n=second; echo $n; echo x > "$SLUICE_OUTPUT_DIR/$n"; echo '{"metric": 1}' >> "$SLUICE_METRICS_FILE"
[ -e seen ] || { echo > seen; kill -9 $$; }`)
	if status := j.wait(); status != 0 || !slices.Equal(j.records(), []string{"0:0", "1:0"}) {
		t.Fatalf("exit %d, %q: %s", status, j.records(), &j.stderr)
	}
	if got, want := j.left(), []string{RecordFile, "trial-0/second", "trial-0.metrics.jsonl", "trial-0.out", "trial-1/second",
		"trial-1.metrics.jsonl", "trial-1.out"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if j.said("out/trial-0.out") != "second\n" || strings.Count(j.said("out/trial-0.metrics.jsonl"), "metric") != 1 {
		t.Errorf("%q, %q", j.said("out/trial-0.out"), j.said("out/trial-0.metrics.jsonl"))
	}
}

// TestCutWhileItRests: a subjob that is told to end between the two runs of a killed task gives the task back.
func TestCutWhileItRests(t *testing.T) {
	t.Parallel()
	j := start(t, Settings{Keep: true, Grace: time.Minute, Array: &Array{Indices: "0-1"}}, 0, 2, "sh", "-c",
		`kill -TERM $PPID; kill -9 $$`)
	if status := j.wait(); status != yielded || j.said("progress") != "" || len(j.left()) != 0 {
		t.Errorf("exit %d, %q, %q: %s", status, j.said("progress"), j.left(), &j.stderr)
	}
}

func TestTaskThatRunsTooLong(t *testing.T) {
	t.Parallel()
	j := start(t, Settings{Keep: true, Array: &Array{Indices: "0-1", Limit: time.Second}}, 0, 2, "sh", "-c",
		`[ $SLURM_ARRAY_TASK_ID = 1 ] || sleep 600; echo done`)
	if status := j.wait(); status != 0 {
		t.Fatalf("exit %d: %s", status, &j.stderr)
	}
	list, err := ReadRecords(strings.NewReader(j.said("out/"+RecordFile)), 0, 2)
	if err != nil || len(list) != 2 || !list[0].Timeout || list[1].Timeout || list[0].Signal != 15 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestAskedToEnd: what has ended counts; the task that was stopped does not, whatever its exit status.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()
	for _, trap := range []string{"exit 0", "exit 7", ""} { // the last does not heed it
		j := start(t, Settings{Keep: true, Grace: 2 * time.Second, Array: &Array{Indices: "0-9"}}, 0, 10, "sh", "-c",
			`[ $SLURM_ARRAY_TASK_ID -lt 2 ] && exit; trap '`+trap+`' TERM; echo x > there; sleep 600 & wait`)
		j.until("there")
		if err := j.cmd.Process.Signal(syscall.SIGTERM); err != nil { // the supervisor asks the adapter alone
			t.Fatal(err)
		}
		if status := j.wait(); status != yielded || j.said("progress") != `{"progress": 2, "idle": 0}` {
			t.Errorf("%s: exit %d, %q: %s", trap, status, j.said("progress"), &j.stderr)
		}
		if got := j.left(); !slices.Equal(got, []string{"slurm-job_0.out", "slurm-job_1.out", RecordFile}) {
			t.Errorf("%s: %q", trap, got)
		}
	}
}

// TestWarningsAreTheCommands: a signal that a job asks for does not end the adapter.
func TestWarningsAreTheCommands(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
		syscall.SIGCONT, syscall.SIGURG, syscall.SIGWINCH} {
		j := start(t, Settings{Array: &Array{Indices: "0"}}, 0, 1, "sh", "-c",
			`trap 'echo caught; exit 0' INT; echo x > there; until [ -e go ]; do sleep 0.01; done`)
		j.until("there")
		if err := j.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(j.path("go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if status := j.wait(); status != 0 {
			t.Errorf("%v: exit %d: %s", s, status, &j.stderr)
		}
	}
}

// TestNothingIsLeftRunning: what a task has left in the background ends with it, also where it holds on to its pipe.
func TestNothingIsLeftRunning(t *testing.T) {
	t.Parallel()
	j := start(t, Settings{Array: &Array{Indices: "0-1"}}, 0, 2, "sh", "-c", `sleep 613 & echo $! > left-$SLURM_ARRAY_TASK_ID`)
	if status := j.wait(); status != 0 {
		t.Fatalf("exit %d: %s", status, &j.stderr)
	}
	for _, name := range []string{"left-0", "left-1"} {
		var pid int
		if _, err := fmt.Sscan(j.said(name), &pid); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if err != nil || !strings.Contains(string(stat), "(sleep)") || strings.Contains(string(stat), ") Z ") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("process %d runs still", pid)
			}
		}
	}
}

func TestTrials(t *testing.T) {
	t.Parallel()
	j := start(t, Settings{Keep: true, Trials: &Trials{Table: "table"}}, 1, 3, "sh", "-c",
		`echo "$@" $SLUICE_TRIAL; echo '{"metric": 0.5, "step": 10}' > "$SLUICE_METRICS_FILE"
echo '{"metric": 0.25, "step": 20}' >> "$SLUICE_METRICS_FILE"`,
		"x", "--lr={lr}", "{{lr}} {nope} {seed}{seed}")
	if status := j.wait(); status != 0 {
		t.Fatalf("exit %d: %s", status, &j.stderr)
	}
	if got := j.said("out/trial-2.out"); got != "--lr=a b'\" {lr}} {nope} 11 2\n" {
		t.Errorf("%q", got)
	}
	list, err := ReadRecords(strings.NewReader(j.said("out/"+RecordFile)), 1, 3)
	if err != nil || len(list) != 2 || list[1].Metrics == nil || *list[1].Metrics.Last != 0.25 || *list[1].Metrics.Most != 0.5 ||
		*list[1].Metrics.Step != 20 || fmt.Sprint(list[0].Params) != "[{lr 3e-4} {seed 0}]" {
		t.Errorf("%+v, %v", list, err)
	}
	if got := j.left(); !slices.Equal(got, []string{RecordFile, "trial-1.metrics.jsonl", "trial-1.out", "trial-2.metrics.jsonl",
		"trial-2.out"}) {
		t.Errorf("%q", got)
	}
	j = start(t, Settings{Trials: &Trials{Table: "table"}}, 2, 4, "true")
	if status := j.wait(); status != unready || !strings.Contains(j.stderr.String(), "ends before row 3") {
		t.Errorf("exit %d: %s", status, &j.stderr)
	}
}

// TestNoRoomForARecord: what a task has done is not known where its record has no room, and that is not its fault.
func TestNoRoomForARecord(t *testing.T) {
	j := start(t, Settings{Keep: true, Array: &Array{Indices: "0-3", Name: "n"}}, 0, 4, "sh", "-c",
		`ln -s /dev/full $SLUICE_OUTPUT_DIR/../../../tasks.jsonl`)
	if status := j.wait(); status != contract.NoRoom || j.said("progress") != "" || !strings.Contains(j.stderr.String(), "no space left") {
		t.Errorf("exit %d, progress %q: %s", status, j.said("progress"), &j.stderr)
	}
}
