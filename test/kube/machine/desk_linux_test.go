//go:build kubernetes && machine

package machine_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	pods "sluice.dev/sluice/internal/edge/executor/kubernetes"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// desk is a node's side of an executor on the machine.
type desk struct {
	*world
	ex *pods.Executor

	mu      sync.Mutex
	results map[job.Token]job.Result
	starts  map[job.Token]quantity.Instant
	reached map[job.Token]int64
}

func newDesk(t *testing.T) *desk {
	d := &desk{world: newWorld(t), results: map[job.Token]job.Result{}, starts: map[job.Token]quantity.Instant{},
		reached: map[job.Token]int64{}}
	d.ex = d.Open(d.hear)
	t.Cleanup(func() {
		_ = d.ex.Close()
		if t.Failed() {
			out, err := d.p.Kubectl("-n", d.Namespace, "get", "pods,events", "-o", "yaml")
			t.Log(out, err)
		}
	})
	if _, err := d.ex.Find(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// again ends the executor, and begins another.
func (d *desk) again() {
	d.Helper()
	_ = d.ex.Close()
	d.ex = d.Open(d.hear)
	if _, err := d.ex.Find(d.Context()); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) hear(m protocol.Message) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch b := m.Body.(type) {
	case *protocol.Beginning:
		d.starts[m.Token] = b.At
	case *protocol.Conclusion:
		d.results[m.Token] = *b.Result
	case *protocol.Observation:
		d.reached[m.Token] = b.Progress
	}
}

func tok(n int) job.Token { return job.Token{Epoch: 1, Seq: uint64(n)} }

// start starts a subjob of ten units, which has ten minutes for them and a grace of 5 s.
func (d *desk) start(t job.Token, change func(*protocol.Work), command ...string) {
	at := quantity.At(time.Now())
	w := &protocol.Work{Placement: protocol.Placement{Slice: "main/machine/0", Range: job.Range{To: 10}, Start: at,
		End: at.Add(10 * time.Minute)}, Spec: &job.Spec{
		Name: "train", Kind: job.Items, Total: 10, Grid: 1, Slices: 1,
		Launch: job.Launch{Image: programImage, Command: append([]string{"/program"}, command...), Grace: 5 * time.Second},
	}}
	if change != nil {
		change(w)
	}
	d.ex.Do(protocol.Message{Kind: protocol.Start, Token: t, Job: "train", Generation: 1, Body: w}, journal.Position{Seq: t.Seq})
}

// result waits for how a subjob ended.
func (d *desk) result(t job.Token) (r job.Result) {
	d.Helper()
	for end := time.Now().Add(4 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		d.mu.Lock()
		got, there := d.results[t]
		d.mu.Unlock()
		if there {
			return got
		}
	}
	d.Fatalf("subjob %v has not ended within four minutes", t)
	return r
}

// reaches waits until it is told that a subjob has completed so many units.
func (d *desk) reaches(t job.Token, n int64) {
	d.Helper()
	d.Until("subjob "+t.String()+" has got there", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.reached[t] >= n })
}

// terminated is how the kubelet says that the container of a subjob ended.
func (d *desk) terminated(t job.Token) (c corev1.ContainerStateTerminated) {
	if p := d.Pod(t); p != nil && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].State.Terminated != nil {
		return *p.Status.ContainerStatuses[0].State.Terminated
	}
	return c
}

// settle has a subjob put away, and waits until nothing of it is left in the cluster.
func (d *desk) settle(t job.Token, r job.Range) {
	d.Helper()
	d.ex.Do(protocol.Message{Kind: protocol.Settle, Token: t, Job: "train", Body: &protocol.Settlement{Range: r, Committed: !r.Empty()}},
		journal.Position{})
	d.Until("the Pod is gone", func() bool { return d.Pod(t) == nil })
}

// outputs is what the job's committed outputs have in their file out.
func (d *desk) outputs() (all string) {
	d.Helper()
	list, err := d.ex.Files().Outputs("train")
	if err != nil {
		d.Fatal(err)
	}
	for _, o := range list {
		r, err := d.Store.Open(d.Context(), store.Digest(strings.TrimPrefix(o.Path, store.Scheme)))
		if err != nil {
			d.Fatal(err)
		}
		dir := filepath.Join(d.TempDir(), "tree")
		if _, _, err = tree.Restore(r, dir, tree.Limits{Bytes: 1 << 20, Entries: 100}); err != nil {
			d.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(dir, "out"))
		if err != nil {
			d.Fatal(err)
		}
		all += string(data)
	}
	return all
}

// limits gives every container of the namespace limits that it does not ask for.
func (d *desk) limits(limits corev1.ResourceList) {
	d.Helper()
	_, err := d.Client.CoreV1().LimitRanges(d.Namespace).Create(d.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "limits"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Default: limits,
			DefaultRequest: limits}}},
	}, metav1.CreateOptions{})
	if err != nil {
		d.Fatal(err)
	}
}
