//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// want is one request of a claim; choices are its alternatives, the preferred first.
type want struct {
	choices []choice
	// of numbers the Pod's claims: constraints hold within one.
	of int
}

// choice is n devices of a class that match selectors.
type choice struct {
	class string
	// n is at least 1, or 0 for allocationMode All.
	n    int64
	only selector
	// alike are matchAttribute constraints, shared by pointer with the other choices they bind.
	alike []*constraint
	// odd: a constraint or allocationMode not known here applies, so a match is only a maybe.
	odd bool
}

// constraint is an attribute that must be equal among devices of one claim.
type constraint struct{ domain, name string }

// wantsOf reads the requests of a claim. Those for admin access take nothing and are left out.
func wantsOf(spec *resourcev1.ResourceClaimSpec) (wants []want) {
	constraints := make([]*constraint, len(spec.Devices.Constraints))
	for i, k := range spec.Devices.Constraints {
		if k.MatchAttribute != nil {
			domain, name, _ := strings.Cut(string(*k.MatchAttribute), "/")
			constraints[i] = &constraint{domain, name}
		}
	}
	pick := func(request, sub, class string, mode resourcev1.DeviceAllocationMode, n int64, only []resourcev1.DeviceSelector) choice {
		c := choice{class: class, n: max(1, n), only: selectors(only)}
		switch mode {
		case "", resourcev1.DeviceAllocationModeExactCount:
		case resourcev1.DeviceAllocationModeAll:
			c.n = 0
		default:
			c.odd = true
		}
		for i, k := range spec.Devices.Constraints {
			if len(k.Requests) > 0 && !slices.Contains(k.Requests, request) && (sub == "" || !slices.Contains(k.Requests, request+"/"+sub)) {
				continue
			}
			if constraints[i] == nil {
				c.odd = true
				continue
			}
			c.alike = append(c.alike, constraints[i])
		}
		return c
	}
	for _, r := range spec.Devices.Requests {
		switch x := r.Exactly; {
		case x != nil && !value(x.AdminAccess):
			wants = append(wants, want{choices: []choice{pick(r.Name, "", x.DeviceClassName, x.AllocationMode, x.Count, x.Selectors)}})
		case len(r.FirstAvailable) > 0:
			w := want{}
			for _, s := range r.FirstAvailable {
				w.choices = append(w.choices, pick(r.Name, s.Name, s.DeviceClassName, s.AllocationMode, s.Count, s.Selectors))
			}
			wants = append(wants, w)
		}
	}
	return wants
}

// shapeOf is a text that is equal for claims that want the same.
func shapeOf(spec *resourcev1.ResourceClaimSpec) string {
	text, err := json.Marshal([]any{spec.Devices.Requests, spec.Devices.Constraints})
	if err != nil {
		return ""
	}
	return shared(string(text))
}

// selectors joins them into one; all must match.
func selectors(list []resourcev1.DeviceSelector) (all selector) {
	for _, x := range list {
		if x.CEL != nil {
			all = append(all, parseSelector(x.CEL.Expression)...)
		}
	}
	return all
}

// numbered are the wants of a Pod's n-th claim, less choices of drivers that no pool names, such as a NIC beside a GPU: nothing of those can be given back, nor is it known
// here whether the Pod gets them. inv.mu is held.
func (inv *Inventory) numbered(n int, wants []want) (list []want) {
	for _, w := range wants {
		w.of = n
		w.choices = slices.DeleteFunc(slices.Clone(w.choices), func(c choice) bool { return !inv.knows(&c) })
		if len(w.choices) > 0 {
			list = append(list, w)
		}
	}
	return list
}

// knows reports whether a choice is for a driver that a pool names, by its class or its selectors.
func (inv *Inventory) knows(x *choice) bool {
	terms := append(slices.Clip(classes(inv.class).terms(x.class)), x.only...)
	for i := range inv.opts.Pools {
		for _, of := range inv.opts.Pools[i].Classes {
			if of.Name == x.class || terms.of(of.Driver) {
				return true
			}
		}
	}
	return false
}

// of reports whether a selector is about a driver's devices: it requires the driver, uses an attribute or capacity of its domain, or has its name in a term not understood, and
// no term rules the driver out.
func (s selector) of(driver string) (of bool) {
	for i := range s {
		switch t := &s[i]; t.kind {
		case ofDriver:
			if (t.value == driver) != (t.op == "==") {
				return false
			}
			of = of || t.op == "=="
		case ofAttribute, hasAttribute, ofCapacity, hasCapacity:
			of = of || t.domain == driver
		default:
			of = of || strings.Contains(t.value, driver)
		}
	}
	return of
}

// quest is what one Pod needs on a machine.
type quest struct {
	// like is the Pod, with only the extended resources that pools name.
	like  *tenant
	kin   kin
	wants []want
	// claims get their devices through this quest. on is the machine where claims that it shares with other Pods get theirs; empty: any machine.
	claims []string
	on     string
}

// nothing reports whether it needs nothing that is offered here.
func (q *quest) nothing() bool { return len(q.wants)+len(q.like.asks) == 0 }

// claimed adds what those of these claims want that have no devices yet, less claims that get theirs in a kept place other than g, or in one of more: these set on. false if a
// claim does not exist. inv.mu is held.
func (q *quest) claimed(inv *Inventory, keys []string, g *reclaim, more []*reclaim) (known bool) {
	for i, key := range keys {
		c, there := get[*claim](inv.claims, key)
		if !there {
			return false
		}
		wants := inv.numbered(i, c.wants)
		if len(wants) == 0 || slices.Contains(q.claims, key) {
			continue
		}
		if other := inv.reclaims.covers(key, g, more); other != nil {
			q.on = other.machine
			continue
		}
		q.claims, q.wants = append(q.claims, key), append(q.wants, wants...)
	}
	return true
}

// kinOf is the kin of a Pod that waits: its owner, and its shape with its claims'.
func (inv *Inventory) kinOf(t *tenant) kin {
	shape := t.shape
	for _, key := range t.claims {
		if c, there := get[*claim](inv.claims, key); there {
			shape += c.shape
		}
	}
	return kin{first(t.owner, t.UID), shape}
}
