//go:build kubernetes

package measure

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/storetest"
	"sluice.dev/sluice/internal/face/operator"
	"sluice.dev/sluice/test/kube/plane"
)

// TestARestartFindsEveryPod: an operator that is killed with thousands of subjobs running comes back, finds all of them, and starts none
// anew.
func TestARestartFindsEveryPod(t *testing.T) {
	if os.Getenv(operatorDir) != "" {
		serveOperator(t)
		return
	}
	measureScale(t, Scale{Machines: 30, Jobs: 60})
}

// Scale is how large a cluster is: machines of seven slices each, and jobs of one long subjob each.
type Scale struct{ Machines, Jobs int }

// Scaled is what an operator takes at a size.
type Scaled struct {
	Scale
	// Open is from the process's start until it is ready, with nothing running; Reopen with all subjobs running; Again until it counts all
	// of them as running.
	Open, Reopen, Again time.Duration
	// Submitted is how long it took until all jobs were accepted, Filled until all their subjobs ran.
	Submitted, Filled time.Duration
	// Steps are how long each actor's decisions took: 99 of a hundred no longer, as an upper bound.
	Steps map[string]time.Duration
	// Peak is what it had resident at most before it was killed, After after it had come back, in MiB.
	Peak, After float64
}

// measureScale measures an operator in a process of its own. The machines' kubelets also bind, in the scheduler's place, so that what is
// measured is not that.
func measureScale(t *testing.T, size Scale) (m Scaled) {
	m.Scale = size
	p := plane.Start(t)
	namespace := p.Namespace(t)
	install(t, p, "extendedResources: [{name: "+mig+"}]")
	names := nodes(t, p, size.Machines)
	t.Logf("%d machines are there", len(names))
	crowd := newCrowd(t, p.Client(), time.Second, time.Second)
	crowd.mu.Lock()
	crowd.binds = true
	crowd.mu.Unlock()

	dir := t.TempDir()
	begin := time.Now()
	o := startOperator(t, p, dir, namespace)
	m.Open = time.Since(begin)
	t.Logf("ready after %s", m.Open)

	begin = time.Now()
	submitAll(t, p, namespace, size.Jobs)
	for o.jobs(t, "") < size.Jobs {
		o.lives(t)
		time.Sleep(100 * time.Millisecond)
	}
	m.Submitted = time.Since(begin)
	for crowd.running() < size.Jobs || o.jobs(t, "RUNNING") < size.Jobs {
		o.lives(t)
		time.Sleep(100 * time.Millisecond)
	}
	m.Filled = time.Since(begin)
	m.Peak, m.Steps = o.peak(t), o.steps(t, .99)
	t.Logf("%d jobs accepted after %s, all run after %s; %.0f MiB at most; steps %v", size.Jobs, m.Submitted, m.Filled, m.Peak, m.Steps)
	for actor, took := range m.Steps {
		if took > time.Second { // a bound that no machine is too busy for: the figures say what it is
			t.Errorf("one in a hundred steps of the %s takes up to %s", actor, took)
		}
	}
	if len(m.Steps) != 3 {
		t.Errorf("steps of %v, want those of gate, zone and node", m.Steps)
	}
	before := pods(t, p, namespace)

	o.kill()
	begin = time.Now()
	o = startOperator(t, p, dir, namespace)
	m.Reopen = time.Since(begin)
	for o.jobs(t, "RUNNING") < size.Jobs {
		o.lives(t)
		time.Sleep(20 * time.Millisecond)
	}
	m.Again = time.Since(begin)
	// Were a subjob not found its job would be served again within this time.
	time.Sleep(5 * time.Second)
	m.After = o.peak(t)
	t.Logf("ready again after %s, all running after %s; %.0f MiB at most", m.Reopen, m.Again, m.After)
	after := pods(t, p, namespace)
	if len(after) != size.Jobs {
		t.Errorf("%d Pods after the restart, want %d", len(after), size.Jobs)
	}
	for name, uid := range before {
		if after[name] != uid {
			t.Errorf("Pod %s was %s, and is %q after the restart", name, uid, after[name])
		}
	}
	if ended := crowd.ended(); len(ended) > 0 {
		t.Errorf("subjobs have ended: %v", ended)
	}
	o.kill()
	return m
}

