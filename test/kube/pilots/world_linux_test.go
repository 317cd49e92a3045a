//go:build kubernetes

package pilots

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/edge/executor/kubernetes/podtest"
	provider "sluice.dev/sluice/internal/edge/provider/kubernetes"
	"sluice.dev/sluice/test/kube/plane"
	"sluice.dev/sluice/test/queue"
	"sluice.dev/sluice/test/witness"
)

const (
	// devices of the one machine of newWorld, and so the most pilots there may be.
	devices = 3
	// grace of pilots is the notice of a preemption.
	grace    = 20 * time.Second
	resource = "example.com/slice"
	pool     = "spare"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(witness.WorkerVariable); dir != "" {
		witness.Work(dir)
		return
	}
	if os.Getenv(queue.WorkerVariable) != "" {
		os.Exit(queue.Work())
	}
	code := plane.Run(m, plane.With(plane.Scheduler, plane.Controllers))
	podtest.Clean()
	if dir := builtIn.Load(); dir != nil {
		_ = os.RemoveAll(*dir)
	}
	os.Exit(code)
}

// builtIn is where built has put the programs.
var builtIn atomic.Pointer[string]

// built builds the programs, once for all tests, and says in which folder they are.
var built = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "sluice-pilots-")
	if err != nil {
		return "", err
	}
	builtIn.Store(&dir)
	out, err := exec.Command("go", "build", "-tags", "kubernetes", "-o", dir+"/", "sluice.dev/sluice/cmd/sluice",
		"sluice.dev/sluice/cmd/sluice-shim").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return dir, nil
})

// shape is a world's machines, the devices of each, the lengths of pilots, and how often the kubelets look.
type shape struct {
	machines, each int
	lengths        string
	every          time.Duration
}

// world is a cluster, and a head that has its machines from there alone.
type world struct {
	*testing.T
	shape
	dir, namespace string
	plane          *plane.Plane
	// clients is what the kubelet and the test call by, wire what of it is counted.
	clients kubernetes.Interface
	wire    *plane.Wire
	// kubelet is that of the first machine.
	kubelet *podtest.Kubelet
	client  *witness.Client
	head    *head
}

// newWorld is a world of one machine.
func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, shape{machines: 1, each: devices, lengths: "2m, 4m"})
}

