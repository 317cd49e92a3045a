package oom

import (
	"cmp"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// kubelet is node-pressure eviction of Kubernetes 1.34 with its defaults (Node-pressure Eviction in its documentation;
// pkg/kubelet/eviction and pkg/kubelet/qos/policy.go for what that leaves open): every 10 s, where memory.available is below the hard
// threshold of 100 MiB, one pod: first those that use more than they request, then by priority, then by what they use over their request.
// A hard threshold leaves a second at most to end, which is taken for none here; and once the pod is gone it looks again, at the latest
// after 30 s. There is no soft threshold and no minimum to reclaim by default, and pods with requests may come back at once, since they
// tolerate the taint of a node under pressure.
//
// A pod has its job's priority, requests what was planned for it, and has no limit: its QoS class is Burstable. So oom_score_adj is 1000
// less the share of the memory that it requests, and where the memory ends before the kubelet looks the kernel ends who uses most over its
// request.
type kubelet struct {
	every
	// evicted is waited for since then; 0: nobody is.
	evicted uint64
	since   quantity.Instant
}

const (
	kubeletPeriod    = 10 * time.Second
	kubeletThreshold = 100 << 20
	kubeletCleanup   = 30 * time.Second
)

// Look implements Killer.
func (k *kubelet) Look(now quantity.Instant, h *Host) []Kill {
	if k.since != 0 {
		if now.Sub(k.since) < kubeletCleanup && most(h, func(p *Process) bool { return p.ID == k.evicted }, larger) >= 0 {
			return nil
		}
		k.since, k.next = 0, now
	}
	if !k.due(now, kubeletPeriod) || h.Available >= kubeletThreshold {
		return nil
	}
	over := func(p *Process) int {
		if p.Resident > p.Request {
			return 1
		}
		return 0
	}
	i := most(h, anybody, func(a, b *Process) int {
		return cmp.Or(cmp.Compare(over(a), over(b)), -cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(a.Resident-a.Request, b.Resident-b.Request))
	})
	if i < 0 {
		return nil
	}
	k.evicted, k.since = h.Processes[i].ID, now
	return []Kill{{Process: i}}
}

// Badness implements Killer.
func (*kubelet) Badness(h *Host, p *Process) int64 {
	adj := min(999, max(3, 1000-quantity.MulDiv(1000, int64(p.Request), max(1, int64(h.Capacity)))))
	return int64(p.size()) + quantity.MulDiv(int64(h.Capacity+h.Swap), adj, 1000)
}
