//go:build kubernetes

package podtest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
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
	k := &Kubelet{o: o, dir: t.TempDir(), pods: map[types.UID]*running{}}
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

// isOver reports whether it has ended, and nothing of it is started any more.
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
