//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// want is one request of a claim: devices of the first of its choices that can be had.
type want struct {
	choices []choice
	// of tells the claims of one Pod apart: constraints hold within one.
	of int
}

// choice is so many devices of a class that selectors mean.
type choice struct {
	class string
	// n of them; 0: all that are on the machine.
	n    int64
	only selector
	// alike are the attributes that these devices have in common with all others that the same constraint is about.
	alike []*constraint
	// odd: another constraint is about them, so that nobody knows here which of them are meant.
	odd bool
}

// constraint is an attribute of which devices of one claim have the same.
type constraint struct{ domain, name string }

// wantsOf are the requests of a claim.
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

// shapeOf is what claims that are alike want, as text.
func shapeOf(spec *resourcev1.ResourceClaimSpec) string {
	text, err := json.Marshal([]any{spec.Devices.Requests, spec.Devices.Constraints})
	if err != nil {
		return ""
	}
	return shared(string(text))
}

// selectors are all of them in one.
func selectors(list []resourcev1.DeviceSelector) (all selector) {
	for _, x := range list {
		if x.CEL != nil {
			all = append(all, parseSelector(x.CEL.Expression)...)
		}
	}
	return all
}

// numbered are the wants of the n-th claim of a Pod, without what no pool offers: choices of other drivers' devices, such as a NIC beside a GPU. Of those nothing can be given
// back, and whether the Pod gets them is not known here. inv.mu is held.
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

// knows says whether a choice is of a driver that a pool names: by its class, or by what selectors say of the driver.
func (inv *Inventory) knows(x *choice) bool {
	c, _ := get[*class](inv.classes, x.class)
	terms := append(slices.Clip(c.terms()), x.only...)
	for i := range inv.opts.Pools {
		for _, of := range inv.opts.Pools[i].Classes {
			if of.Name == x.class || terms.of(of.Driver) {
				return true
			}
		}
	}
	return false
}

// of says whether an expression is about devices of a driver: it says so, or speaks of their attributes; what is not understood, if it has the driver's name in it.
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

// quest is what is looked for, for one Pod.
type quest struct {
	// like is the Pod, with no extended resources but those that pools name.
	like  *tenant
	kin   kin
	wants []want
	// claims are those that have nobody else to get them their devices, and on the machine where others that it shares get theirs; empty: any machine does.
	claims []string
	on     string
}

// nothing says whether it asks for nothing that is offered.
func (q *quest) nothing() bool { return len(q.wants)+len(q.like.asks) == 0 }

// claimed adds what named claims want that have no devices yet, and that no place is kept for beside g and more; false: one of them is not there. inv.mu is held.
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

// kinOf is what a Pod that waits has in common with others.
func (inv *Inventory) kinOf(t *tenant) kin {
	shape := t.shape
	for _, key := range t.claims {
		if c, there := get[*claim](inv.claims, key); there {
			shape += c.shape
		}
	}
	return kin{first(t.owner, t.UID), shape}
}
