package e2e

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/sdk/agent"
)

// running is an agent's process, with what it said.
type running struct {
	cmd   *exec.Cmd
	said  *logged
	ended chan struct{}
}

// python starts a Python program with the key of a job.
func (d *daemon) python(job, script string, args ...string) *running {
	d.t.Helper()
	interpreter, err := exec.LookPath("python3")
	if err != nil {
		d.t.Skip("python3 is not installed: these agents are written in it")
	}
	sdk, err := filepath.Abs(filepath.FromSlash("../../sdk/python"))
	if err != nil {
		d.t.Fatal(err)
	}
	key := strings.TrimSpace(d.must("agent", "key", job))
	a := &running{cmd: exec.Command(interpreter, append([]string{"-B", script}, args...)...), said: new(logged), ended: make(chan struct{})}
	a.cmd.Env = append(os.Environ(), "PYTHONPATH="+sdk, "SLUICE_AGENT_KEY="+key, "SLUICE_SERVER="+d.addr)
	a.cmd.Stdout, a.cmd.Stderr = a.said, a.said
	if err := a.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	go func() {
		_ = a.cmd.Wait() // how it ended is read from what it said
		close(a.ended)
	}()
	d.t.Cleanup(a.kill)
	return a
}

// agent starts the agent of testdata.
func (d *daemon) agent(job string, unit time.Duration, longest int) *running {
	d.t.Helper()
	return d.python(job, filepath.Join("testdata", "agent.py"), job, fmt.Sprint(unit.Seconds()), fmt.Sprint(longest))
}

func (a *running) kill() {
	_ = a.cmd.Process.Signal(syscall.SIGKILL) // it may be gone
	<-a.ended
}

// says waits until the agent has said something.
func (a *running) says(t *testing.T, what string) {
	t.Helper()
	until(t, fmt.Sprintf("the agent says %q; it said\n%s", what, a.said), func() bool { return strings.Contains(a.said.String(), what) })
}

const jasda = "--mechanism=jasda"

// TestPythonAgent: the example's agent, in another process and another language, wins windows and runs its job to the end, and
// what the daemon decided on the way is the same again.
func TestPythonAgent(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi", jasda)
	folder := filepath.FromSlash("../../examples/agents/frames")
	file, err := os.ReadFile(filepath.Join(folder, "job.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"frames.sh", "check.sh"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		d.write(name, string(text))
	}
	d.must("submit", d.write("job.yaml", strings.NewReplacer("total: 600", "total: 300", `PACE: "0.2"`, `PACE: "0.1"`, "grace: 1s",
		"grace: 1s\n  maxFailures: 20").Replace(string(file))))
	a := d.python("frames", filepath.Join(folder, "agent.py"))
	j := d.done("frames")
	if j.Subjobs < 2 {
		t.Errorf("%d subjobs: it did not cut", j.Subjobs)
	}
	<-a.ended
	if a.cmd.ProcessState.ExitCode() != 0 || !strings.Contains(a.said.String(), "ms a frame") {
		t.Errorf("the agent ended with %v and said\n%s", a.cmd.ProcessState, a.said)
	}
	out, err := exec.Command("sh", filepath.Join(d.dir, "check.sh"), filepath.Join(d.data, "output", "frames"), "300").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	d.end(syscall.SIGTERM)
	says(t, d.must("sim", "replay", d.data), "all equal")
}

// TestAgentDies: what it won runs and is committed without it, and another agent with the same key does the rest; also after
// the daemon was killed.
func TestAgentDies(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi", jasda)
	d.submit(spec("orphan", "external: {total: 30, perUnit: 50ms}", each("sleep 0.05"), "grace: 1s"))
	a := d.agent("orphan", 150*time.Millisecond, 10)
	d.running("orphan", 1)
	a.kill()
	d.until("what was won is committed", func() bool { return d.job("orphan").Progress == 10 })
	d.until("it is clear what is missing", func() bool {
		return strings.Contains(d.must("explain", "orphan"), "no agent of it is connected")
	})
	a = d.agent("orphan", 150*time.Millisecond, 10)
	d.until("it goes on", func() bool { return d.job("orphan").Running == 1 })
	d.kill()
	d.start()
	d.done("orphan")
	a.says(t, "over")
	says(t, a.said.String(), "log", "there is no such session")
	d.once("orphan", 30)
}

// TestTwoAgents: of two with one key the newest counts, and the other is told so.
func TestTwoAgents(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi", jasda)
	d.submit(spec("shared", "external: {total: 60, perUnit: 50ms}", each("sleep 0.05"), "grace: 1s"))
	first := d.agent("shared", 150*time.Millisecond, 5)
	first.says(t, "called")
	d.must("pause", "shared") // the first is not to be done before the second is there
	second := d.agent("shared", 150*time.Millisecond, 5)
	<-first.ended
	d.must("resume", "shared")
	says(t, first.said.String(), "Superseded")
	d.done("shared")
	second.says(t, "over")
	d.once("shared", 60)
}

// TestAgentsUnderSja: an agent of sdk/agent signals, declines when it is picked for the first time, and cuts the piece from then on;
// beside it works one in Python that knows nothing of signals. What the daemon decided on the way is the same again.
func TestAgentsUnderSja(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi")
	d.submit(spec("picky", "external: {total: 20, perUnit: 50ms}", each("sleep 0.05"), "grace: 1s") +
		spec("simple", "external: {total: 20, perUnit: 50ms}", each("sleep 0.05"), "grace: 1s"))
	d.agent("simple", 150*time.Millisecond, 10)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var mu sync.Mutex
	var asked []string
	declined := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		key := strings.TrimSpace(d.must("agent", "key", "picky"))
		served <- agent.Serve(ctx, agent.Options{Addr: d.addr, Job: "picky", Key: key}, func(c agent.Call) (out []agent.Variant) {
			mu.Lock()
			defer mu.Unlock()
			asked = append(asked, c.Wanted)
			first := slices.Index(asked, agent.Subjob) == len(asked)-1
			for _, w := range c.Windows {
				switch {
				case c.Wanted == agent.Interest:
					out = append(out, agent.Variant{Window: w.ID})
				case first:
					close(declined)
				default:
					out = append(out, agent.Variant{Window: w.ID,
						Run: 10 * time.Second, Score: 1,
						Range: agent.Range{From: c.Free[0].From, To: min(c.Free[0].To, c.Free[0].From+10)}})
				}
			}
			return out
		})
	}()
	<-declined
	d.until("it is said that it declined, and why", func() bool {
		return strings.Contains(d.must("explain", "picky"), "declined (its agent cut no piece)")
	})
	d.done("picky")
	d.done("simple")
	if err := <-served; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	d.once("picky", 20)
	d.once("simple", 20)
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(asked, agent.Bids) || !slices.Contains(asked, agent.Interest) {
		t.Errorf("it was asked for %q", asked)
	}
	d.end(syscall.SIGTERM)
	says(t, d.must("sim", "replay", d.data), "all equal")
}

