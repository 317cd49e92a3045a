package slurm_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/slurm"
	"sluice.dev/sluice/internal/edge/provider/slurm/slurmtest"
)

// node is a place where a pilot's script runs as slurmd would run it, with a program that stands for sluice.
type node struct {
	*testing.T
	scratch, seen string
	cmd           *exec.Cmd
	out           bytes.Buffer
	ended         chan error
}

// sluice writes down its arguments and its token, and then does what a test has put into do. It leaves a process of a session of its own,
// as a daemon that dies leaves its supervisors.
const sluice = `#!/bin/bash
printf '%%s\n' "$@" >%[1]s/args
[ -z "${SLUICE_PILOT_TOKEN-}" ] || echo leaked >%[1]s/leaked
while [ $# -gt 0 ]; do
  case $1 in --token-file) cat "$2" >%[1]s/token; stat -c %%a "$2" >%[1]s/mode ;; --data) data=$2 ;; esac
  shift
done
trap 'echo told >>%[1]s/told; exit 0' TERM
(trap '' TERM; exec setsid env SLUICE_OUTPUT_DIR="$data/output" sleep 600) &
for i in {1..600}; do [ -s %[1]s/left ] && break; echo $! >%[1]s/left; done
echo up >%[1]s/up
%[2]s
`

// run starts the script of pilot-1, by the options that change makes.
func run(t *testing.T, do string, change func(*slurm.Options), env ...string) *node {
	t.Helper()
	host := slurmtest.New(t)
	n := &node{T: t, scratch: t.TempDir(), seen: t.TempDir(), ended: make(chan error, 1)}
	program := filepath.Join(n.seen, "sluice")
	if err := os.WriteFile(program, fmt.Appendf(nil, sluice, n.seen, do), 0o700); err != nil {
		t.Fatal(err)
	}
	o := options(host)
	o.Sluice, o.Scratch = program, n.scratch
	if change != nil {
		change(&o)
	}
	pilot := provider.Pilot{Name: "pilot-1", Length: 5 * time.Minute, Head: "head.example:7118", Token: "sluice-join-1-secret"}
	if err := open(t, o).Submit(t.Context(), pilot); err != nil {
		t.Fatal(err)
	}
	j := host.State().Jobs[0]
	if strings.Contains(j.Script+strings.Join(j.Args, " "), pilot.Token) {
		t.Fatal("the token is in the script or the arguments")
	}
	script := filepath.Join(n.seen, "slurm_script")
	if err := os.WriteFile(script, []byte(j.Script), 0o700); err != nil {
		t.Fatal(err)
	}
	n.cmd = exec.Command(script)
	n.cmd.Dir, n.cmd.Stdout, n.cmd.Stderr = "/", &n.out, &n.out
	n.cmd.Env = append([]string{"SLURM_JOB_ID=7", "SLURM_JOB_NAME=" + j.Name, "PATH=" + host.Bin + ":/usr/bin:/bin"}, env...)
	for _, e := range j.Env {
		if o.Dir == "" && strings.HasPrefix(e, "SLUICE_PILOT_TOKEN=") {
			n.cmd.Env = append(n.cmd.Env, e)
		}
	}
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	n.start()
	return n
}

func (n *node) start() {
	n.Helper()
	if err := n.cmd.Start(); err != nil {
		n.Fatal(err)
	}
	n.Cleanup(func() { _ = syscall.Kill(-n.cmd.Process.Pid, syscall.SIGKILL) })
	go func() { n.ended <- n.cmd.Wait() }()
}

// ends is the script's exit code.
func (n *node) ends() int {
	n.Helper()
	select {
	case <-n.ended:
	case <-time.After(time.Minute):
		n.Fatalf("the script goes on: %s", n.out.String())
	}
	return n.cmd.ProcessState.ExitCode()
}

// read is what sluice has left under a name, waited for.
func (n *node) read(name string) string {
	n.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if text, err := os.ReadFile(filepath.Join(n.seen, name)); err == nil && len(text) > 0 {
			return strings.TrimSpace(string(text))
		}
	}
	n.Fatalf("sluice left no %s: %s", name, n.out.String())
	return ""
}

// gone fails if a process or a folder of the pilot is left.
func (n *node) gone() {
	n.Helper()
	var pid int
	if _, err := fmt.Sscan(n.read("left"), &pid); err != nil {
		n.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) {
			break
		}
		if time.Now().After(deadline) {
			n.Errorf("a process of the pilot is left: %s", stat)
			break
		}
	}
	if left, err := filepath.Glob(filepath.Join(n.scratch, "*")); err != nil || len(left) > 0 {
		n.Errorf("left in scratch: %v, %v", left, err)
	}
}

