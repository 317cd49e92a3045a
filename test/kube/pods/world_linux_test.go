//go:build kubernetes

package pods

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	executors "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
	"sluice.dev/sluice/test/kube/plane"
)

// shimPath builds sluice-shim as its image has it, once.
var shimPath = sync.OnceValues(func() (string, error) {
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
	code := plane.Run(m, plane.With(plane.Scheduler, plane.Controllers))
	if path, err := shimPath(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// slice is the extended resource of machines that have no DRA.
const slice = "example.com/slice"

var one = resource.MustParse("1")

// worlds numbers machines and operators: all worlds of this package are in one cluster.
var worlds atomic.Int64

// world is one machine of the cluster with its kubelet, a namespace that enforces the restricted Pod security standard, a store, and the executor's way to the cluster.
type world struct {
	testing.TB
	p                  *plane.Plane
	node, operator, ns string
	client             kubernetes.Interface
	wire               *plane.Wire
	kubelet            *podtest.Kubelet
	store              *storetest.Lent
	device             cluster.Device
}

// newWorld makes one on a plane; by claims of DRA, or an extended resource.
func newWorld(t testing.TB, p *plane.Plane, dra bool) *world {
	t.Helper()
	path, err := shimPath()
	if err != nil {
		t.Fatal(err)
	}
	never := corev1.PreemptNever
	leftover := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: cluster.Leftover}, Value: -1_000_000, PreemptionPolicy: &never}
	if _, err := p.Client().SchedulingV1().PriorityClasses().Create(t.Context(), leftover, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	n := worlds.Add(1)
	w := &world{TB: t, p: p, node: fmt.Sprintf("machine-%d", n), operator: fmt.Sprintf("op-%d", n)}
	w.ns = p.Namespace(t, "pod-security.kubernetes.io/enforce", "restricted")
	config, wire := p.Wire()
	w.client, w.wire = kubernetes.NewForConfigOrDie(config), wire
	if dra {
		p.Classes(t)
		p.Host(t, w.node, nil)
		p.GPUs(t, w.node, 1)
		w.device = cluster.Device{Node: w.node, Class: plane.MIGClass, Driver: plane.Driver, Pool: w.node, Name: "gpu-0-mig-3g40gb-4"}
	} else {
		p.Host(t, w.node, map[string]int64{slice: 1})
		w.device = cluster.Device{Node: w.node, Resource: slice}
	}
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	w.store = storetest.Lend(t, under)
	w.kubelet = podtest.Start(t, podtest.Options{Client: p.Client(), Node: w.node, Programs: map[string]string{"/sluice-shim": path}, Every: 50 * time.Millisecond})
	return w
}

// open is an operator's start.
func (w *world) open(deliver func(protocol.Message)) *executors.Executor {
	w.Helper()
	ex, err := executors.Open(executors.Options{
		Client: w.client, Store: w.store, Operator: w.operator, ShimImage: "example.com/sluice:1", Namespace: w.ns, Deliver: deliver,
		Report: 50 * time.Millisecond, Linger: 20 * time.Second, Skew: 5 * time.Second,
		Slice: func(job.SliceID) (protocol.Slice, bool) { return protocol.Slice{Device: w.device.String()}, true },
		Log:   slog.New(slog.NewTextHandler(lines{w}, nil)),
	})
	if err != nil {
		w.Fatal(err)
	}
	return ex
}

// lines is a log that the test shows.
type lines struct{ testing.TB }

func (l lines) Write(p []byte) (int, error) {
	l.Log(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func (w *world) podName(t job.Token) string { return cluster.PodName(w.operator, t) }

// dir is the run directory of a subjob; "" while there is none.
func (w *world) dir(t job.Token) shim.Dir {
	at := w.kubelet.Dir(w.podName(t), "sluice")
	if at == "" {
		return ""
	}
	return shim.Dir(filepath.Join(at, "runs", t.String()))
}

// notice is what the program of a subjob can read.
func (w *world) notice(t job.Token) (n executor.Notice, ok bool) {
	w.Helper()
	dir := w.dir(t)
	if dir == "" {
		return n, false
	}
	data, err := os.ReadFile(dir.Notice())
	if errors.Is(err, fs.ErrNotExist) {
		return n, false
	}
	var file struct {
		Sequence         int64
		Kind, Until, Why string
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

// say is a shell function that reports so many units complete.
const say = `p() { printf '{"progress":%d}' $1 > $SLUICE_PROGRESS_FILE.new; mv $SLUICE_PROGRESS_FILE.new $SLUICE_PROGRESS_FILE; }; `

func script(text string) job.Launch {
	return job.Launch{Image: "example.com/work:1", Command: []string{"sh", "-c", say + text}}
}
