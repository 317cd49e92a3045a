//go:build kubernetes

package measure

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/test/kube/plane"
)

// replay is a trace of the hosts' jobs, placed by Kueue, beside something that fills what they leave.
type replay struct {
	*world
	trace []HostJob
	// The trace is played for ramp before what is measured, and for tail behind it, so that what then runs is seen to end.
	ramp, measured, tail time.Duration
	history              *history
	hosts                string
	began                time.Time
	window               window
	load                 float64
	// made is when each job of the trace was made; zero: it was not, since enough was seen.
	made []time.Time
}

// Queues of Kueue: the hosts', which owns every device, and that of fillers, which owns nothing and borrows.
const (
	hostQueue   = "hosts"
	fillerQueue = "leftovers"
)

// fillers is what fills the gaps: started some seconds after the trace, and stopped when all is over.
type fillers struct {
	name  string
	of    filling
	kueue bool
	start func(*replay)
	stop  func()
}

// newReplay makes machines and queues on a plane.
func newReplay(t testing.TB, p *plane.Plane, by By, machines int, trace []HostJob, ramp, measured, tail time.Duration) *replay {
	t.Helper()
	r := &replay{world: newWorldOf(t, p, by, whole, Load{Machines: machines}), trace: trace, ramp: ramp, measured: measured, tail: tail}
	r.hosts = p.Namespace(t)
	r.template(r.hosts)
	r.template(r.namespace)
	of := r.device.resource
	if by == DRA {
		of = r.device.quota
	}
	p.Queue(t, plane.Queue{Name: hostQueue, Namespaces: []string{r.hosts}, Quota: map[string]int64{of: int64(machines)}, Cohort: "all",
		Reclaims: true})
	p.Queue(t, plane.Queue{Name: fillerQueue, Namespaces: []string{r.namespace}, Quota: map[string]int64{of: 0}, Cohort: "all"})
	r.history = record(t, p.Client())
	return r
}

// job makes a Job of Pods that run so long; queue: Kueue's, if any.
func (r *replay) job(namespace, name, queue, class string, abreast, completions, seconds int) *batchv1.Job {
	n, all, often := int32(abreast), int32(completions), int32(math.MaxInt32) //nolint:gosec // some thousands
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}, Spec: batchv1.JobSpec{
		Parallelism: &n, Completions: &all, BackoffLimit: &often,
		// Who is preempted has not failed: else each makes the next Pod of its Job come later.
		PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionIgnore,
			OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: corev1.DisruptionTarget,
				Status: corev1.ConditionTrue}}}}},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plane.Seconds: strconv.Itoa(
			seconds)}}, Spec: r.spec(class)},
	}}
	if queue != "" {
		suspended := true
		j.Labels[plane.QueueLabel], j.Spec.Suspend = queue, &suspended
	}
	return j
}

func (r *replay) create(j *batchv1.Job) {
	if _, err := r.p.Client().BatchV1().Jobs(j.Namespace).Create(context.Background(), j, metav1.CreateOptions{}); err != nil {
		r.t.Error(err)
	}
}

// nothing fills no gaps.
func nothing() fillers { return fillers{name: "nothing", start: func(*replay) {}, stop: func() {}} }

// startup is what every filler's Pod takes before its first unit, and unit how long one is.
const startup, unit = time.Second, time.Second

// lowPriority are Pods of one Job below all others, as many as there are devices, each with so many units, and all of them lost when it is
// preempted.
func lowPriority(units int) fillers {
	return fillers{name: fmt.Sprintf("a low-priority Job, Pods of %d s", units), of: filling{startup, unit, int64(units)}, stop: func() {},
		start: func(r *replay) {
			r.create(r.job(r.namespace, "filler", "", leftoverClass, len(r.machines), 1_000_000, units+1))
		}}
}

// kueuePreempts are Jobs of one Pod after the other in a queue of Kueue's that borrows what the hosts' leaves, and is preempted when they
// want it back.
func kueuePreempts(units int) fillers {
	return fillers{name: fmt.Sprintf("Kueue, which preempts, Pods of %d s", units), kueue: true, of: filling{startup, unit, int64(units)},
		stop: func() {}, start: func(r *replay) {
			for i := range r.machines {
				r.create(r.job(r.namespace, fmt.Sprintf("filler-%d", i), fillerQueue, "", 1, 1_000_000, units+1))
			}
		}}
}

