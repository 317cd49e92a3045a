//go:build kubernetes

package pilots

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	provider "sluice.dev/sluice/internal/edge/provider/kubernetes"
	"sluice.dev/sluice/test/kube/plane"
)

// wish is when a Pod of higher priority comes for the device of a machine, and how many seconds it keeps it.
type wish struct {
	at      time.Duration
	machine int
	seconds int
}

// wishes draws, for each round, a wish for each of half of the machines, which come in the first half of the round. The same seed gives
// the same wishes.
func wishes(seed uint64, rounds int, round time.Duration, machines, seconds int) (all []wish) {
	random := rand.New(rand.NewPCG(seed, 0))
	for r := range rounds {
		for _, m := range random.Perm(machines)[:(machines+1)/2] {
			at := time.Duration(r)*round + time.Duration(random.Int64N(int64(round/2)))
			all = append(all, wish{at, m, seconds/2 + random.IntN(seconds/2+1)})
		}
	}
	return all
}

// meter is what an observer of the API server sees of Pods that are not of higher priority: from when to when each had its device.
type meter struct {
	mu   sync.Mutex
	pods map[types.UID]*span
}

// span is that of one Pod; until is zero while it has its device.
type span struct {
	from, until time.Time
	preempted   bool
}

// measure observes the Pods of the namespace until the test is over.
func (w *world) measure() *meter {
	w.Helper()
	m := &meter{pods: map[types.UID]*span{}}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(w.clients.CoreV1().RESTClient(), "pods", w.namespace,
		fields.Everything()), &corev1.Pod{}, 0)
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { m.see(o, false) },
		UpdateFunc: func(_, o any) { m.see(o, false) },
		DeleteFunc: func(o any) {
			if d, is := o.(cache.DeletedFinalStateUnknown); is {
				o = d.Obj
			}
			m.see(o, true)
		}}); err != nil {
		w.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { informer.RunWithContext(ctx) })
	w.Cleanup(func() { stop(); done.Wait() })
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	return m
}

func (m *meter) see(o any, gone bool) {
	p, now := o.(*corev1.Pod), time.Now()
	if _, owner := p.Labels[labelOwner]; owner || p.Spec.NodeName == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.pods[p.UID]
	if s == nil {
		s = &span{from: now}
		m.pods[p.UID] = s
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Reason == corev1.PodReasonPreemptionByScheduler {
			s.preempted = true
		}
	}
	if s.until.IsZero() && (gone || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed) {
		s.until = now
	}
}

// sum is how many Pods had a device, how many of these were preempted, how many have one now, and for how long all had one.
func (m *meter) sum() (pods, preempted, now int, held time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.pods {
		if pods++; s.preempted {
			preempted++
		}
		if s.until.IsZero() {
			now++
			continue
		}
		held += s.until.Sub(s.from)
	}
	return pods, preempted, now, held
}

// play has Pods of higher priority come as wishes say, until the last of them is over, and returns the longest that one waited to run.
func (w *world) play(list []wish) (longest time.Duration) {
	w.Helper()
	began := time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, x := range list {
		all.Go(func() {
			time.Sleep(time.Until(began.Add(x.at)))
			waited, err := w.serve(w.owner(1, w.machine(x.machine), x.seconds))
			if err != nil {
				w.Errorf("%+v: %v", x, err)
			}
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, waited)
		})
	}
	all.Wait()
	return longest
}

