//go:build kubernetes && machine

package machine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/test/kube/plane"
)

// Part is a program of the machine, called as its binary is.
type Part string

// The parts, in the order of their start.
const (
	Containerd Part = "containerd"
	Kubelet    Part = "kubelet"
)

// Machine is a real machine of a plane, as long as the test runs.
type Machine struct {
	// Name is that of its node.
	Name string

	plane      *plane.Plane
	dir        string // all of it; the kubelet's volumes are below, where the test can see them
	programs   string
	kubeconfig string
	group      string
	space      *space
	running    map[Part]*plane.Process
	closers    []io.Closer

	mu   sync.Mutex
	ways map[net.Conn]bool // the connections to the API server
	away bool
}

// Run is for a TestMain, in place of plane.Run: it is the machine's first process too, and ends the machine that Of has started.
func Run(m *testing.M, options ...plane.Option) (code int) {
	if dir := os.Getenv(inside); dir != "" {
		return first(dir)
	}
	code = plane.Run(m, append(options, plane.With(plane.Scheduler, plane.Controllers), plane.Egress(egress()))...)
	if shared.left != nil {
		fmt.Fprintf(os.Stderr, "machine: it could not be removed whole: %v\n", shared.left)
		return max(code, 1)
	}
	return code
}

// egress is the socket by which this process's plane reaches its machine.
func egress() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("machine-egress-%d.sock", os.Getpid()))
}

// shared is the one machine of a package's tests.
var shared struct {
	mu      sync.Mutex
	machine *Machine
	left    error
}

// Of is the machine of this package's tests, beside plane.Of; the first that asks starts it. Where the machine that it runs on does not
// allow it, or lacks the programs, the test is skipped with the reason, and fails if SLUICE_KUBE is require.
func Of(t testing.TB) *Machine {
	t.Helper()
	p := plane.Of(t)
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.machine != nil {
		return shared.machine
	}
	m, err := start(t, p, demand(t))
	if err != nil {
		err = errors.Join(err, m.end(true))
	}
	if err != nil {
		refuse(t, err)
	}
	shared.machine = m
	p.OnEnd(func(keep bool) { shared.left = m.end(keep) })
	return m
}

// start starts a machine, and returns when Pods can be bound to it. What has failed is to be ended too.
func start(t testing.TB, p *plane.Plane, programs string) (m *Machine, err error) {
	name := fmt.Sprintf("machine-%d", os.Getpid())
	m = &Machine{Name: name, plane: p, programs: programs, group: "sluice-" + name, running: map[Part]*plane.Process{},
		ways: map[net.Conn]bool{}}
	if m.dir, err = os.MkdirTemp("", "machine-"); err != nil { //nolint:usetesting // it outlives the test that asks first
		return m, err
	}
	if m.kubeconfig, err = p.User(name, "system:node:"+name, "system:nodes"); err != nil {
		return m, err
	}
	if m.space, err = newSpace(m.dir); err != nil {
		return m, err
	}
	if err = makeGroups(m.group); err != nil {
		return m, fmt.Errorf("control groups: %w", err)
	}
	err = errors.Join(m.write(), m.forward(p.Address(), p.Address()), m.forward(plane.ServiceIP+":443", p.Address()), m.proxy(egress()))
	if err == nil {
		err = m.Start(Containerd)
	}
	if err == nil {
		m.Image(t, pauseImage, program(t, "pause"))
		err = m.Start(Kubelet)
	}
	return m, err
}

// Start starts a part that does not run, and returns when it works.
func (m *Machine) Start(part Part) error {
	if old := m.running[part]; old != nil && !old.Ended() {
		return fmt.Errorf("%s runs already", part)
	}
	env := []string{"PATH=" + m.programs + ":/usr/sbin:/usr/bin:/sbin:/bin", "TMPDIR=" + m.dir}
	p, err := plane.Launch(m.space.do, string(part), m.Log(part), env, filepath.Join(m.programs, string(part)), m.arguments(part)...)
	if err != nil {
		return err
	}
	m.running[part] = p
	var last error
	for end := time.Now().Add(plane.Within); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if last = m.works(part); last == nil {
			return nil
		}
		if p.Ended() {
			break
		}
	}
	p.End(0)
	return fmt.Errorf("%s does not work: %w; its log ends with:\n%s", part, last, plane.Tail(m.Log(part), 30))
}

