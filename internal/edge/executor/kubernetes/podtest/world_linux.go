//go:build kubernetes

package podtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

// shimDir is where shimPath has put it.
var shimDir atomic.Pointer[string]

// shimPath builds sluice-shim as an image of it has it, once.
var shimPath = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-shim-")
	if err != nil {
		return "", err
	}
	shimDir.Store(&dir)
	path := filepath.Join(dir, "sluice-shim")
	cmd := exec.Command("go", "build", "-tags", "kubernetes", "-o", path, "sluice.dev/sluice/cmd/sluice-shim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

// Main runs a package's tests, for TestMain.
func Main(m *testing.M) {
	code := m.Run()
	Clean()
	os.Exit(code)
}

// Clean removes what was built for tests, for TestMain: no world can be made after it.
func Clean() {
	if dir := shimDir.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
}

// World is a cluster with one machine, a store, and all that an operator needs there.
type World struct {
	testing.TB
	Client  kubernetes.Interface
	Kubelet *Kubelet
	Store   *storetest.Lent
	// Where returns where a Pod's volume is, ShimImage names the image with sluice-shim: Kubelet's, if there is one.
	Where     func(pod, volume string) string
	ShimImage string
	// Operator, Namespace and Node name what is of this test, and Journal what tokens are of. Device is what slices are.
	Operator, Journal, Namespace, Node string
	// Key is what records are sealed with, Made when the journal was made.
	Key    []byte
	Made   time.Time
	Device cluster.Device
	// Skew is how much the operator's clock is ahead of the machines'.
	Skew time.Duration
}

// NewWorld makes a world over an API server. resources is what the machine has, nil: whoever makes the world has registered it, and the
// kubelet binds Pods to it by itself.
func NewWorld(t testing.TB, client kubernetes.Interface, name, namespace string, resources map[string]int64) *World {
	t.Helper()
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	w := &World{TB: t, Client: client, Store: storetest.Lend(t, under), ShimImage: "sluice", Operator: name, Namespace: namespace,
		Node: name + "-machine"}
	w.Device = cluster.Device{Node: w.Node, Resource: "example.com/slice"}
	w.Kubelet = Machine(t, Options{Client: client, Node: w.Node, Resources: resources, Binds: resources == nil, Image: w.ShimImage})
	w.Where = w.Kubelet.Dir
	return w
}

// Machine starts a kubelet whose Image has sluice-shim.
func Machine(t testing.TB, o Options) *Kubelet {
	t.Helper()
	path, err := shimPath()
	if err != nil {
		t.Fatal(err)
	}
	o.Programs = map[string]string{"/sluice-shim": path, "/sluice": path}
	return Start(t, o)
}

// Open is an operator's start.
func (w *World) Open(deliver func(protocol.Message), change ...func(*pods.Options)) *pods.Executor {
	w.Helper()
	o := pods.Options{
		Client: w.Client, Store: w.Store, Operator: w.Operator, Journal: w.Journal, Key: w.Key, Made: w.Made, ShimImage: w.ShimImage,
		Namespace: w.Namespace, Deliver: deliver, Report: 50 * time.Millisecond,
		Linger: 10 * time.Second, Skew: 5 * time.Second, Clock: func() time.Time { return time.Now().Add(w.Skew) },
		Slice: func(job.SliceID) (protocol.Slice, bool) { return protocol.Slice{Device: w.Device.String()}, true },
		Log:   slog.New(slog.NewTextHandler(testWriter{w}, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	ex, err := pods.Open(o)
	if err != nil {
		w.Fatal(err)
	}
	return ex
}

type testWriter struct{ testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.Log(string(p))
	return len(p), nil
}

// Pod is a subjob's, as it is now; nil: there is none.
func (w *World) Pod(t job.Token) *corev1.Pod {
	p, err := w.Client.CoreV1().Pods(w.Namespace).Get(w.Context(), w.PodName(t), metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return p
}

// PodName is the name of a subjob's Pod.
func (w *World) PodName(t job.Token) string { return cluster.PodName(w.Operator, w.Journal, t) }

// Dir is the run directory of a subjob; empty: there is none.
func (w *World) Dir(t job.Token) shim.Dir {
	at := w.Where(w.PodName(t), "sluice")
	if at == "" {
		return ""
	}
	return shim.Dir(filepath.Join(at, "runs", t.String()))
}

// Notice is what the program of a subjob can read.
func (w *World) Notice(t job.Token) (n executor.Notice, ok bool) {
	w.Helper()
	dir := w.Dir(t)
	data, err := os.ReadFile(dir.Notice())
	if errors.Is(err, fs.ErrNotExist) || dir == "" {
		return n, false
	}
	if err == nil {
		n, err = ParseNotice(data)
	}
	if err != nil {
		w.Fatal(err)
	}
	return n, true
}

// ParseNotice reads a program's SLUICE_NOTICE_FILE.
func ParseNotice(data []byte) (n executor.Notice, err error) {
	var file struct {
		Sequence         int64
		Kind, Until, Why string
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return n, err
	}
	n = executor.Notice{Sequence: file.Sequence, Kind: file.Kind, Why: file.Why}
	if at, err := time.Parse(time.RFC3339Nano, file.Until); err == nil {
		n.Until = quantity.At(at)
	}
	return n, nil
}

// Until waits for something that must come.
func (w *World) Until(what string, is func() bool) {
	w.Helper()
	for end := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within two minutes: %s", what)
		}
	}
}

// Script is a shell script as a subjob's command. In it `p N` says that work up to N is complete.
func Script(text string) []string {
	return []string{"sh", "-c",
		`p() { printf '{"progress":%d}' $1 > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; }; ` + text}
}

// Harness runs the programs of the conformance suite. Who kills a supervisor waits until the kubelet has said that the Pod is over.
func (w *World) Harness() executortest.Harness {
	return executortest.Harness{
		Fixed: true, Attended: true,
		Open:   func(deliver func(protocol.Message)) executor.Executor { return w.Open(deliver) },
		Launch: Program,
		Script: func(script string) job.Launch {
			return job.Launch{Image: "busybox", Command: []string{"sh", "-c", script}}
		},
		Living: w.living,
		Notice: w.Notice,
		Kill: func(tok job.Token) {
			note, err := w.Dir(tok).ReadNote()
			if err != nil {
				w.Fatal(err)
			}
			if err := syscall.Kill(note.PID, syscall.SIGKILL); err != nil {
				w.Fatal(err)
			}
			w.Until("the Pod is over", func() bool { p := w.Pod(tok); return p != nil && over(p) })
		},
	}
}

// living counts the processes whose environment names a subjob's run directory.
func (w *World) living(tok job.Token) (n int) {
	dir := w.Dir(tok)
	if dir == "" {
		w.Fatalf("subjob %v has no run directory", tok)
	}
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		w.Fatal(err)
	}
	for _, path := range all {
		if env, err := os.ReadFile(path); err == nil && bytes.Contains(env, []byte(string(dir)+"/")) {
			n++
		}
	}
	return n
}

// Program is one of the suite's programs.
func Program(p executortest.Program) job.Launch {
	l := job.Launch{Image: "busybox"}
	switch p {
	case executortest.Quick:
		l.Command = []string{"true"}
	case executortest.Failing:
		l.Command = Script("echo trying >&2; echo it broke >&2; exit 3")
	case executortest.Polite:
		l.Command = Script("trap 'exit 85' TERM; p 5; while :; do sleep 0.05; done")
	default:
		l.Command = Script("trap '' TERM; p 5; while :; do sleep 0.05; done")
	}
	return l
}