// ours is Sluice.
func ours(r *replay, notice, reaction time.Duration) fillers {
	s := r.startSluice(notice, unit, reaction)
	s.crowd.startup = startup
	return fillers{name: "Sluice", of: filling{startup: startup, unit: unit},
		start: func(*replay) { s.submit(10, 1_000_000_000, unit, startup) }, stop: func() {
			s.crowd.close()
			plane.Eventually(r.t, "all subjobs have given back", func() (bool, string) {
				n := s.crowd.running()
				return n == 0, fmt.Sprint(n)
			})
			plane.Eventually(r.t, "what Pods said is what counts for their jobs", func() (bool, string) {
				return r.committed()
			})
		}}
}

// committed says whether the jobs' committed units are as many as their Pods have said, each counted once.
func (r *replay) committed() (bool, string) {
	text, err := r.p.Kubectl("-n", r.namespace, "get", "jobs.sluice.dev", "-o", "jsonpath={range .items[*]}{.status.committed} {end}")
	if err != nil {
		return false, err.Error()
	}
	var counted, said int64
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return false, err.Error()
		}
		counted += n
	}
	for _, n := range kept(r.history.of(func(ns string) bool { return ns == r.namespace })) {
		said += n
	}
	return counted == said && said > 0, fmt.Sprintf("%d are committed, Pods have said %d", counted, said)
}

// Replayed is what came of a replay.
type Replayed struct {
	By       By
	Beside   string
	Machines int
	made
	// Gaps are what the hosts left, less what every filler pays for each; Held is the time that they held devices.
	Gaps, Held time.Duration
	Count      int
	// Waits are from the creation of a host's job until all of its Pods ran, Jobs the hosts' jobs within the window.
	Waits *Waits
	Load  float64
}

// run plays the trace.
func (r *replay) run(f fillers) Replayed {
	r.t.Helper()
	r.began = time.Now()
	r.window = window{r.began.Add(r.ramp), r.began.Add(r.ramp + r.measured)}
	r.made = make([]time.Time, len(r.trace))
	enough, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i, j := range r.trace {
			select {
			case <-time.After(time.Until(r.began.Add(j.At))):
			case <-enough:
				return
			}
			r.made[i] = time.Now()
			k := r.job(r.hosts, fmt.Sprintf("host-%05d", i), hostQueue, hostClass, j.Pods, j.Pods, j.Seconds)
			k.Labels[plane.MaxExecution] = strconv.Itoa(2*j.Seconds + 60) // as long as their people say, who say too much
			r.create(k)
		}
	}()
	time.Sleep(r.ramp / 4)
	f.start(r)
	samples := 0
	// What runs when the window closes is seen to end: a Pod that keeps all or nothing takes its time for that.
	tail := min(r.tail, time.Duration(f.of.whole)*f.of.unit+5*time.Second)
	for time.Now().Before(r.window.to.Add(tail)) {
		if now := time.Now(); now.After(r.window.from) && now.Before(r.window.to) {
			r.load, samples = r.load+loadAverage(), samples+1
		}
		time.Sleep(time.Second)
	}
	close(enough)
	<-ended
	f.stop()
	plane.Eventually(r.t, "the end of every subjob is heard of", func() (bool, string) {
		n := 0
		for _, l := range r.history.of(func(ns string) bool { return ns == r.namespace }) {
			if f.of.whole == 0 && !l.runs.IsZero() && l.over.IsZero() {
				n++
			}
		}
		return n == 0, fmt.Sprintf("%d have none", n)
	})
	hosts := r.history.of(func(ns string) bool { return ns == r.hosts })
	gaps := gapsOf(r.machines, hosts, r.window)
	out := Replayed{By: r.by, Beside: f.name, Machines: len(r.machines), Gaps: usable(gaps, startup), Count: len(gaps),
		Waits: r.waits(hosts), Load: r.load / float64(max(1, samples))}
	for _, l := range hosts {
		if l.machine != "" {
			out.Held += r.window.in(l.bound, orNow(l.over))
		}
	}
	mine := r.history.of(func(ns string) bool { return ns == r.namespace })
	out.made = f.of.leftover(mine, r.window)
	r.t.Logf("%s beside %s: %s useful of %s (%.3f) in %d gaps; hosts held %s, load %.1f; %d Pods ended unseen; where the rest went: %s",
		r.by, f.name, out.Useful, out.Gaps, float64(out.Useful)/float64(out.Gaps), len(gaps), out.Held, out.Load, r.history.unseen,
		spentOn(gaps, mine, f.of))
	return out
}

