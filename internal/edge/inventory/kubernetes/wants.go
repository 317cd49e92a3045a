//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sluice.dev/sluice/internal/core/reclaim"
)

// want is one request of a claim; choices are its alternatives, the preferred first.
type want struct {
	choices []choice
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
			if len(k.Requests) > 0 && !slices.Contains(k.Requests, request) &&
				(sub == "" || !slices.Contains(k.Requests, request+"/"+sub)) {
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

// of reports whether a selector is about a driver's devices: it requires the driver, uses an attribute or capacity of its domain, or has
// its name in a term not understood, and no term rules the driver out.
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

// asksOf records what a waiting Pod asks of its machine. Affinities between Pods are not modelled.
func (s *slimmer) asksOf(t *pod, spec *corev1.PodSpec) {
	t.need.where.Labels = pairs(spec.NodeSelector)
	for i := range spec.Tolerations {
		x := &spec.Tolerations[i]
		t.need.where.Tolerates = append(t.need.where.Tolerates, reclaim.Toleration{Key: x.Key, Op: string(x.Operator), Value: x.Value,
			Effect: string(x.Effect)})
	}
	var required *corev1.NodeSelector
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if shape, err := json.Marshal([]any{t.need.asks, spec.NodeSelector, spec.Tolerations, required}); err == nil {
		t.need.shape = shared(string(shape))
	}
	if required == nil {
		return
	}
	t.need.where.Restricted = true
	for _, term := range required.NodeSelectorTerms {
		if all, ok := rulesOf(term); ok {
			t.need.where.AnyOf = append(t.need.where.AnyOf, all)
		}
	}
}

// rulesOf are a term's rules; false: one of them is invalid, so that no machine meets it. The only field, metadata.name, is matched like a
// label.
func rulesOf(term corev1.NodeSelectorTerm) (rules reclaim.Rules, ok bool) {
	for _, list := range [][]corev1.NodeSelectorRequirement{term.MatchExpressions, term.MatchFields} {
		for _, e := range list {
			if _, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values); err != nil {
				return rules, false
			}
			rules.All = append(rules.All, reclaim.Rule{Key: e.Key, Op: string(e.Operator), Values: e.Values})
		}
	}
	return rules, true
}

// operators maps the operators of node affinity to those of label selectors, which are checked alike.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{ //nolint:gochecknoglobals // a table, written to by nobody
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan,
	corev1.NodeSelectorOpLt: selection.LessThan,
}
