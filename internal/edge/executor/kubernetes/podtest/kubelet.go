//go:build kubernetes

package podtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Options of a kubelet.
type Options struct {
	Client kubernetes.Interface
	// Node is the machine that it is; Binds: it is the scheduler too, and gives itself every Pod that no machine has.
	Node  string
	Binds bool
	// Resources it registers its machine with; nil: it does not register one.
	Resources map[string]int64
	// Programs are those of Image, by the path that a container calls them by, where they lie on this machine.
	Programs map[string]string
	Image    string
	// Every is the time between two looks at the Pods. Default 20 ms.
	Every time.Duration
	// Dir is below which it keeps its Pods' folders; empty: in one of the test's. A short one leaves room for paths of sockets.
	Dir string
	// Ahead is how much the clock by which it reports is ahead of this machine's.
	Ahead time.Duration
}

// Kubelet runs the Pods of one machine as processes: their volumes are directories, and paths in their commands lead there. It looks at
// the Pods again and again, and does what a kubelet does: starts, tells annotations, ends at activeDeadlineSeconds and at a deletion, and
// says how all went.
type Kubelet struct {
	o   Options
	dir string

	mu     sync.Mutex
	pods   map[types.UID]*running
	silent bool
	// port is where it serves logs; 0: nowhere.
	port int32
}

// Start starts a kubelet, until the test is over. Whatever it has started then ends with it.
func Start(t testing.TB, o Options) *Kubelet {
	if o.Every == 0 {
		o.Every = 20 * time.Millisecond
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	k := &Kubelet{o: o, dir: o.Dir, pods: map[types.UID]*running{}}
	t.Cleanup(func() { _ = foreign.Remove(k.dir) }) // what a program has made so that nobody may remove it, too
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	if o.Resources != nil {
		k.serveLogs(t)
		if err := k.Register(ctx); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = o.Client.CoreV1().Nodes().Delete(context.Background(), o.Node, metav1.DeleteOptions{}) })
		all.Go(func() { k.beat(ctx) })
	}
	all.Go(func() {
		for ctx.Err() == nil {
			k.look(ctx, &all)
			select {
			case <-time.After(k.o.Every):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		k.mu.Lock()
		for _, r := range k.pods {
			r.kill()
		}
		k.mu.Unlock()
		all.Wait()
	})
	return k
}

// Silence has the machine lose its way to the API server, or find it again: what runs there goes on.
func (k *Kubelet) Silence(silent bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.silent = silent
}

// Kill ends all processes of a Pod as SIGKILL does.
func (k *Kubelet) Kill(name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if r.name == name {
			r.kill()
		}
	}
}

// Dir is where a Pod's volume lies; empty: there is none.
func (k *Kubelet) Dir(name, volume string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.pods {
		if r.name == name {
			return filepath.Join(r.dir, volume)
		}
	}
	return ""
}

func (k *Kubelet) look(ctx context.Context, all *sync.WaitGroup) {
	if k.isSilent() {
		return
	}
	list, err := k.o.Client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	there := map[types.UID]bool{}
	for i := range list.Items {
		p := &list.Items[i]
		there[p.UID] = true
		if p.Spec.NodeName == "" && k.o.Binds && p.DeletionTimestamp == nil {
			k.bind(ctx, p)
			continue
		}
		if p.Spec.NodeName != k.o.Node || over(p) {
			continue
		}
		k.mu.Lock()
		r := k.pods[p.UID]
		if r == nil {
			r = &running{k: k, name: p.Name, dir: filepath.Join(k.dir, string(p.UID)), ended: make(chan struct{})}
			r.volumes = volumes{client: k.o.Client, every: k.o.Every, dir: r.dir, toEnd: r.toEnd}
			k.pods[p.UID] = r
			r.update(p)
			all.Go(func() { defer close(r.ended); r.run(ctx, p) })
		}
		k.mu.Unlock()
		r.update(p)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for id, r := range k.pods {
		if !there[id] && !r.isOver() { // it was removed, whatever it did
			r.kill()
		}
	}
}

// now is the time by its clock.
func (k *Kubelet) now() metav1.Time { return metav1.NewTime(time.Now().Add(k.o.Ahead)) }

func (k *Kubelet) isSilent() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.silent
}

func (k *Kubelet) bind(ctx context.Context, p *corev1.Pod) {
	data := fmt.Appendf(nil, `{"spec":{"nodeName":%q},"metadata":{"uid":%q}}`, k.o.Node, p.UID)
	_, _ = k.o.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{})
}

// say puts a status to the API server, until it takes it or the Pod is gone.
func (k *Kubelet) say(ctx context.Context, p *corev1.Pod, status *corev1.PodStatus) {
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		panic(err)
	}
	for ctx.Err() == nil {
		if !k.isSilent() {
			_, err := k.o.Client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.StrategicMergePatchType, data, metav1.PatchOptions{},
				"status")
			if err == nil || gone(err) {
				return
			}
		}
		time.Sleep(k.o.Every)
	}
}

