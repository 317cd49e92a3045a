//go:build kubernetes

package soak

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/executor"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/test/kube/bucket"
)

// What tells the operator's process where it works.
const (
	operatorData      = "SLUICE_SOAK_DATA"
	operatorCluster   = "SLUICE_SOAK_KUBECONFIG"
	operatorNamespace = "SLUICE_SOAK_NAMESPACE"
	operatorName      = "SLUICE_SOAK_NAME"
	operatorStore     = "SLUICE_SOAK_STORE_ADDRESS"
)

// Of a subjob's Pod: how long it may take to store after its lease, and by how much the machines' clocks may differ, which is more than
// they do.
const (
	linger = 3 * time.Second
	skew   = 3 * time.Second
)

// ownerless is for how long Pods go on without hearing of the operator: less than it and the store are away for now and then, so that some
// yield though nobody asked them to. notices is how long they then have.
const (
	ownerless = 4 * time.Second
	notices   = 2 * time.Second
)

// yielded is the exit code of an operator that has ended because it could not go on for now: it has lost its lease, or the API server is
// away. Its Pod's container would be started again.
const yielded = 75

// serve is the operator's process, with the kinds of a real cluster: only what they wait for is shorter.
func serve() int {
	err := func() error {
		c, err := clientcmd.BuildConfigFromFlags("", os.Getenv(operatorCluster))
		if err != nil {
			return err
		}
		where, err := bucket.Open(context.Background(), os.Getenv(operatorStore))
		if err != nil {
			return err
		}
		o := operator.Options{
			Cluster: operator.Client(c), Name: os.Getenv(operatorName), Namespace: os.Getenv(operatorNamespace),
			Watch: os.Getenv(operatorNamespace), DataDir: os.Getenv(operatorData),
			Identity: "soak", Listen: "127.0.0.1:0", Health: "127.0.0.1:0", Policy: policies.Default(), Horizon: time.Minute,
			Version: "test",
			Die:     func() { os.Exit(yielded) }, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		}
		kinds := operator.Kinds{Store: where, ShimImage: image}.Parts(&o)
		o.Parts = func(ctx context.Context, j operator.Journal, offered []config.SlicePool) (operator.Parts, error) {
			parts, err := kinds(ctx, j, offered)
			parts.Executor = func(e host.Env) (executor.Executor, host.Files, error) {
				x, err := pods.Open(pods.Options{
					Client: kubernetes.NewForConfigOrDie(c), Store: where, Operator: o.Name, Journal: j.Name, Key: j.Key, Made: j.Made,
					ShimImage: image, Namespace: o.Namespace,
					Deliver: e.Deliver, Slice: e.Slice, Linger: linger, Skew: skew, Report: 500 * time.Millisecond, Log: o.Log,
					Vigil: pods.Vigil{
						Ownerless: func(job.SliceID) (limit, notice time.Duration) { return ownerless, notices },
						Beat:      func() time.Duration { return ownerless / pod.Beats },
					},
				})
				if err != nil {
					return nil, nil, err
				}
				return x, x.Files(), nil
			}
			return parts, err
		}
		return operator.Run(context.Background(), o)
	}()
	fmt.Fprintln(os.Stderr, "the operator has ended:", err)
	if errkind.Of(err) == errkind.Unavailable {
		return yielded
	}
	return 1
}

// process is the operator, as its Deployment would keep it: what has ended is started again. Whoever kills it may keep it away.
type process struct {
	env []string
	log *os.File

	mu     sync.Mutex
	cmd    *exec.Cmd
	away   bool
	killed *exec.Cmd
	// starts of it, and how often it gave up by itself because it could not go on for now. wrong are all its other ends.
	starts, yields int
	wrong          []string
}

// keep starts the operator, and keeps it until the test is over. All that it writes is in a log.
func keep(t *testing.T, log string, env ...string) *process {
	t.Helper()
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{env: append(os.Environ(), env...), log: f}
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
				p.run()
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		p.kill()
		<-done
		_ = f.Close()
	})
	return p
}

// run is one life of it, unless it is kept away.
func (p *process) run() {
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stdout, cmd.Stderr = p.env, p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.mu.Lock()
	var err error
	if !p.away {
		if err = cmd.Start(); err == nil {
			p.cmd = cmd
			p.starts++
		}
	}
	p.mu.Unlock()
	if cmd.Process == nil {
		return
	}
	err = errors.Join(err, cmd.Wait())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd = nil
	switch state := cmd.ProcessState; {
	case p.killed == cmd:
	case state.ExitCode() == yielded:
		p.yields++
	default:
		p.wrong = append(p.wrong, fmt.Sprintf("the operator has ended by itself: %v", err))
	}
}

// kill ends it as a machine that dies does, and keeps it away until it is let back.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = true
	if p.cmd != nil {
		p.killed = p.cmd
		_ = p.cmd.Process.Kill() // or it has just ended
	}
}

func (p *process) back() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.away = false
}

// judge returns how it ended though nobody killed it, and what it says of itself that no right operator says.
func (p *process) judge() []string {
	p.mu.Lock()
	wrong := p.wrong
	p.mu.Unlock()
	text, err := os.ReadFile(p.log.Name())
	if err != nil {
		return append(wrong, err.Error())
	}
	for line := range strings.Lines(string(text)) {
		for _, word := range []string{"panic", "invariant", "fatal error", "DATA RACE"} {
			if strings.Contains(line, word) {
				wrong = append(wrong, "the operator says: "+strings.TrimSpace(line))
			}
		}
	}
	return wrong
}

// nameOfOperator is another in every process that tests: two operators of one name on one machine are refused.
func nameOfOperator() string { return fmt.Sprint("soak-", os.Getpid()) }

// dataIn is the operator's directory in a folder of the soak.
func dataIn(dir string) string { return filepath.Join(dir, "data") }