// TestHostileAgents: while strangers and an agent with a key of its own send garbage, floods and endless requests, people are
// answered, and the jobs of others run as ever.
func TestHostileAgents(t *testing.T) {
	t.Parallel()
	d := up(t, "sim:custom,mem=64Mi+64Mi", jasda)
	d.submit(spec("evil", "external: {total: 1000, perUnit: 1ms}", "exit 1") + spec("flood", "external: {total: 1000, perUnit: 1ms}",
		"exit 1") +
		spec("honest", "external: {total: 40, perUnit: 50ms}", each("sleep 0.05"), "grace: 1s") +
		spec("plain", "items: {total: 40, perItem: 50ms}", each("sleep 0.05"), "grace: 1s"))
	h := &hostile{
		url: "http://" + d.addr + "/sluice.v1alpha1.SluiceService/Negotiate", stop: make(chan struct{}),
		evil: strings.TrimSpace(d.must("agent", "key", "evil")), flood: strings.TrimSpace(d.must("agent", "key", "flood")),
	}
	var done sync.WaitGroup
	for _, attack := range []func(){h.garbage, h.lies, h.sessions, h.strangers} {
		done.Go(attack)
	}
	loris := make([]net.Conn, 200)
	for i := range loris {
		c, err := net.Dial("tcp", d.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		half := "POST /sluice.v1alpha1.SluiceService/Negotiate HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
			"application/json\r\nContent-Length: 60000\r\n"
		if i%2 == 0 {
			half += "\r\n{"
		}
		if _, err := io.WriteString(c, half); err != nil {
			t.Fatal(err)
		}
	}
	d.agent("honest", 150*time.Millisecond, 10)
	d.done("honest")
	d.done("plain")
	d.once("honest", 40)
	d.once("plain", 40)
	d.must("slices")
	close(h.stop)
	done.Wait()
	if h.sent.Load() < 100 || h.answers.Load() == 0 {
		t.Errorf("%d hostile calls were made, %d rounds answered: this was no attack", h.sent.Load(), h.answers.Load())
	}
	if evil := d.job("evil"); evil.Progress != 0 {
		t.Errorf("it got %d units done with a program that always fails", evil.Progress)
	}
	if text := d.log.String(); strings.Contains(text, "panic") || strings.Contains(text, "goroutine ") {
		t.Errorf("the daemon's log:\n%s", text)
	}
	d.end(syscall.SIGTERM)
	says(t, d.must("sim", "replay", d.data), "all equal")
}