// mark is the entry in its environment by which a Pod's process is told from all others.
func mark(id types.UID, dir string) string { return "PODTEST_POD=" + filepath.Join(dir, string(id)) }

// kill ends all processes of the Pod.
func (r *running) kill() {
	tree.End(func() []tree.Process { return tree.Marked("PODTEST_POD=" + r.dir) }, 10*time.Second)
}

// isOver reports whether it has ended, and none of it is started any more.
func (r *running) isOver() bool {
	select {
	case <-r.ended:
		return true
	default:
		return false
	}
}

func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", data, 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Register makes the machine's object, at first or where somebody has deleted it, and says that it is ready.
func (k *Kubelet) Register(ctx context.Context) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.o.Node, Labels: map[string]string{corev1.LabelHostname: k.o.Node}}}
	if _, err := k.o.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return err
	}
	return k.ready(ctx)
}

// beat says that the machine is ready, again and again, unless it is silent.
func (k *Kubelet) beat(ctx context.Context) {
	for {
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return
		}
		if !k.isSilent() {
			_ = k.ready(ctx) // or the next time
		}
	}
}

// ready says that the machine is, and what it has.
func (k *Kubelet) ready(ctx context.Context) error {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110")}
	for name, n := range k.o.Resources {
		room[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	now := k.now()
	status := corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
	}, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: k.port}}}
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err)
	}
	_, err = k.o.Client.CoreV1().Nodes().Patch(ctx, k.o.Node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	return err
}

// serveLogs is what the API server asks for a Pod's logs: the way of a kubelet's own server, and no more of it.
func (k *Kubelet) serveLogs(t testing.TB) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.logs)
	s := httptest.NewTLSServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	k.port = int32(s.Listener.Addr().(*net.TCPAddr).Port)
}

// logs sends what a container wrote, with ?follow=true until its Pod has ended.
func (k *Kubelet) logs(w http.ResponseWriter, req *http.Request) {
	var r *running
	k.mu.Lock()
	for _, one := range k.pods {
		if one.name == req.PathValue("pod") {
			r = one
		}
	}
	k.mu.Unlock()
	if r == nil {
		http.Error(w, "no such Pod here", http.StatusNotFound)
		return
	}
	f, err := os.Open(filepath.Join(r.dir, req.PathValue("container")+".log"))
	if err != nil {
		http.Error(w, "container is waiting to start: ContainerCreating", http.StatusBadRequest)
		return
	}
	defer func() { _ = f.Close() }()
	for last := false; ; {
		if _, err := io.Copy(w, f); err != nil || last || req.FormValue("follow") != "true" {
			return
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.ended:
			last = true
		case <-time.After(k.o.Every):
		case <-req.Context().Done():
			return
		}
	}
}

// running is a Pod on this machine.
type running struct {
	k         *Kubelet
	name, dir string
	ended     chan struct{} // closed once it has ended
	volumes   volumes

	mu sync.Mutex
	// started is when it was taken on, deadline how long it may run from then, 0: for ever.
	started  time.Time
	deadline time.Duration
	grace    time.Duration
	// deleted is set once it is to end, with the grace of the deletion.
	deleted *time.Duration
	// orders are the files of annotations as they were written, late that it has passed its deadline.
	orders map[string]string
	late   bool
}

// update takes over what is wanted of the Pod, and shows its annotations.
func (r *running) update(p *corev1.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := p.Spec.ActiveDeadlineSeconds; d != nil {
		r.deadline = time.Duration(*d) * time.Second
	}
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		r.grace = time.Duration(*g) * time.Second
	}
	for _, v := range p.Spec.Volumes {
		if v.DownwardAPI == nil {
			continue
		}
		for _, item := range v.DownwardAPI.Items {
			key := strings.TrimSuffix(strings.TrimPrefix(item.FieldRef.FieldPath, "metadata.annotations['"), "']")
			path, text := filepath.Join(r.dir, v.Name, item.Path), p.Annotations[key]
			if was, ok := r.orders[path]; !ok || was != text {
				if write(path, []byte(text)) == nil {
					if r.orders == nil {
						r.orders = map[string]string{}
					}
					r.orders[path] = text
				}
			}
		}
	}
	if p.DeletionTimestamp != nil {
		g := time.Duration(*p.DeletionGracePeriodSeconds) * time.Second
		r.deleted = &g
	}
}

