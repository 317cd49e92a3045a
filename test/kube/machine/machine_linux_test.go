//go:build kubernetes && machine

package machine_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
	"sluice.dev/sluice/test/kube/machine"
	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) { os.Exit(machine.Run(m)) }

// Images that the tests give the machine: that of Sluice, and the program of the tests.
const (
	sluiceImage  = "machine.test/sluice:1"
	programImage = "machine.test/program:1"
	slice        = "example.com/slice"
)

var (
	worlds atomic.Int64
	images sync.Once
)

// world is the machine, with 40 slices, as an executor of this test sees it, in a namespace that takes restricted Pods alone.
type world struct {
	*podtest.World
	p *plane.Plane
	m *machine.Machine
}

func newWorld(t *testing.T) *world {
	t.Helper()
	p, m := plane.Of(t), machine.Of(t)
	images.Do(func() {
		m.Image(t, sluiceImage, machine.Build(t, "sluice-shim", "kubernetes", "./cmd/sluice-shim"))
		m.Image(t, programImage, machine.Build(t, "program", "", "./test/kube/machine/program"))
		go keepNotices(m)
	})
	ctx, client := context.Background(), p.Client()
	never := corev1.PreemptNever
	_, err := client.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Leftover}, Value: -1_000_000_000, PreemptionPolicy: &never,
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	m.Have(t, slice, 40)
	under, err := local.Open(filepath.Join(t.TempDir(), "store"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{p: p, m: m, World: &podtest.World{
		TB: t, Client: client, Store: storetest.LendOn(t, under, m.Listen(t)), ShimImage: sluiceImage,
		Operator:  fmt.Sprintf("w%d", worlds.Add(1)),
		Namespace: p.Namespace(t, "pod-security.kubernetes.io/enforce", "restricted"), Node: m.Name,
		Device: cluster.Device{Node: m.Name, Resource: slice},
	}}
	w.Where = func(pod, volume string) string {
		got, err := client.CoreV1().Pods(w.Namespace).Get(ctx, pod, metav1.GetOptions{})
		if err != nil {
			return ""
		}
		return m.Volume(got, volume)
	}
	return w
}

// supervisor is the process of a subjob's supervisor, as this machine sees it.
func (w *world) supervisor(tok job.Token) int {
	w.Helper()
	pod := w.Pod(tok)
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || pod == nil {
		w.Fatal(pod, err)
	}
	for _, path := range all {
		line, _ := os.ReadFile(path)
		groups, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cgroup"))
		if bytes.Contains(line, []byte("\x00supervise\x00")) && bytes.Contains(groups, []byte(pod.UID)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			return pid
		}
	}
	w.Fatalf("the supervisor of %v is not among %d processes", tok, len(all))
	return 0
}

// launch is one of the suite's programs.
func launch(p executortest.Program) job.Launch {
	way := map[executortest.Program]string{executortest.Quick: "true", executortest.Failing: "fail", executortest.Polite: "polite"}[p]
	if way == "" {
		way = "stubborn"
	}
	return job.Launch{Image: programImage, Command: []string{"/program", way}}
}

// kept are notices as they were last seen, by the uid of their Pod: a kubelet removes the volumes of a Pod soon after its end.
var kept sync.Map

// keepNotices looks at all notices again and again. A kubelet takes a second or so to see that a container has ended.
func keepNotices(m *machine.Machine) {
	for {
		all, _ := filepath.Glob(m.Volume(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "*"}}, "sluice/runs/*/notice*"))
		for _, path := range all {
			if data, err := os.ReadFile(path); err == nil && len(data) > 0 && filepath.Base(path) == filepath.Base(shim.Dir("").Notice()) {
				kept.Store(path, data)
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// notice is what the program of a subjob could read last.
func (w *world) notice(t job.Token) (n executor.Notice, ok bool) {
	w.Helper()
	data, ok := kept.Load(w.Dir(t).Notice())
	if !ok {
		return w.Notice(t)
	}
	if seen, there := w.Notice(t); there {
		return seen, true
	}
	n, err := podtest.ParseNotice(data.([]byte))
	if err != nil {
		w.Fatal(err)
	}
	return n, true
}

func (w *world) harness() executortest.Harness {
	h := w.Harness()
	h.Launch, h.Notice = launch, w.notice
	h.Kill = func(tok job.Token) {
		if err := syscall.Kill(w.supervisor(tok), syscall.SIGKILL); err != nil {
			w.Fatal(err)
		}
		w.Until("the Pod is over", func() bool {
			p := w.Pod(tok)
			return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
		})
	}
	return h
}

// TestConformance: what the executor promises it keeps where kubelet, containerd and runc run its Pods, as it does on the kubelet of tests.
func TestConformance(t *testing.T) {
	executortest.Run(t, false, func(t *testing.T) executortest.Harness {
		w := newWorld(t)
		t.Cleanup(func() {
			if t.Failed() {
				out, err := w.p.Kubectl("-n", w.Namespace, "get", "pods,events", "-o", "yaml")
				t.Log(out, err)
			}
		})
		return w.harness()
	})
}