func TestAPilotJoinsAndLeavesNothing(t *testing.T) {
	n := run(t, "exit 0", func(o *slurm.Options) { o.Grace, o.Ownerless = 50*time.Second, time.Minute })
	if code := n.ends(); code != 0 {
		t.Fatalf("ended with %d: %s", code, n.out.String())
	}
	args := strings.Split(n.read("args"), "\n")
	if len(args) < 9 {
		t.Fatal(args)
	}
	data := args[7]
	want := []string{"join", "head.example:7118", "--token-file", filepath.Join(filepath.Dir(data), "token"), "--name", "pilot-1", "--data",
		data, "--listen", "127.0.0.1:0", "--gpus", "nvml", "--ephemeral", "--until", args[14], "--grace", "50s",
		"--ownerless", "1m0s"}
	if strings.Join(args, " ") != strings.Join(want, " ") || !strings.HasPrefix(data, n.scratch+"/sluice-aaaa1111.") {
		t.Errorf("called with %q, want %q", args, want)
	}
	// The cluster's squeue does not know -j here: what is left of the length.
	if left, err := time.ParseDuration(args[14]); err != nil || left > 295*time.Second || left < 200*time.Second {
		t.Errorf("until %s, want what is left of five minutes", args[14])
	}
	if token, mode := n.read("token"), n.read("mode"); token != "sluice-join-1-secret" || mode != "600" {
		t.Errorf("token %q in a file of mode %s", token, mode)
	}
	if _, err := os.Stat(filepath.Join(n.seen, "leaked")); err == nil {
		t.Error("the token is in sluice's environment")
	}
	n.gone()
}

