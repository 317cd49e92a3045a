//go:build kubernetes

package kubernetes

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/reclaim"
)

// Kubernetes preempts nobody for DRA devices, so unschedulable Pods of others become wishes here: the node gives back what such a Pod waits
// for. For extended resources kube-scheduler preempts by itself, and nominates a machine. Those Pods are wishes too: until the scheduler
// comes back to them, a second to ten later, what it freed for them, or what others left, would be sold again.

const (
	byWaiting = "waiting"
	waiting   = "yes"
)

// waitingIndex indexes Pods of others that are unschedulable.
func waitingIndex() cache.IndexFunc {
	return index(func(t *pod) []string {
		if t.turn.unschedulableSince == 0 || t.ours || t.fills || t.turn.queued {
			return nil
		}
		return []string{waiting}
	})
}

// wish is what a Pod that waits wants. Pods of one owner that want the same are kin; a Pod without an owner is its own.
func (w *translator) wish(t *pod) reclaim.Wish {
	x := w.like(t)
	x.ID, x.Since, x.Nominated = reclaim.ID(t.UID), t.turn.unschedulableSince, t.turn.nominated
	x.Equiv = reclaim.Equiv{Owner: string(cmp.Or(t.owner, t.UID)), Shape: t.need.shape}
	for _, key := range t.need.claims {
		if c, there := get[*claim](w.of.claims, key); there {
			x.Equiv.Shape += c.shape
		}
	}
	w.claimed(&x, t.need.claims)
	return x
}

// like is what a Pod, or one that is like it, wants beside its claims.
func (w *translator) like(t *pod) reclaim.Wish {
	return reclaim.Wish{
		Who: cmp.Or(t.kind, "pod") + " " + t.Namespace + "/" + t.Name + ", which waits for it", Asks: w.asks(t.need.asks),
		Where: t.need.where,
	}
}

// claimed adds ResourceClaims by their keys. One that does not exist yet may want anything.
func (w *translator) claimed(x *reclaim.Wish, keys []string) {
	for _, key := range keys {
		c, there := get[*claim](w.of.claims, key)
		if !there {
			x.Blocked = true
			continue
		}
		x.Claims = append(x.Claims, reclaim.Claim{Key: key, Requests: w.requests(c.wants)})
	}
}

// requests are those of one claim, less choices of drivers that no pool names, such as a NIC beside a GPU: nothing of those can be given
// back, nor is it known here whether the Pod gets them.
func (w *translator) requests(wants []want) (list []reclaim.Request) {
	numbers := map[*constraint]int{}
	for i := range wants {
		var r reclaim.Request
		for _, c := range w.known(&wants[i]) {
			one := reclaim.Choice{N: c.n, Odd: c.odd, Terms: termsOf(c.only)}
			if of, seen := w.of.class(c.class); seen {
				one.Terms = append(one.Terms, termsOf(of.only)...)
			} else {
				one.Class = c.class
			}
			for _, k := range c.alike {
				if _, there := numbers[k]; !there {
					numbers[k] = len(numbers)
				}
				one.Alike = append(one.Alike, reclaim.Alike{Number: numbers[k], Domain: k.domain, Name: k.name})
			}
			r.Choices = append(r.Choices, one)
		}
		if len(r.Choices) > 0 {
			list = append(list, r)
		}
	}
	return list
}

// known are a request's choices that are for a driver that a pool names, by class or selectors.
func (w *translator) known(of *want) []*choice {
	var list []*choice
	for i := range of.choices {
		x := &of.choices[i]
		terms := append(slices.Clip(classes(w.of.class).terms(x.class)), x.only...)
		if slices.ContainsFunc(w.pools, func(p Pool) bool {
			return slices.ContainsFunc(p.Classes, func(c Class) bool { return c.Name == x.class || terms.of(c.Driver) })
		}) {
			list = append(list, x)
		}
	}
	return list
}

// termsOf are the terms of a selector. What is not understood may mean any device.
func termsOf(s selector) (list []reclaim.Term) {
	for i := range s {
		t := &s[i]
		one := reclaim.Term{Kind: kinds[t.kind], Domain: t.domain, Name: t.name, Op: t.op, Value: t.value}
		if t.kind == ofCapacity {
			q, err := resource.ParseQuantity(t.value)
			if err != nil {
				one.Kind = reclaim.Unknown
			} else {
				one.Amount = amountIn(amountOf(&q, false))
			}
		}
		list = append(list, one)
	}
	return list
}

// kinds are what terms compare.
var kinds = map[termKind]reclaim.TermKind{
	ofDriver: reclaim.OfDriver, ofAttribute: reclaim.OfAttribute, hasAttribute: reclaim.HasAttribute,
	ofCapacity: reclaim.OfCapacity, hasCapacity: reclaim.HasCapacity,
}
