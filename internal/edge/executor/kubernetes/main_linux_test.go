//go:build kubernetes

package kubernetes_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

// shimPath builds sluice-shim as an image of it has it, once.
var shimPath = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // made once
	dir, err := os.MkdirTemp("", "sluice-shim-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "sluice-shim")
	cmd := exec.Command("go", "build", "-tags", "kubernetes", "-o", path, "sluice.dev/sluice/cmd/sluice-shim")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", errors.New(string(out))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := shimPath(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

const node = "machine-1"

// world is a cluster with a store.
type world struct {
	testing.TB
	api     *podtest.API
	client  kubernetes.Interface
	kubelet *podtest.Kubelet
	store   *storetest.Lent
	// skew is how much the operator's clock is ahead of the machines'.
	skew time.Duration
}

func newWorld(t testing.TB) *world {
	t.Helper()
	path, err := shimPath()
	if err != nil {
		t.Fatal(err)
	}
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	api := podtest.NewAPI(t)
	w := &world{TB: t, api: api, client: api, store: storetest.Lend(t, under)}
	w.kubelet = podtest.Start(t, podtest.Options{Client: api, Node: node, Binds: true, Programs: map[string]string{"/sluice-shim": path}})
	return w
}

// open is an operator's start.
func (w *world) open(deliver func(protocol.Message), change ...func(*pods.Options)) *pods.Executor {
	w.Helper()
	o := pods.Options{
		Client: w.client, Store: w.store, Operator: "main", ShimImage: "sluice", Namespace: "default", Deliver: deliver, Report: 50 * time.Millisecond,
		Linger: 10 * time.Second, Skew: 5 * time.Second, Clock: func() time.Time { return time.Now().Add(w.skew) },
		Slice: func(job.SliceID) (protocol.Slice, bool) {
			return protocol.Slice{Device: cluster.Device{Node: node, Resource: "example.com/slice"}.String()}, true
		},
		Log: slog.New(slog.NewTextHandler(testWriter{w}, nil)),
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

// dir is the run directory of a subjob.
func (w *world) dir(t job.Token) shim.Dir {
	at := w.kubelet.Dir(cluster.PodName("main", t), "sluice")
	if at == "" {
		return ""
	}
	return shim.Dir(filepath.Join(at, "runs", t.String()))
}

// notice is what the program of a subjob can read.
func (w *world) notice(t job.Token) (n executor.Notice, ok bool) {
	w.Helper()
	var file struct {
		Sequence         int64
		Kind, Until, Why string
	}
	data, err := os.ReadFile(w.dir(t).Notice())
	if errors.Is(err, fs.ErrNotExist) || w.dir(t) == "" {
		return n, false
	}
	if err == nil {
		err = json.Unmarshal(data, &file)
	}
	if err != nil {
		w.Fatal(err)
	}
	n = executor.Notice{Sequence: file.Sequence, Kind: file.Kind, Why: file.Why}
	if at, err := time.Parse(time.RFC3339Nano, file.Until); err == nil {
		n.Until = quantity.At(at)
	}
	return n, true
}

// say is a shell script that reports so many units complete.
const say = `p() { printf '{"progress":%d}' $1 > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; }; `

func script(text string) []string { return []string{"sh", "-c", say + text} }