func TestAPilotHasItsEndFromSlurm(t *testing.T) {
	bin := t.TempDir()
	text := "#!/bin/sh\n[ \"$*\" = '-h -j 7 -o %e' ] && [ \"$TZ\" = UTC ] && echo 2031-01-02T03:04:05\n"
	if err := os.WriteFile(filepath.Join(bin, "squeue"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	n := run(t, "exit 0", nil, "PATH="+bin+":/usr/bin:/bin", "TZ=Asia/Tokyo")
	n.ends()
	if args := n.read("args"); !strings.Contains(args, "\n2031-01-02T03:04:05Z") {
		t.Errorf("called with %q", args)
	}
}

func TestAPilotPassesSignalsOn(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGUSR1} {
		n := run(t, "while :; do sleep 0.02; done", nil)
		n.read("up")
		if err := n.cmd.Process.Signal(signal); err != nil { // the script alone, as --signal=B: does
			t.Fatal(err)
		}
		if code := n.ends(); code != 0 || n.read("told") != "told" {
			t.Errorf("%v: ended with %d: %s", signal, code, n.out.String())
		}
		n.gone()
	}
}

// Slurm signals each process of a job that is over, so its daemon may end before its script passes that on.
func TestAPilotWhoseProcessesAreAllTold(t *testing.T) {
	for range 20 {
		n := run(t, "while :; do sleep 0.02; done", nil)
		n.read("up")
		if err := syscall.Kill(-n.cmd.Process.Pid, syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := n.ends(); code != 0 {
			t.Errorf("ended with %d: %s", code, n.out.String())
		}
		n.gone()
	}
}

// A process shows neither arguments nor environment for a moment as it becomes another program: one look that finds nothing is not enough.
func TestAPilotLooksTwiceForWhatIsLeft(t *testing.T) {
	real, err := exec.LookPath("grep")
	if err != nil {
		t.Skip(err)
	}
	bin := t.TempDir()
	text := fmt.Sprintf("#!/bin/sh\n[ -e %[1]s/looked ] && exec %[2]s \"$@\"\n: >%[1]s/looked\nexit 1\n", bin, real)
	if err := os.WriteFile(filepath.Join(bin, "grep"), []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	n := run(t, "exit 0", nil, "PATH="+bin+":/usr/bin:/bin")
	if code := n.ends(); code != 0 {
		t.Fatalf("ended with %d: %s", code, n.out.String())
	}
	if _, err := os.Stat(filepath.Join(bin, "looked")); err != nil {
		t.Errorf("the test tests nothing: %v", err)
	}
	n.gone()
}

func TestAPilotThatFailsSaysWhy(t *testing.T) {
	dir := t.TempDir()
	n := run(t, "echo no head there >&2; exit 3", func(o *slurm.Options) { o.Dir = dir })
	if code := n.ends(); code != 3 {
		t.Errorf("ended with %d: %s", code, n.out.String())
	}
	if token := n.read("token"); token != "sluice-join-1-secret" {
		t.Errorf("token %q", token)
	}
	if _, err := os.Stat(filepath.Join(dir, "pilots", "sluice.aaaa1111.pool.pilot-1.token")); !os.IsNotExist(err) {
		t.Errorf("%v: want no token left that was used", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pilots", "sluice.aaaa1111.pool.pilot-1.log"))
	if err != nil || !strings.Contains(string(text), "no head there") {
		t.Errorf("%q, %v: want the end of its log", text, err)
	}
	n.gone()
}

// One whose head was silent is no failure, and still says why it has left.
func TestAPilotWithoutItsHeadSaysWhy(t *testing.T) {
	dir := t.TempDir()
	n := run(t, "echo it has left as nothing was heard of its head for 1m0s >&2; exit 0", func(o *slurm.Options) { o.Dir = dir })
	if code := n.ends(); code != 0 {
		t.Errorf("ended with %d: %s", code, n.out.String())
	}
	text, err := os.ReadFile(filepath.Join(dir, "pilots", "sluice.aaaa1111.pool.pilot-1.log"))
	if err != nil || !strings.Contains(string(text), "nothing was heard") {
		t.Errorf("%q, %v: want the end of its log", text, err)
	}
	n.gone()
}

// Where a pilot has no room for its own log, why it failed is said beside its token.
func TestAPilotWithoutRoomSaysWhy(t *testing.T) {
	for name, c := range map[string]struct{ scratch, want string }{
		"none": {"/nonexistent/folder", "no folder can be made in /nonexistent/folder"},
		"full": {"", "nothing can be written to "},
	} {
		dir := t.TempDir()
		n := run(t, "exit 0", func(o *slurm.Options) {
			if o.Dir = dir; c.scratch != "" {
				o.Scratch = c.scratch
				return
			}
			// A full disk in the place of the folder's files: whatever is written there finds no room.
			bin := filepath.Join(dir, "bin")
			mktemp := "#!/bin/bash\nd=$(/usr/bin/mktemp \"$@\") || exit; ln -s /dev/full \"$d/pilot\"; echo \"$d\"\n"
			if err := errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "mktemp"), []byte(mktemp), 0o700)); err != nil {
				t.Fatal(err)
			}
		}, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		if code := n.ends(); code == 0 {
			t.Errorf("%s: it ended with 0", name)
		}
		text, err := os.ReadFile(filepath.Join(dir, "pilots", "sluice.aaaa1111.pool.pilot-1.log"))
		if err != nil || !strings.Contains(string(text), c.want) {
			t.Errorf("%s: %q, %v: want %q", name, text, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(n.seen, "args")); err == nil {
			t.Errorf("%s: it joined", name)
		}
	}
}

func TestWhatComesBeforeAPilot(t *testing.T) {
	wrap := func(o *slurm.Options) {
		o.Before = []string{"export SET=\"a 'b'\"", "true # all is well"}
		o.Within = []string{"env", "INSIDE=it's"}
	}
	n := run(t, `printf '%s,%s' "$SET" "$INSIDE" >$(dirname "$0")/env; exit 0`, wrap)
	if code := n.ends(); code != 0 || n.read("env") != "a 'b',it's" {
		t.Errorf("ended with %d, %q: %s", code, n.read("env"), n.out.String())
	}
	dir := t.TempDir()
	n = run(t, "exit 0", func(o *slurm.Options) { o.Before, o.Dir = []string{"module load nothing", "true"}, dir })
	if code := n.ends(); code == 0 {
		t.Error("it went on after a command that failed")
	}
	text, err := os.ReadFile(filepath.Join(dir, "pilots", "sluice.aaaa1111.pool.pilot-1.log"))
	if err != nil || !strings.Contains(string(text), "failed: module load nothing") {
		t.Errorf("%q, %v: want it to say what failed", text, err)
	}
}

func TestAPilotRunsAsItsJobAlone(t *testing.T) {
	for _, env := range []string{"SLURM_JOB_NAME=other", "SLURM_JOB_ID=", "SLURM_RESTART_COUNT=1"} {
		n := run(t, "exit 0", nil, env)
		if code := n.ends(); code == 0 {
			t.Errorf("%s: it ran", env)
		}
		if _, err := os.Stat(filepath.Join(n.seen, "args")); err == nil {
			t.Errorf("%s: it joined", env)
		}
	}
}

// A pilot whose script was killed leaves processes and its folder. The next one on that node ends and removes them, and nothing of those
// that live, nor of another daemon's.
func TestAPilotClearsUpAfterOthers(t *testing.T) {
	dead := run(t, "while :; do sleep 0.02; done", nil)
	dead.read("up")
	if err := dead.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	dead.ends()
	stranger := filepath.Join(dead.scratch, "sluice-bbbb2222.abcdefghij")
	young := filepath.Join(dead.scratch, "sluice-aaaa1111.abcdefghij")
	for _, dir := range []string{stranger, young} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	alive := run(t, "while :; do sleep 0.02; done", func(o *slurm.Options) { o.Scratch = dead.scratch })
	alive.read("up")
	next := run(t, "exit 0", func(o *slurm.Options) { o.Scratch = dead.scratch })
	if code := next.ends(); code != 0 {
		t.Errorf("ended with %d: %s", code, next.out.String())
	}
	if err := alive.cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Error("it ended a pilot that lives")
	}
	if err := alive.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := alive.ends(); code != 0 || alive.read("told") == "" {
		t.Errorf("the one that lived ended with %d: %s", code, alive.out.String())
	}
	for _, dir := range []string{stranger, young} {
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	}
	dead.gone()
}