// serve makes a Pod, and returns when it is over and deleted, and how long it waited until it ran.
func (w *world) serve(p *corev1.Pod) (waited time.Duration, err error) {
	pods, began := w.clients.CoreV1().Pods(w.namespace), time.Now()
	made, err := pods.Create(context.Background(), p, metav1.CreateOptions{})
	if err != nil {
		return 0, err
	}
	for {
		now, err := pods.Get(context.Background(), made.Name, metav1.GetOptions{})
		if err != nil {
			return waited, err
		}
		if waited == 0 && now.Status.Phase != corev1.PodPending {
			waited = time.Since(began)
		}
		if now.Status.Phase == corev1.PodSucceeded {
			return waited, pods.Delete(context.Background(), made.Name, metav1.DeleteOptions{})
		}
		if time.Since(began) > plane.Within {
			return waited, fmt.Errorf("Pod %s is %s after %v", made.Name, now.Status.Phase, plane.Within)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// working is the program of a job whose units take so long: each is a process of its own. Told to end it finishes the one that it is at
// and yields. With a checkpoint for each unit it can go on elsewhere from there.
func (w *world) working(takes time.Duration, checkpoints bool) string {
	kept := ""
	if checkpoints {
		kept = `echo "$SLUICE_JOB" > "$SLUICE_CHECKPOINT_DIR/state-$((i + 1))"; `
	}
	return fmt.Sprintf(`trap 'told=1' TERM; i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ] && [ -z "$told" ]; do `+
		`(trap '' TERM; exec sleep %g) || exit 1; line="$i $SLUICE_SUBJOB here"; echo "$line" >> "%s/$SLUICE_JOB"; `+
		`echo "$line" >> "$SLUICE_OUTPUT_DIR/units"; %si=$((i + 1)); `+
		`echo "{\"progress\": $i, \"checkpoint\": %v}" > "$SLUICE_PROGRESS_FILE.new"; `+
		`mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"; done; [ $i = $SLUICE_TO ] || exit 85`,
		takes.Seconds(), w.client.Witnesses, kept, checkpoints)
}

// items is a job of n units that take so long.
func (w *world) items(name string, n int, takes time.Duration) string {
	return w.jobOf(name, fmt.Sprintf("items: {total: %d, perItem: %v, parallelism: %d}", n, takes, w.machines*w.each),
		w.working(takes, false))
}

// steps is a job that is one unit, which is saved each second.
func (w *world) steps(name string, takes time.Duration) string {
	return w.jobOf(name, fmt.Sprintf("steps: {total: %d, perStep: 1s, every: 1, restore: 50ms, checkpoint: 50ms}", takes/time.Second),
		w.working(time.Second, true))
}

func (w *world) jobOf(name, work, script string) string {
	text, err := json.Marshal(script) // YAML takes it
	if err != nil {
		w.Fatal(err)
	}
	return fmt.Sprintf("apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  %s\n  startup: 100ms\n  memory: 16Mi\n"+
		"  grace: 3s\n  command: [sh, -c, %s]\n", name, work, text)
}

// unitOf is what a queue worker runs: a process that takes so long, and then writes unit and token to a witness.
func unitOf(takes time.Duration, seen string) []string {
	return []string{"sh", "-c", fmt.Sprintf(`sleep %g && echo "$QUEUE_UNIT $QUEUE_TOKEN" >> "$1"`, takes.Seconds()), "sh", seen}
}

// progress is the sum of what is committed of all jobs whose names begin so, and of their subjobs that run.
func (w *world) progress(prefix string) (committed, running int, err error) {
	text, err := w.client.Sluice("jobs", "--all", "-o", "json")
	if err != nil {
		return 0, 0, err
	}
	var list []struct {
		Name     string
		Progress json.Number
		Running  int
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return 0, 0, err
	}
	for _, j := range list {
		if !strings.HasPrefix(j.Name, prefix) {
			continue
		}
		n := int64(0)
		if j.Progress != "" {
			if n, err = j.Progress.Int64(); err != nil {
				return 0, 0, err
			}
		}
		committed, running = committed+int(n), running+j.Running
	}
	return committed, running, nil
}

// cordon lets no Pod onto any machine any more, or again.
func (w *world) cordon(closed bool) {
	w.Helper()
	for i := range w.machines {
		if _, err := w.clients.CoreV1().Nodes().Patch(context.Background(), w.machine(i), types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, closed), metav1.PatchOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

// end tells all pilots to end, lets no other come, and returns when they are gone.
func (w *world) end() {
	w.Helper()
	w.cordon(true)
	if err := w.clients.CoreV1().Pods(w.namespace).DeleteCollection(context.Background(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: provider.LabelPool}); err != nil {
		w.Fatal(err)
	}
	w.until("no pilot has a device", func() error {
		list, err := w.pilots()
		for i := range list {
			if err == nil && list[i].Spec.NodeName != "" {
				err = fmt.Errorf("pilot %s has", list[i].Name)
			}
		}
		return err
	})
}

// TestUnitsUnderPreemption: units of a job on pilots, and of queue workers in such Pods, are all committed, each once, while others take
// devices of half of the Pods.
func TestUnitsUnderPreemption(t *testing.T) {
	const n, takes = 20, 400 * time.Millisecond
	w := newWorldOf(t, shape{machines: 2, each: 1, lengths: "10m"})
	w.class("sluice-pilots", -1000000, "Never")
	w.class("owners", 1000, "PreemptLowerPriority")
	list := wishes(1, 1, 3*time.Second, w.machines, 2)
	took := func(what string, m *meter, redone int) {
		pods, preempted, _, _ := m.sum()
		t.Logf("%s: %d Pods, of which %d were preempted; %d units done again", what, pods, preempted, redone)
		if preempted == 0 {
			t.Errorf("%s: nothing was preempted: the run has not shown what it is for", what)
		}
	}

	m, seen := w.measure(), filepath.Join(w.dir, "seen")
	h := w.hire("workers", takes, unitOf(takes, seen)...)
	var all sync.WaitGroup
	all.Go(func() { w.play(list) })
	h.do(n)
	all.Wait()
	h.fire()
	took("queue workers", m, h.judge(n, seen))

	m = w.measure()
	w.bring("come")
	w.client.Units = n
	w.send(w.items("units", n, takes))
	w.until("both pilots work", func() error {
		committed, running, err := w.progress("units")
		if err == nil && running < w.machines && committed < n {
			err = fmt.Errorf("%d do", running)
		}
		return err
	})
	w.play(list)
	w.until("all units are committed", func() error {
		if done, err := w.completed("units"); err != nil || done == 0 {
			return fmt.Errorf("they are not, %w", err)
		}
		return nil
	})
	history := w.client.History("units")
	for _, wrong := range history.Wrong {
		t.Error(wrong)
	}
	w.dismiss()
	took("pilots", m, int(history.Redone))
	if text, err := os.ReadFile(filepath.Join(w.client.Witnesses, "units")); err != nil || strings.Count(string(text), "\n") < n {
		t.Errorf("the witness has %q, %v", text, err)
	}
}