func orNow(at time.Time) time.Time {
	if at.IsZero() {
		return time.Now()
	}
	return at
}

// waits are of the hosts' jobs that came within the window.
func (r *replay) waits(hosts []life) *Waits {
	ran, last := map[string]int{}, map[string]time.Time{}
	for _, l := range hosts {
		if !l.runs.IsZero() {
			ran[l.job]++
			if l.runs.After(last[l.job]) {
				last[l.job] = l.runs
			}
		}
	}
	w := &Waits{}
	for i, j := range r.trace {
		if at := r.made[i]; at.IsZero() || at.Before(r.window.from) || !at.Before(r.window.to) {
			continue
		}
		name := fmt.Sprintf("host-%05d", i)
		if ran[name] < j.Pods {
			w.Never++
			continue
		}
		w.Started = append(w.Started, last[name].Sub(r.made[i]))
	}
	slices.Sort(w.Started)
	return w
}

// loadAverage is the machine's of the last minute; 0 where it says none.
func loadAverage() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	load, _ := strconv.ParseFloat(first, 64)
	return load
}

// spentOn is where the time of gaps went that is not in units: before a filler's Pod was bound, after, and so on.
func spentOn(gaps []gap, fillers []life, f filling) string {
	on := map[string][]life{}
	for _, l := range fillers {
		if l.machine != "" {
			on[l.machine] = append(on[l.machine], l)
		}
	}
	var first, between, binding, starting, rest, last, never time.Duration
	n := 0
	for _, g := range gaps {
		at, pods := g.from, 0
		w := window{g.from, g.to}
		slices.SortFunc(on[g.machine], func(a, b life) int { return a.bound.Compare(b.bound) })
		for _, l := range on[g.machine] {
			over := orNow(l.over)
			if w.in(l.bound, over) == 0 {
				continue
			}
			if pods == 0 {
				first += w.in(at, l.bound)
			} else {
				between += w.in(at, l.bound)
			}
			pods++
			runs := orNow(l.runs)
			binding += w.in(l.bound, runs)
			starting += w.in(runs, earliest(runs.Add(f.startup), over))
			units := l.to - l.from
			if f.whole > 0 && l.succeeded {
				units = f.whole
			}
			rest += w.in(runs.Add(f.startup+f.unit*time.Duration(units)), over)
			at = over
		}
		if pods == 0 {
			never, n = never+g.to.Sub(g.from), n+1
		} else {
			last += w.in(at, g.to)
		}
	}
	return fmt.Sprintf("until the first Pod was bound %s, between Pods %s, from bound to running %s, starting up %s, units begun and "+
		"not kept %s, behind the last Pod %s, in %d gaps without any %s",
		first.Round(time.Second), between.Round(time.Second), binding.Round(time.Second), starting.Round(time.Second),
		rest.Round(time.Second), last.Round(time.Second), n, never.Round(time.Second))
}

// TestReplay plays a small trace beside Sluice: every Pod of the hosts starts, and no unit is done twice.
func TestReplay(t *testing.T) {
	for _, by := range []By{DRA, Extended} {
		t.Run(string(by), func(t *testing.T) {
			const machines, ramp, measured, tail = 10, 6 * time.Second, 20 * time.Second, 2 * time.Second
			trace, of := hostTrace(t, Playing{Devices: machines, Speedup: 240, For: ramp + measured + tail, Load: .6,
				Longest: 8 * time.Hour, Widest: 4})
			p := plane.Start(t, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok, plane.Kueue),
				plane.Leaves(cluster.LabelOperator))
			r := newReplay(t, p, by, machines, trace, ramp, measured, tail)
			got := r.run(ours(r, 5*time.Second, 200*time.Millisecond))
			t.Logf("%d jobs %s", len(trace), of)
			if got.Twice > 0 {
				t.Errorf("%s of work was done twice", got.Twice)
			}
			want := 0
			for i, j := range trace {
				if !r.made[i].IsZero() {
					want += j.Pods
				}
			}
			plane.Eventually(t, "all of the hosts' Pods have started", func() (bool, string) {
				n := 0
				for _, l := range r.history.of(func(ns string) bool { return ns == r.hosts }) {
					if !l.runs.IsZero() {
						n++
					}
				}
				return n == want && n > 0, fmt.Sprintf("%d of %d", n, want)
			})
		})
	}
}
