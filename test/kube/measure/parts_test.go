//go:build kubernetes

package measure

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/edge/cluster"
)

// trails notes when what was seen of the hosts' Pods and of the subjobs on their machines, so that a wait can be taken apart.
type trails struct {
	mu    sync.Mutex
	hosts map[string]*trail
	// fillers are the subjobs' Pods of each machine, in the order in which they were first seen.
	fillers map[string][]*filler
	known   map[string]*filler
}

// trail is a host's Pod: when it was created, first refused by the scheduler, bound and running. Zero: never.
type trail struct {
	name, machine                   string
	created, refused, bound, starts time.Time
	// nominations are all machines that it was nominated for, in order.
	nominations []nominated
}

// nominated is on which machine the scheduler made room, and when that was seen.
type nominated struct {
	machine string
	at      time.Time
}

// filler is a subjob's Pod: when it was first seen on its machine, told to end, by its deletion or by an order, and over.
type filler struct{ bound, told, over time.Time }

// follow watches subjobs' Pods until the test is over.
func follow(ctx context.Context, t testing.TB, w *world) *trails {
	t.Helper()
	x := &trails{hosts: map[string]*trail{}, fillers: map[string][]*filler{}, known: map[string]*filler{}}
	factory := informers.NewSharedInformerFactoryWithOptions(w.p.Client(), 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = cluster.LabelOperator }))
	pods := factory.Core().V1().Pods().Informer()
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: x.filler,
		UpdateFunc: func(_, o any) { x.filler(o) }}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return x
}

func (x *trails) filler(o any) {
	p, is := o.(*corev1.Pod)
	if !is || p.Spec.NodeName == "" {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.known[string(p.UID)]
	if f == nil {
		f = &filler{bound: time.Now()}
		x.known[string(p.UID)] = f
		x.fillers[p.Spec.NodeName] = append(x.fillers[p.Spec.NodeName], f)
	}
	_, told := cut(p)
	note(&f.told, told)
	note(&f.over, p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
}

// note sets an instant the first time that it is reached.
func note(at *time.Time, reached bool) {
	if reached && at.IsZero() {
		*at = time.Now()
	}
}

// made notes that a host's Pod is about to be created.
func (x *trails) made(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hosts[name] = &trail{name: name, created: time.Now()}
}

// host notes what is seen of a host's Pod.
func (x *trails) host(p *corev1.Pod) {
	x.mu.Lock()
	defer x.mu.Unlock()
	h := x.hosts[p.Name]
	if h == nil {
		return
	}
	note(&h.refused, slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable
	}))
	if m := p.Status.NominatedNodeName; m != "" && p.Spec.NodeName == "" &&
		(len(h.nominations) == 0 || h.nominations[len(h.nominations)-1].machine != m) {
		h.nominations = append(h.nominations, nominated{m, time.Now()})
	}
	note(&h.bound, p.Spec.NodeName != "")
	note(&h.starts, p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded)
	h.machine = p.Spec.NodeName
}

// Part is one stretch of the waits of the hosts' Pods that have it, ascending.
type Part struct {
	Name string
	Took []time.Duration
}

// victims says which filler made room for each Pod that has started. Of those that were nominated for the machine on which they run they
// are in the order in which these were told; for others it is the last there that was over before the Pod was bound, if it was not when the
// Pod came. A Pod without one took what was free.
func (x *trails) victims(hosts []*trail) map[*trail]*filler {
	victim, taken := map[*trail]*filler{}, map[*filler]bool{}
	last := func(h *trail) time.Time {
		if n := len(h.nominations); n > 0 && h.nominations[n-1].machine == h.machine {
			return h.nominations[n-1].at
		}
		return time.Time{}
	}
	for _, h := range slices.SortedFunc(slices.Values(hosts), func(a, b *trail) int { return last(a).Compare(last(b)) }) {
		var by *filler
		for _, f := range x.fillers[h.machine] {
			switch at := last(h); {
			case taken[f] || f.over.IsZero() || !f.over.After(h.created) || !f.over.Before(h.bound):
			case at.IsZero() && (by == nil || f.over.After(by.over)):
				by = f
			case !at.IsZero() && f.told.After(at.Add(-time.Second)) && (by == nil || f.told.Before(by.told)):
				by = f
			}
		}
		if by != nil {
			victim[h], taken[by] = by, true
		}
	}
	return victim
}

