//go:build kubernetes

package pilots

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/test/kube/plane"
)

// requests finds in the API server's metrics what it has answered about Pods and Secrets, but watches.
var requests = regexp.MustCompile(
	`(?m)^apiserver_request_total\{.*resource="(?:pods|secrets)".*verb="(?:GET|LIST|POST|PUT|PATCH|DELETE)".*\} ([0-9.e+]+)$`)

// answered is how many calls of everybody these are so far, without those by which the test's kubelet and clients look again and again.
func (w *world) answered() (sum int) {
	w.Helper()
	text := w.kubectl("", "get", "--raw", "/metrics")
	for _, x := range requests.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseFloat(x[1], 64)
		if err != nil {
			w.Fatal(err)
		}
		sum += int(n)
	}
	for what, n := range w.wire.Calls() {
		if strings.HasPrefix(what, "GET ") {
			sum -= n
		}
	}
	return sum
}

// rate is how fast n things went through, in all and in each turn, and what they called.
type rate struct {
	n, calls int
	took     time.Duration
	turns    []float64
}

func (r *rate) perSecond() float64 { return float64(r.n) / r.took.Seconds() }

func (r *rate) perOne() float64 { return float64(r.calls) / float64(r.n) }

func (r *rate) add(n int, took time.Duration, calls int) {
	r.n, r.took, r.calls, r.turns = r.n+n, r.took+took, r.calls+calls, append(r.turns, float64(n)/took.Seconds())
}

// beside is the median of a rate's turns as shares of another's in the same turns.
func (r *rate) beside(other *rate) float64 {
	shares := make([]float64, len(r.turns))
	for i := range shares {
		shares[i] = r.turns[i] / other.turns[i]
	}
	return median(shares)
}

// median of numbers, of which there are some.
func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

// watched says of Pods by name when they are over and when they are gone.
type watched struct {
	mu         sync.Mutex
	over, gone map[string]chan struct{}
}

// of is the channel of a name, which is closed once.
func (x *watched) of(all map[string]chan struct{}, name string) chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if all[name] == nil {
		all[name] = make(chan struct{})
	}
	return all[name]
}

func (x *watched) shut(all map[string]chan struct{}, name string) {
	c := x.of(all, name)
	x.mu.Lock()
	defer x.mu.Unlock()
	select {
	case <-c:
	default:
		close(c)
	}
}

// watch watches the Pods of the namespace until ctx is done.
func (w *world) watch(ctx context.Context) *watched {
	w.Helper()
	x := &watched{over: map[string]chan struct{}{}, gone: map[string]chan struct{}{}}
	informer := cache.NewSharedInformer(cache.NewListWatchFromClient(w.clients.CoreV1().RESTClient(), "pods", w.namespace,
		fields.Everything()), &corev1.Pod{}, 0)
	see := func(o any) {
		if p := o.(*corev1.Pod); p.Status.Phase == corev1.PodSucceeded {
			x.shut(x.over, p.Name)
		}
	}
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: see, UpdateFunc: func(_, o any) { see(o) },
		DeleteFunc: func(o any) {
			if d, is := o.(cache.DeletedFinalStateUnknown); is {
				o = d.Obj
			}
			x.shut(x.gone, o.(*corev1.Pod).Name)
		}}); err != nil {
		w.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	cache.WaitForCacheSync(ctx.Done(), informer.HasSynced)
	return x
}

// within waits for a channel to be closed.
func within(c chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-time.After(plane.Within):
		return false
	}
}