// Run runs a program of the test's on the machine, as root there, until the test is over.
func (m *Machine) Run(t testing.TB, name, program string, args ...string) *plane.Process {
	t.Helper()
	p, err := plane.Launch(m.space.do, name, filepath.Join(m.dir, name+".log"), nil, program, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.End(0) })
	return p
}

// works asks a part whether it does.
func (m *Machine) works(part Part) error {
	if part == Containerd {
		return m.ctr("version")
	}
	n, err := m.plane.Client().CoreV1().Nodes().Get(context.Background(), m.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
			return nil
		}
	}
	return fmt.Errorf("conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
}

// Kill ends a part as a crash does; what it has started goes on.
func (m *Machine) Kill(part Part) { m.running[part].End(0) }

// Log is where a part's log is.
func (m *Machine) Log(part Part) string { return filepath.Join(m.dir, string(part)+".log") }

// Volume is where an emptyDir of a Pod lies.
func (m *Machine) Volume(pod *corev1.Pod, volume string) string {
	return filepath.Join(m.dir, "kubelet", "pods", string(pod.UID), "volumes", "kubernetes.io~empty-dir", volume)
}

// Directory makes a folder on the machine that belongs to a user, and returns its path there: for a volume.
func (m *Machine) Directory(t testing.TB, name string, user int) string {
	t.Helper()
	path := filepath.Join(m.dir, name)
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, user, user)); err != nil {
		t.Fatal(err)
	}
	return path
}

// Have gives the machine some of an extended resource, which no plugin stands behind.
func (m *Machine) Have(t testing.TB, resource string, n int) {
	t.Helper()
	nodes, patch := m.plane.Client().CoreV1().Nodes(), fmt.Appendf(nil, `{"status": {"capacity": {%q: "%d"}}}`, resource, n)
	if _, err := nodes.Patch(t.Context(), m.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	plane.Eventually(t, "the machine has "+resource, func() (bool, string) {
		node, err := nodes.Get(t.Context(), m.Name, metav1.GetOptions{})
		return err == nil && node.Status.Allocatable.Name(corev1.ResourceName(resource), "").Value() == int64(n), fmt.Sprint(err)
	})
}

// ctr runs containerd's client on the machine.
func (m *Machine) ctr(args ...string) error {
	var said strings.Builder
	cmd := exec.Command(filepath.Join(m.programs, "ctr"), append([]string{"--address", containerdSocket, "--namespace", "k8s.io"},
		args...)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	var err error
	m.space.do(func() { err = cmd.Start() })
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, said.String())
	}
	return nil
}

// end ends the machine, with all that runs there, and removes what it has left.
func (m *Machine) end(keep bool) (err error) {
	for _, part := range []Part{Kubelet, Containerd} {
		if p := m.running[part]; p != nil {
			p.End(0)
		}
	}
	for _, c := range m.closers {
		_ = c.Close()
	}
	if m.space == nil {
		return os.RemoveAll(m.dir)
	}
	m.space.end()
	for end := time.Now().Add(plane.Within); ; time.Sleep(50 * time.Millisecond) { // the kernel takes a moment to bury all
		if err = removeGroups(m.group); err == nil || time.Now().After(end) {
			break
		}
	}
	if gone := m.plane.Client().CoreV1().Nodes().Delete(context.Background(), m.Name, metav1.DeleteOptions{}); !apierrors.IsNotFound(gone) {
		err = errors.Join(err, gone)
	}
	if keep {
		fmt.Fprintf(os.Stderr, "machine: the logs of %s are kept in %s\n", m.Name, m.dir)
		return errors.Join(err, os.RemoveAll(filepath.Join(m.dir, "containerd")), os.RemoveAll(filepath.Join(m.dir, "kubelet")))
	}
	return errors.Join(err, os.RemoveAll(m.dir))
}