// run does all that is done for a Pod, and says how it ended.
func (r *running) run(ctx context.Context, p *corev1.Pod) {
	r.mu.Lock()
	r.started = time.Now()
	r.mu.Unlock()
	start := r.k.now()
	status := corev1.PodStatus{Phase: corev1.PodPending, StartTime: &start}
	for _, c := range p.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}})
	}
	r.k.say(ctx, p, &status)
	code := 0
	err := r.volumes.furnish(ctx, p)
	for i := range p.Spec.InitContainers {
		if err == nil {
			code, _, err = r.contain(ctx, p, &p.Spec.InitContainers[i], func() {})
		}
		if err == nil && code != 0 {
			err = errors.New("an init container has failed")
		}
	}
	state := &corev1.ContainerStateTerminated{ExitCode: 128, Reason: "ContainerStatusUnknown"}
	if err == nil {
		var began metav1.Time // zero: its container was not started
		told := make(chan struct{})
		var message string
		code, message, err = r.contain(ctx, p, &p.Spec.Containers[0], func() {
			began = r.k.now()
			now := status
			now.Phase = corev1.PodRunning
			now.ContainerStatuses = slices.Clone(status.ContainerStatuses)
			now.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}
			go func() { // what runs is watched over meanwhile
				defer close(told)
				r.k.say(ctx, p, &now)
			}()
		})
		if finished := r.k.now(); !began.IsZero() {
			<-told
			state = &corev1.ContainerStateTerminated{ExitCode: int32(code), Message: message, StartedAt: began, FinishedAt: finished}
		}
	}
	status.Phase = corev1.PodSucceeded
	if err != nil || code != 0 {
		status.Phase = corev1.PodFailed
	}
	if err != nil {
		status.Message = err.Error()
	}
	r.mu.Lock()
	if r.late {
		status.Reason = "DeadlineExceeded"
	}
	r.mu.Unlock()
	status.ContainerStatuses = slices.Clone(status.ContainerStatuses)
	status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: state}
	r.k.say(ctx, p, &status)
	for ctx.Err() == nil { // as a kubelet does: it removes what it is done with, if that is asked for
		now, err := r.k.o.Client.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
		if gone(err) || err == nil && now.UID != p.UID {
			return
		}
		if err == nil && now.DeletionTimestamp != nil && !r.k.isSilent() {
			zero := int64(0)
			if r.k.o.Client.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero,
				Preconditions: metav1.NewUIDPreconditions(string(p.UID))}) == nil {
				return
			}
		}
		select {
		case <-time.After(r.k.o.Every):
		case <-ctx.Done():
		}
	}
}

// toEnd says why the Pod is to end, empty: it is not.
func (r *running) toEnd() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.deleted != nil:
		return "it was deleted"
	case r.deadline > 0 && time.Since(r.started) > r.deadline:
		r.late = true
		return "its deadline has passed"
	}
	return ""
}

// contain runs one container, and returns its exit code and its termination message.
func (r *running) contain(ctx context.Context, p *corev1.Pod, c *corev1.Container, began func()) (int, string, error) {
	if why := r.toEnd(); why != "" {
		return 0, "", errors.New(why)
	}
	for _, m := range c.VolumeMounts { // as runc says it: a directory can't be mounted on a program of the image
		if _, file := r.k.o.Programs[m.MountPath]; file && c.Image == r.k.o.Image {
			return 0, "", errors.New("error mounting " + m.MountPath + ": not a directory")
		}
	}
	end := filepath.Join(r.dir, c.Name+".end")
	if err := write(end, nil); err != nil {
		return 0, "", err
	}
	args := make([]string, len(c.Command))
	for i, arg := range c.Command {
		args[i] = r.local(arg, c, end)
	}
	if at, ok := r.k.o.Programs[args[0]]; ok {
		args[0] = at
	}
	log, err := os.OpenFile(filepath.Join(r.dir, c.Name+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), mark(p.UID, r.k.dir)}
	for _, e := range c.Env {
		value, failed := r.volumes.value(ctx, p, &e)
		if failed != nil {
			return 0, "", failed
		}
		cmd.Env = append(cmd.Env, e.Name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err = cmd.Start(); err != nil {
		return 0, "", err
	}
	began()
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait() // its state says how
		close(over)
	}()
	again := time.NewTicker(r.k.o.Every)
	defer again.Stop()
	var termed time.Time
	for {
		select {
		case <-over:
			r.kill() // a container ends with its first process
			said, _ := os.ReadFile(end)
			return code(cmd.ProcessState), string(said[:min(len(said), 4096)]), nil
		case <-again.C:
			if why := r.toEnd(); why != "" {
				if termed.IsZero() {
					termed = time.Now()
					_ = cmd.Process.Signal(syscall.SIGTERM)
				}
				if time.Since(termed) > r.patience() {
					r.kill()
				}
			}
		case <-ctx.Done():
			r.kill()
			<-over
			return 0, "", ctx.Err()
		}
	}
}

func (r *running) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.deleted != nil {
		return *r.deleted
	}
	return r.grace
}

func code(s *os.ProcessState) int {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal())
	}
	return s.ExitCode()
}

// local is where a path of a container lies on this machine.
func (r *running) local(path string, c *corev1.Container, end string) string {
	if path == c.TerminationMessagePath && path != "" {
		return end
	}
	best := ""
	for _, m := range c.VolumeMounts {
		if (path == m.MountPath || strings.HasPrefix(path, m.MountPath+"/")) && len(m.MountPath) > len(best) {
			best = m.MountPath
		}
	}
	for _, m := range c.VolumeMounts {
		if m.MountPath == best && best != "" {
			return filepath.Join(r.dir, m.Name, strings.TrimPrefix(path, best))
		}
	}
	return path
}