// install puts in what the chart would, and a pool.
func install(t testing.TB, p *plane.Plane, pool string) {
	t.Helper()
	p.Define(t)
	leftover(t, p)
	if out, err := p.KubectlWith("apiVersion: sluice.dev/v1alpha1\nkind: SlicePool\nmetadata: {name: all}\nspec:\n  "+pool+"\n", "apply",
		"-f", "-"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// leftover makes the class of our Pods, if it is not there.
func leftover(t testing.TB, p *plane.Plane) {
	t.Helper()
	never := corev1.PreemptNever
	if _, err := p.Client().SchedulingV1().PriorityClasses().Create(context.Background(), &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.Leftover}, Value: -1_000_000_000, PreemptionPolicy: &never,
	}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// abreast is how many objects are made at once.
const abreast = 32

// all does something for each of n, abreast.
func all(n int, do func(i int) error) error {
	var each sync.WaitGroup
	errs := make([]error, abreast)
	for k := range abreast {
		each.Go(func() {
			for i := k; i < n && errs[k] == nil; i += abreast {
				errs[k] = do(i)
			}
		})
	}
	each.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// nodes makes machines with seven slices each, which nobody but the crowd looks after.
func nodes(t *testing.T, p *plane.Plane, n int) []string {
	t.Helper()
	names := make([]string, n)
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110"), mig: *resource.NewQuantity(pieces, resource.DecimalSI),
	}
	client := p.Client().CoreV1().Nodes()
	err := all(n, func(i int) error {
		names[i] = fmt.Sprintf("worker-%05d", i)
		node, err := client.Create(context.Background(), &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: names[i], Labels: map[string]string{"kubernetes.io/hostname": names[i],
				"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}},
			Status: corev1.NodeStatus{Allocatable: room, Capacity: room,
				Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Ready"}}},
		}, metav1.CreateOptions{})
		if err != nil {
			return err
		}
		if len(node.Spec.Taints) > 0 { // an API server says of every new machine that it is not ready
			node.Spec.Taints = nil
			_, err = client.Update(context.Background(), node, metav1.UpdateOptions{})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// submitAll makes jobs of one long subjob each, as kubectl would.
func submitAll(t *testing.T, p *plane.Plane, namespace string, n int) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(p.Config()).Resource(schema.GroupVersionResource{Group: cluster.Group, Version: cluster.Version,
		Resource: "jobs"}).Namespace(namespace)
	err := all(n, func(i int) error {
		_, err := client.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": cluster.Group + "/" + cluster.Version, "kind": "Job",
			"metadata": map[string]any{"name": fmt.Sprintf("job-%05d", i)},
			"spec": map[string]any{
				"items":  map[string]any{"total": int64(1_000_000), "perItem": "1s", "parallelism": int64(1)},
				"memory": "8Gi", "image": "example.com/train:1", "command": []any{"train", "--part", strconv.Itoa(i)},
			},
		}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// pods are the Pods of subjobs, by name.
func pods(t *testing.T, p *plane.Plane, namespace string) map[string]types.UID {
	t.Helper()
	list, err := p.Client().CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{LabelSelector: cluster.LabelOperator})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]types.UID{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].UID
	}
	return found
}

// What tells the process of an operator where it works.
const (
	operatorDir       = "SLUICE_MEASURE_DIR"
	operatorCluster   = "SLUICE_MEASURE_KUBECONFIG"
	operatorNamespace = "SLUICE_MEASURE_NAMESPACE"
	operatorName      = "SLUICE_MEASURE_NAME"
)

// nameOfOperator is another in every process that tests: two operators of one name on one machine are refused.
func nameOfOperator() string { return fmt.Sprint("measure-", os.Getpid()) }

// memoryLimit is what sluice operator takes in a container with a limit of 1 GiB, as the chart has it.
const memoryLimit = "921MiB"

// process is an operator in a process of its own.
type process struct {
	cmd    *exec.Cmd
	health string
	said   *bytes.Buffer
	ended  chan struct{}
}

func startOperator(t *testing.T, p *plane.Plane, dir, namespace string) *process {
	t.Helper()
	o := &process{cmd: exec.Command(os.Args[0], "-test.run", "^"+t.Name()+"$"), said: &bytes.Buffer{},
		ended: make(chan struct{})} //nolint:gosec // this very program
	o.cmd.Env = append(os.Environ(), operatorDir+"="+dir, operatorCluster+"="+p.Kubeconfig(), operatorNamespace+"="+namespace, operatorName+
		"="+nameOfOperator(), "GOMEMLIMIT="+memoryLimit)
	o.cmd.Stderr = o.said
	o.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() {
		defer close(o.ended)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at, is := strings.CutPrefix(lines.Text(), "ready "); is {
				ready <- at
			}
		}
		_ = o.cmd.Wait() // it is killed
	}()
	t.Cleanup(o.kill)
	select {
	case o.health = <-ready:
	case <-o.ended:
		t.Fatalf("the operator has ended:\n%s", o.said)
	case <-time.After(plane.Within):
		o.kill()
		t.Fatalf("the operator is not ready:\n%s", o.said)
	}
	return o
}

func (o *process) kill() {
	_ = o.cmd.Process.Kill() // or it has ended
	<-o.ended
}

func (o *process) lives(t *testing.T) {
	t.Helper()
	select {
	case <-o.ended:
		t.Fatalf("the operator has ended:\n%s", o.said)
	default:
	}
}

var jobsIn = regexp.MustCompile(`(?m)^sluice_jobs\{state="([A-Z]+)"\} (\S+)$`)

var stepsIn = regexp.MustCompile(`(?m)^sluice_step_seconds_bucket\{actor="([a-z]+)",le="(\S+)"\} (\d+)$`)

// steps is how long decisions took, by actor: the upper bound of the bucket in which a quantile of them lies. Actors that took none are
// left out.
func (o *process) steps(t *testing.T, q float64) map[string]time.Duration {
	t.Helper()
	type bucket struct {
		most  float64
		count float64
	}
	all := map[string][]bucket{} // ascending, as they are written
	for _, m := range stepsIn.FindAllStringSubmatch(o.metrics(t), -1) {
		most, err1 := strconv.ParseFloat(m[2], 64)
		count, err2 := strconv.ParseFloat(m[3], 64)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		all[m[1]] = append(all[m[1]], bucket{most, count})
	}
	out := map[string]time.Duration{}
	for actor, list := range all {
		total := list[len(list)-1].count
		for _, b := range list {
			if total > 0 && b.count >= q*total {
				out[actor] = time.Duration(min(b.most, 3600) * float64(time.Second)) // the last bucket has no bound
				break
			}
		}
	}
	return out
}

// metrics is what it says of itself.
func (o *process) metrics(t *testing.T) string {
	t.Helper()
	r, err := http.Get("http://" + o.health + "/metrics") //nolint:noctx // on this machine
	if err != nil {
		t.Fatalf("%v\n%s", err, o.said)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// jobs is how many jobs it counts in a state; "": in all.
func (o *process) jobs(t *testing.T, state string) (n int) {
	t.Helper()
	for _, m := range jobsIn.FindAllStringSubmatch(o.metrics(t), -1) {
		count, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		if state == "" || state == m[1] {
			n += int(count)
		}
	}
	return n
}

// peak is what it has had resident at most, in MiB.
func (o *process) peak(t *testing.T) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", o.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s+(\d+) kB`).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no VmHWM in %s", text)
	}
	kib, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib / 1024
}

// serveOperator is the operator's process. It ends by being killed.
func serveOperator(t *testing.T) {
	c, err := clientcmd.BuildConfigFromFlags("", os.Getenv(operatorCluster))
	if err != nil {
		t.Fatal(err)
	}
	dir := os.Getenv(operatorDir)
	under, err := local.Open(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	o := operator.Options{
		Cluster: operator.Client(c), Name: os.Getenv(operatorName), Namespace: os.Getenv(operatorNamespace),
		DataDir: filepath.Join(dir, "data"), Identity: "measure", Listen: "127.0.0.1:0", Health: "127.0.0.1:0",
		Policy: policies.Default(), Horizon: 4 * time.Hour, Version: "test",
		Log: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	o.Ready = func(_, health string) { fmt.Println("ready", health) }
	o.Parts = operator.Kinds{Store: storetest.Lend(t, under), ShimImage: "example.com/sluice:1"}.Parts(&o)
	if err := operator.Run(context.Background(), o); err != nil {
		t.Fatal(err)
	}
}
