//go:build kubernetes

package kubernetes

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

// Kueue's Workloads become groups: those whose Pods are to come at once, since they have their quota, and the first of each ClusterQueue,
// with when those who hold the quota must have ended.

const (
	// recent is how long after getting its quota a Workload's Pods are expected.
	recent = 15 * time.Minute
	// lingers is how long after the latest end of its Pods a Workload may still hold its quota.
	lingers = time.Minute
	// mostHeads bounds the reported waiters of a queue: the first of these that is not left alone gets a place.
	mostHeads = 4
)

// member is a Pod's group and its part there.
type member struct {
	group reclaim.ID
	part  int
}

// groups are the Workloads whose Pods are to come, in order of ID, and which Pods are theirs.
func (w *translator) groups(now quantity.Instant) (list []reclaim.Group, members map[types.UID]member) {
	members = map[types.UID]member{}
	for _, l := range by[*jobOrWorkload](w.of.workloads, byComing, reserved) {
		if now <= l.coming.since.Add(recent) {
			list = append(list, w.group(l, members))
		}
	}
	heads := map[string][]*jobOrWorkload{}
	for _, l := range by[*jobOrWorkload](w.of.workloads, byComing, pending) {
		q, there := get[*alias](w.of.queues, l.coming.queue)
		if !there {
			continue
		}
		all := heads[q.cluster]
		if k, _ := slices.BinarySearchFunc(all, l, (*jobOrWorkload).compare); k < mostHeads {
			all = slices.Insert(all, k, l)
			heads[q.cluster] = all[:min(len(all), mostHeads)]
		}
	}
	holders := w.holders(now, heads)
	for _, cluster := range slices.Sorted(maps.Keys(heads)) {
		for rank, l := range heads[cluster] {
			g := w.group(l, nil)
			g.Since, g.Queue, g.Rank, g.Until = 0, cluster, rank, quantity.Never
			if at, known := w.comesFree(l, holders[cluster]); known {
				if g.From = at; l.most > 0 {
					g.Until = at.Add(l.most)
				}
			}
			list = append(list, g)
		}
	}
	slices.SortFunc(list, func(a, b reclaim.Group) int { return cmp.Compare(a.ID, b.ID) })
	return list, members
}

// compare is negative where Kueue admits l before o: by priority, then age.
func (l *jobOrWorkload) compare(o *jobOrWorkload) int {
	return cmp.Or(cmp.Compare(o.coming.priority, l.coming.priority), cmp.Compare(l.coming.created, o.coming.created),
		cmp.Compare(l.UID, o.UID))
}

// holder is a Workload with quota, and until when at the latest.
type holder struct {
	*jobOrWorkload
	leaves quantity.Instant
}

// holders are those with quota of these ClusterQueues that must end, by when.
func (w *translator) holders(now quantity.Instant, heads map[string][]*jobOrWorkload) map[string][]holder {
	list := map[string][]holder{}
	for _, l := range by[*jobOrWorkload](w.of.workloads, byComing, reserved) {
		if len(heads[l.coming.cluster]) == 0 || l.end == quantity.Never {
			continue
		}
		h := holder{l, l.end}
		for _, t := range w.of.podsOf(l.owned()...) {
			h.leaves = max(h.leaves, t.ends(w.of.limit))
		}
		if now <= h.leaves.Add(lingers) {
			list[l.coming.cluster] = append(list[l.coming.cluster], h)
		}
	}
	for _, all := range list {
		slices.SortFunc(all, func(a, b holder) int { return cmp.Or(cmp.Compare(a.leaves, b.leaves), cmp.Compare(a.UID, b.UID)) })
	}
	return list
}

// comesFree is when those who hold quota must have ended that together have as many devices as a Workload wants; false: that is not known.
func (w *translator) comesFree(l *jobOrWorkload, holders []holder) (quantity.Instant, bool) {
	lacks := w.devices(l)
	for _, h := range holders {
		for of, n := range w.devices(h.jobOrWorkload) {
			lacks[of] -= n
		}
		enough := true
		for _, n := range lacks {
			enough = enough && n <= 0
		}
		if enough {
			return h.leaves, true
		}
	}
	return 0, false
}

// devices counts what a Workload has or wants, by extended resource and device class. Of alternatives the first counts; a claim that its
// Pods share counts once.
func (w *translator) devices(l *jobOrWorkload) map[string]int64 {
	sum := map[string]int64{}
	add := func(wants []want, n int64) {
		for i := range wants {
			if known := w.known(&wants[i]); len(known) > 0 {
				sum["class "+known[0].class] += n * max(1, known[0].n)
			}
		}
	}
	shared := map[string]bool{}
	for k := range l.coming.parts {
		x := &l.coming.parts[k]
		for name, n := range x.like.need.asks {
			sum[name] += int64(x.n) * n
		}
		for _, key := range x.templates {
			if t, there := get[*template](w.of.templates, key); there {
				add(t.wants, int64(x.n))
			}
		}
		for _, key := range x.claims {
			if c, there := get[*claim](w.of.claims, key); there && !shared[key] {
				shared[key] = true
				add(c.wants, 1)
			}
		}
	}
	return sum
}

// group is a Workload as its Pods are or would be. Those that are there are entered into members, unless that is nil.
func (w *translator) group(l *jobOrWorkload, members map[types.UID]member) reclaim.Group {
	g := reclaim.Group{ID: reclaim.ID(l.UID), Since: l.coming.since, Admitted: l.coming.admitted}
	for _, of := range l.owned() {
		g.Owners = append(g.Owners, string(of))
	}
	var pods []*pod
	if members != nil {
		pods = w.of.podsOf(l.owned()...)
		slices.SortFunc(pods, func(a, b *pod) int { return cmp.Compare(a.UID, b.UID) })
	}
	for k := range l.coming.parts {
		x := &l.coming.parts[k]
		part := reclaim.Part{N: x.n, Like: w.like(x.like)}
		part.Like.Equiv.Owner = string(x.like.owner)
		part.Like.Where.Labels = pairs(w.labels(x))
		for _, key := range x.templates {
			t, there := get[*template](w.of.templates, key)
			if !there {
				part.Like.Blocked = true
				continue
			}
			part.Like.Claims = append(part.Like.Claims, reclaim.Claim{Requests: w.requests(t.wants)})
		}
		w.claimed(&part.Like, x.claims)
		n := 0
		for _, t := range pods {
			if _, taken := members[t.UID]; taken || n == x.n || !x.is(t) {
				continue
			}
			n, members[t.UID] = n+1, member{g.ID, k}
			if t.machine != "" {
				part.Bound = append(part.Bound, t.machine)
			}
		}
		g.Parts = append(g.Parts, part)
	}
	return g
}

// labels are what the machine of a pod set's Pods must have: Kueue adds those of the ResourceFlavors that their quota is of.
func (w *translator) labels(x *part) map[string]string {
	all := map[string]string{}
	for _, p := range x.like.need.where.Labels {
		all[p.Name] = p.Value
	}
	for _, f := range x.flavors {
		if a, there := get[*alias](w.of.flavors, f); there {
			maps.Copy(all, a.nodes)
		}
	}
	return all
}

// is reports whether a Pod belongs to the pod set: it asks for the same.
func (x *part) is(t *pod) bool {
	return maps.Equal(x.like.need.asks, t.need.asks) && len(x.claims)+len(x.templates) == t.need.requests
}