// newWorldOf starts it all but the head. The class of pilots is not there yet.
func newWorldOf(t *testing.T, s shape) *world {
	t.Helper()
	w := &world{T: t, shape: s, plane: plane.Of(t), dir: shortDir(t)}
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	w.namespace = w.plane.Namespace(t, "pod-security.kubernetes.io/enforce", "restricted")
	config, wire := w.plane.Wire()
	w.clients, w.wire = kubernetes.NewForConfigOrDie(config), wire
	for i := range w.machines {
		folder := "k"
		if i > 0 {
			folder = fmt.Sprint("k", i)
		}
		k := podtest.Start(t, podtest.Options{Client: w.clients, Node: w.machine(i), Image: "sluice", Every: w.every,
			Resources: map[string]int64{resource: int64(w.each)}, Dir: filepath.Join(w.dir, folder),
			Programs: map[string]string{"/sluice-shim": filepath.Join(bin, "sluice-shim"), "/sluice": filepath.Join(bin, "sluice")}})
		if i == 0 {
			w.kubelet = k
		}
	}
	witnesses, worker := filepath.Join(w.dir, "witnesses"), filepath.Join(w.dir, "worker") // not below /tmp: each subjob has its own
	if err := os.MkdirAll(witnesses, 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err == nil {
		err = exec.Command("cp", self, worker).Run()
	}
	if err != nil {
		t.Fatal(err)
	}
	w.head = w.newHead(bin)
	w.client = &witness.Client{Program: filepath.Join(bin, "sluice"), Socket: filepath.Join(w.head.data, "socket"), Dir: w.dir,
		Witnesses: witnesses, Units: 400, AtOnce: 3, Many: 3, Few: 2, Memory: "64Mi", Worker: worker}
	return w
}

// machine is the name of one.
func (w *world) machine(i int) string { return fmt.Sprintf("machine-%s-%d", w.namespace, i) }

// shortDir is a folder whose path is short enough for sockets, removed at the end unless something failed.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sl-pods-") //nolint:usetesting // paths of sockets must be short, and it is kept on failure
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what is left is in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// kubectl is an admin's.
func (w *world) kubectl(stdin string, args ...string) string {
	w.Helper()
	out, err := w.plane.KubectlWith(stdin, args...)
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// account writes the kubeconfig of a user with the rights that docs/kubernetes.md names.
func (w *world) account() string {
	w.Helper()
	path, err := w.plane.User("pilots-"+w.namespace, "pilots-"+w.namespace)
	if err != nil {
		w.Fatal(err)
	}
	w.kubectl(fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: sluice-pilots, namespace: %[1]s}
rules:
- {apiGroups: [""], resources: [pods], verbs: [create, list, delete]}
- {apiGroups: [""], resources: [secrets], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: sluice-pilots, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: sluice-pilots}
subjects: [{kind: User, name: pilots-%[1]s, apiGroup: rbac.authorization.k8s.io}]
`, w.namespace), "apply", "-f", "-")
	return path
}

// class makes a PriorityClass.
func (w *world) class(name string, value int, policy string) {
	w.Helper()
	w.kubectl(fmt.Sprintf("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: %s}\nvalue: %d\npreemptionPolicy: %s\n",
		name, value, policy), "apply", "-f", "-")
	w.Cleanup(func() { _, _ = w.plane.Kubectl("delete", "priorityclass", name, "--ignore-not-found") })
}

// pilots are the pool's Pods that are not over, by the API server.
func (w *world) pilots() (list []corev1.Pod, err error) {
	all, err := w.clients.CoreV1().Pods(w.namespace).List(context.Background(), metav1.ListOptions{LabelSelector: provider.LabelPool})
	if err != nil {
		return nil, err
	}
	for _, p := range all.Items {
		if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			list = append(list, p)
		}
	}
	return list, nil
}

// leased are n pilots on each of which a subjob's program runs.
func (w *world) leased(n int) (found []corev1.Pod) {
	w.Helper()
	began := time.Now()
	w.until(fmt.Sprintf("subjobs run on %d pilots", n), func() error {
		list, err := w.pilots()
		if err != nil {
			return err
		}
		busy := w.workers()
		found = slices.DeleteFunc(list, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil || !busy[string(p.UID)] })
		if len(found) >= n {
			return nil
		}
		out, err := w.client.Sluice("providers", pool)
		return fmt.Errorf("on %d do they: %s, %w", len(found), out, err)
	})
	w.Logf("subjobs run on %d pilots after %v", len(found), time.Since(began).Round(100*time.Millisecond))
	return found
}

// workers are the UIDs of the Pods in which programs of subjobs run: their environment has a folder of the Pod's.
func (w *world) workers() map[string]bool {
	busy, folder := map[string]bool{}, filepath.Join(w.dir, "k")+"/"
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		line, _ := os.ReadFile(filepath.Join(path, "cmdline"))
		if !strings.HasPrefix(string(line), filepath.Join(w.dir, "worker")) {
			continue
		}
		env, _ := os.ReadFile(filepath.Join(path, "environ"))
		if _, after, ok := strings.Cut(string(env), "SLUICE_OUTPUT_DIR="+folder); ok {
			uid, _, _ := strings.Cut(after, "/")
			busy[uid] = true
		}
	}
	return busy
}

// commands are those of processes on this machine that name a folder.
func commands(folder string) (lines []string) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		line, _ := os.ReadFile(path)
		if strings.Contains(string(line), folder) {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}

func (w *world) until(what string, holds func() error) {
	w.Helper()
	if err := witness.Until(what, 3*time.Minute, holds); err != nil {
		log, _ := os.ReadFile(w.head.data + ".log")
		w.Fatalf("%v\nthe head's log ends with: %s", err, log[max(0, len(log)-4000):])
	}
}

// head is the daemon whose pilots these are.
type head struct {
	t    *testing.T
	data string
	args []string

	mu  sync.Mutex
	cmd *exec.Cmd
}

func (w *world) newHead(bin string) *head {
	w.Helper()
	file := filepath.Join(w.dir, "head.yaml")
	text := fmt.Sprintf(`providers:
- name: %s
  kind: kubernetes
  namespace: %s
  image: example.com/work:1
  sluiceImage: sluice
  resources: {%s: 1, cpu: 100m, memory: 64Mi}
  slices: [{memory: 512Mi}]
  gpus: "sim:custom,mem=512Mi"
  atMost: %d
  lengths: [%s]
  grace: %v
  idle: 5s
  start: 5s
  every: 1s
  kubeconfig: %s
`, pool, w.namespace, resource, w.machines*w.each, w.lengths, grace, w.account())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	h := &head{t: w.T, data: filepath.Join(w.dir, "head")}
	h.args = []string{filepath.Join(bin, "sluice"), "up", "--data", h.data, "--name", "head", "--listen", freeAddress(w.T),
		"--cluster", freeAddress(w.T), "--gpus", "sim:custom,mem=4Mi", "--config", file}
	w.Cleanup(h.kill)
	return h
}

func (h *head) start() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	log, err := os.OpenFile(h.data+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.cmd = exec.Command(h.args[0], h.args[1:]...)
	h.cmd.Stdout, h.cmd.Stderr = log, log
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
}

// kill ends the daemon at once.
func (h *head) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd != nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		h.cmd = nil
	}
}
