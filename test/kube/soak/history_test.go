//go:build kubernetes

package soak

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"sluice.dev/sluice/internal/edge/cluster"
)

// history is the lives of all Pods of a namespace that ask for a slice, as a watch of the soak's own sees them.
type history struct {
	mu    sync.Mutex
	lives map[types.UID]*life
}

// record watches until the test is over. It does not stay away as an informer does after its watch was cut: what comes and goes meanwhile
// it would not have seen.
func record(t *testing.T, client kubernetes.Interface, namespace string) *history {
	t.Helper()
	h := &history{lives: map[types.UID]*life{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			h.watch(ctx, client.CoreV1().Pods(namespace))
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return h
}

// watch sees all Pods that there are, and what becomes of them until it is cut.
func (h *history) watch(ctx context.Context, pods typedcorev1.PodInterface) {
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range list.Items {
		h.see(&list.Items[i])
	}
	w, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		return
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if p, is := e.Object.(*corev1.Pod); is {
			h.see(p)
		}
	}
}

func (h *history) see(p *corev1.Pod) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lives[p.UID]
	if l == nil {
		l = &life{name: p.Name, uid: string(p.UID)}
		h.lives[p.UID] = l
		var run struct {
			End   int64
			Grace time.Duration
		}
		if json.Unmarshal([]byte(p.Annotations[cluster.AnnotationRun]), &run) == nil {
			l.token, l.slice = p.Labels[cluster.LabelToken], p.Annotations[cluster.AnnotationSlice]
			l.end, l.patience = time.Unix(0, run.End), run.Grace+linger
		}
	}
	if p.Spec.NodeName != "" {
		l.machine = p.Spec.NodeName
	}
	for i := range p.Status.ContainerStatuses {
		switch s := &p.Status.ContainerStatuses[i].State; {
		case s.Running != nil:
			l.start = s.Running.StartedAt.Time
		case s.Terminated != nil && !s.Terminated.StartedAt.IsZero():
			l.start, l.finish = s.Terminated.StartedAt.Time, s.Terminated.FinishedAt.Time
		}
	}
}

func (h *history) list() (list []life) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.lives {
		list = append(list, *l)
	}
	return list
}

// readNotes are the notes of all programs, by job.
func readNotes(dir string) (map[string][]note, error) {
	files, err := os.ReadDir(dir)
	notes := map[string][]note{}
	for _, f := range files {
		text, failed := os.ReadFile(filepath.Join(dir, f.Name()))
		if failed != nil {
			return nil, failed
		}
		notes[f.Name()] = parseNotes(string(text))
	}
	return notes, err
}