// bare makes n Pods, one after the other on each device: it makes one, sees that it is over, deletes it, sees that it is gone.
func (w *world) bare(name string, n int, spec corev1.PodSpec) (time.Duration, int) {
	w.Helper()
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	pods, seen := w.clients.CoreV1().Pods(w.namespace), w.watch(ctx)
	before, began := w.answered(), time.Now()
	next := make(chan int, n)
	for i := range n {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for range devices {
		all.Go(func() {
			for i := range next {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", name, i)}, Spec: *spec.DeepCopy()}
				_, err := pods.Create(ctx, p, metav1.CreateOptions{})
				over := err == nil && within(seen.of(seen.over, p.Name))
				if !over || pods.Delete(ctx, p.Name, metav1.DeleteOptions{}) != nil || !within(seen.of(seen.gone, p.Name)) {
					w.Errorf("Pod %s: %v: over %v", p.Name, err, over)
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(began)
	return took, w.answered() - before
}

// completed counts the jobs whose names begin so that are completed.
func (w *world) completed(prefix string) (n int, err error) {
	text, err := w.client.Sluice("jobs", "--all", "-o", "json")
	if err != nil {
		return 0, err
	}
	var list []struct{ Name, State string }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return 0, err
	}
	for _, j := range list {
		if strings.HasPrefix(j.Name, prefix) && j.State == "COMPLETED" {
			n++
		}
	}
	return n, nil
}

// send submits a file of jobs.
func (w *world) send(text string) {
	w.Helper()
	path := filepath.Join(w.dir, "send.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}
	if _, err := w.client.Insist("submit", "-f", path); err != nil {
		w.Fatal(err)
	}
}

// noops has n jobs of one no-op each run on the pilots that there are.
func (w *world) noops(name string, n int) time.Duration {
	w.Helper()
	var jobs []string
	for i := range n {
		jobs = append(jobs, fmt.Sprintf("apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: %s-%d}\nspec:\n  items: {total: 1, "+
			"perItem: 10ms}\n  memory: 16Mi\n  command: [\"true\"]\n", name, i))
	}
	return w.finish(name, jobs)
}

// units has one job of n no-ops run on the pilots that there are. Each is a process, and reported when it is done.
func (w *world) units(name string, n int) time.Duration {
	w.Helper()
	return w.finish(name, []string{fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s-all}
spec:
  items: {total: %d, perItem: 10ms, parallelism: %d}
  memory: 16Mi
  command:
  - sh
  - -c
  - |
    i=$SLUICE_FROM
    while [ $i -lt $SLUICE_TO ]; do
      /bin/true || exit 1
      i=$((i + 1))
      echo "{\"progress\": $i}" > "$SLUICE_PROGRESS_FILE.new" && mv "$SLUICE_PROGRESS_FILE.new" "$SLUICE_PROGRESS_FILE"
    done
`, name, n, devices)})
}

// finish submits jobs whose names begin so, and returns how long that took until all are completed. It asks seldom whether they are: that
// takes processor time too.
func (w *world) finish(name string, jobs []string) time.Duration {
	w.Helper()
	began := time.Now()
	w.send(strings.Join(jobs, "---\n"))
	for {
		done, err := w.completed(name + "-")
		if err == nil && done == len(jobs) {
			return time.Since(began)
		}
		if time.Since(began) > 2*plane.Within {
			w.Fatalf("%d of %d jobs are completed, %v", done, len(jobs), err)
		}
		time.Sleep(500 * time.Millisecond)
	}
}

// bring starts the head and has all pilots there be, with nothing to do. They are kept busy until all have joined.
func (w *world) bring(name string) {
	w.Helper()
	w.head.start()
	w.until("the head answers", func() error { _, err := w.client.Sluice("nodes"); return err })
	n, enough := w.machines*w.each, filepath.Join(w.dir, name+".enough")
	w.send(fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  items: {total: %d, perItem: 100s, parallelism: %d}
  memory: 16Mi
  command: [sh, -c, 'until [ -e %s ]; do sleep 0.1; done']
`, name, n, n, enough))
	w.until("all pilots are there", func() error {
		out, err := w.client.Sluice("providers", pool, "-o", "json")
		if err != nil || strings.Count(out, `"JOINED"`)+strings.Count(out, `"joined"`) < n {
			return fmt.Errorf("%s, %w", out, err)
		}
		return nil
	})
	if err := os.WriteFile(enough, nil, 0o600); err != nil {
		w.Fatal(err)
	}
	w.until("what brought them is over", func() error {
		if done, err := w.completed(name); err != nil || done == 0 {
			return fmt.Errorf("it is not, %w", err)
		}
		return nil
	})
}

// dismiss waits until all pilots are given back, and ends the head.
func (w *world) dismiss() {
	w.Helper()
	w.until("no pilot is left", func() error {
		if list, err := w.pilots(); err != nil || len(list) > 0 {
			return fmt.Errorf("%d are, %w", len(list), err)
		}
		return nil
	})
	w.head.kill()
}

// TestPilotRates measures no-op subjobs on pilot Pods beside what else could do them on the same devices, in turn: bare Pods, as small as
// can be, and with a pilot's resources, priority and security, and its program alone; and queue workers in Pods of the latter kind. A
// pilot does these no-ops in two ways: as a job each, and as the units of one job, of which a subjob does many.
// SLUICE_KUBE_RATES says how many Pods of each are in a turn, and SLUICE_KUBE_PAGE names the page that is written then; with the few that
// there are otherwise only the calls mean something, and not much.
func TestPilotRates(t *testing.T) {
	n, turns, page := 5, 1, ""
	if text := os.Getenv("SLUICE_KUBE_RATES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("SLUICE_KUBE_RATES=%s: want how many", text)
		}
		turns, page = 3, os.Getenv("SLUICE_KUBE_PAGE")
	}
	w := newWorld(t)
	w.class("sluice-pilots", -1000000, "Never")
	w.bare("warm", devices, w.lean())
	var small, same, queued, ours, one rate
	for turn := range turns {
		took, calls := w.bare(fmt.Sprint("small-", turn), n, w.lean())
		small.add(n, took, calls)
		took, calls = w.bare(fmt.Sprint("same-", turn), n, w.alike())
		same.add(n, took, calls)

		before := w.answered() // what the Pods cost from their first call to their last is the units', for both
		h := w.hire(fmt.Sprint("workers-", turn), 0, "true")
		took = h.do(40 * n) // so many that each takes some time
		h.fire()
		queued.add(40*n, took, w.answered()-before)

		before = w.answered()
		w.bring(fmt.Sprint("come-", turn))
		took = w.noops(fmt.Sprint("noop-", turn), 4*n)
		more := w.units(fmt.Sprint("unit-", turn), 40*n)
		w.dismiss()
		calls = w.answered() - before // the same Pods for both: each has all of their calls
		ours.add(4*n, took, calls)
		one.add(40*n, more, calls)
	}
	row := func(name string, r *rate, target, calls string) string {
		return fmt.Sprintf("| %s | %d | %.1f | %.2f | %s | %.2f | %.2f%s |\n", name, r.n, r.perSecond(), ours.beside(r), target,
			one.beside(r), r.perOne(), calls)
	}
	text := fmt.Sprintf("In turn, %d times, on %d cores; rates beside others are medians of the turns.\n\n"+
		"| no-ops on %d devices | number | a second | subjobs' rate beside it | target | rate of one job's units beside it "+
		"| calls of everybody, each |\n|---|---:|---:|---:|---:|---:|---:|\n%s%s%s%s%s", turns, runtime.NumCPU(), devices,
		row("the smallest bare Pods", &small, "3", ""), row("bare Pods like a pilot's", &same, "5", ""),
		row("units of queue workers in such Pods", &queued, "0.5", ""),
		row("subjobs on pilot Pods, a job each", &ours, "", " (target 0.5)"), row("units of one job on pilot Pods", &one, "", ""))
	t.Log("\n" + text)
	if page != "" && !t.Failed() {
		if err := plane.WritePage(page, "pilot-rates", text); err != nil {
			t.Fatal(err)
		}
	}
}