// parts are the waits taken apart.
func (x *trails) parts() (list []Part, longest []string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	names := []string{"all, from its creation until it runs", "created until refused, or bound at once", "refused until the subjob is told",
		"told until the subjob is over", "over until the Pod is bound", "refused until bound, of what was free", "bound until it runs"}
	took := map[string][]time.Duration{}
	var hosts []*trail
	for _, h := range x.hosts {
		if !h.starts.IsZero() && !h.bound.IsZero() {
			hosts = append(hosts, h)
		}
	}
	slices.SortFunc(hosts, func(a, b *trail) int {
		return cmp.Or(cmp.Compare(b.starts.Sub(b.created), a.starts.Sub(a.created)), cmp.Compare(a.name, b.name))
	})
	victim := x.victims(hosts)
	for n, h := range hosts {
		add := func(part int, d time.Duration) { took[names[part]] = append(took[names[part]], d) }
		add(0, h.starts.Sub(h.created))
		add(6, h.starts.Sub(h.bound))
		line := fmt.Sprintf("%s: runs after %s", h.name, millis(h.starts.Sub(h.created)))
		if h.refused.IsZero() || h.refused.After(h.bound) {
			add(1, h.bound.Sub(h.created))
			continue
		}
		add(1, h.refused.Sub(h.created))
		line += fmt.Sprintf(", refused after %s", millis(h.refused.Sub(h.created)))
		if by := victim[h]; by == nil {
			add(5, h.bound.Sub(h.refused))
			line += ", took what was free"
		} else {
			if by.told.IsZero() {
				by.told = by.over
			}
			add(2, max(0, by.told.Sub(h.refused))) // the scheduler's calls for both are seen in any order
			add(3, by.over.Sub(by.told))
			add(4, h.bound.Sub(by.over))
			line += fmt.Sprintf(", the subjob on %s told after %s, over after %s", h.machine, millis(by.told.Sub(h.created)),
				millis(by.over.Sub(h.created)))
		}
		if n < 10 {
			longest = append(longest, line+fmt.Sprintf(", bound after %s", millis(h.bound.Sub(h.created)))+x.story(h))
		}
	}
	for _, name := range names {
		slices.Sort(took[name])
		list = append(list, Part{name, took[name]})
	}
	return list, longest
}

// story is what was seen on the machines that a Pod was nominated for, until it was bound.
func (x *trails) story(h *trail) string {
	type event struct {
		at   time.Time
		what string
	}
	var b strings.Builder
	for _, n := range h.nominations {
		var list []event
		add := func(at time.Time, what string) {
			if at.After(h.created.Add(-time.Second)) && !at.After(h.bound.Add(time.Second)) {
				list = append(list, event{at, what})
			}
		}
		add(n.at, "nominated")
		for i, f := range x.fillers[n.machine] {
			add(f.bound, fmt.Sprintf("subjob %d seen there", i))
			add(f.told, fmt.Sprintf("%d told", i))
			add(f.over, fmt.Sprintf("%d over", i))
		}
		for _, o := range x.hosts {
			if o.machine == n.machine {
				add(o.bound, o.name+" bound")
			}
			for _, m := range o.nominations {
				if m.machine == n.machine && o != h {
					add(m.at, o.name+" nominated")
				}
			}
		}
		slices.SortFunc(list, func(a, b event) int { return a.at.Compare(b.at) })
		fmt.Fprintf(&b, "\n    %s:", n.machine)
		for _, e := range list {
			fmt.Fprintf(&b, " %s %s;", millis(e.at.Sub(h.created)), e.what)
		}
	}
	return b.String()
}

// partsTable is parts as Markdown. They do not add up: each row is a quantile of its own.
func partsTable(list []Part) string {
	var b strings.Builder
	b.WriteString("| part of the wait | Pods | p50 | p99 | longest |\n|---|---:|---:|---:|---:|\n")
	for _, p := range list {
		if len(p.Took) == 0 {
			continue
		}
		at := func(q float64) string { return millis(p.Took[max(0, int(math.Ceil(q*float64(len(p.Took))))-1)]) }
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", p.Name, len(p.Took), at(.5), at(.99), at(1))
	}
	return b.String()
}
