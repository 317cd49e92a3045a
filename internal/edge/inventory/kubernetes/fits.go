//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sluice.dev/sluice/internal/core/quantity"
)

// asksOf records what a waiting Pod asks of its machine.
func (s *slimmer) asksOf(t *tenant, spec *corev1.PodSpec) {
	t.nodes, t.tolerates = spec.NodeSelector, spec.Tolerations
	var required *corev1.NodeSelector
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	if shape, err := json.Marshal([]any{t.asks, t.nodes, t.tolerates, required}); err == nil {
		t.shape = shared(string(shape))
	}
	if required == nil {
		return
	}
	t.affinity = []labels.Selector{}
	for _, term := range required.NodeSelectorTerms {
		all, ok := labels.NewSelector(), true
		for _, e := range append(slices.Clip(term.MatchExpressions), term.MatchFields...) { // the only field, metadata.name, is matched like a label
			r, err := labels.NewRequirement(e.Key, operators[e.Operator], e.Values)
			if err != nil {
				ok = false
				break
			}
			all = all.Add(*r)
		}
		if ok {
			t.affinity = append(t.affinity, all)
		}
	}
}

// operators maps the operators of node affinity to those of label selectors.
var operators = map[corev1.NodeSelectorOperator]selection.Operator{ //nolint:gochecknoglobals // a table, written to by nobody
	corev1.NodeSelectorOpIn: selection.In, corev1.NodeSelectorOpNotIn: selection.NotIn, corev1.NodeSelectorOpExists: selection.Exists,
	corev1.NodeSelectorOpDoesNotExist: selection.DoesNotExist, corev1.NodeSelectorOpGt: selection.GreaterThan, corev1.NodeSelectorOpLt: selection.LessThan,
}

// mayRunOn reports whether a Pod's node selectors, affinity and tolerations admit a machine that is not closed without end: a cordon is lifted by no toleration here. Affinities
// between Pods are not modelled.
func (t *tenant) mayRunOn(m *machine) bool {
	for _, r := range m.closed {
		if r.Start == 0 && r.End == quantity.Never {
			return false
		}
	}
	for i := range m.taints {
		if !slices.ContainsFunc(t.tolerates, func(x corev1.Toleration) bool { return tolerates(&x, &m.taints[i]) }) {
			return false
		}
	}
	if !labels.SelectorFromSet(t.nodes).Matches(labels.Set(m.Labels)) {
		return false
	}
	if t.affinity == nil {
		return true
	}
	set := labels.Set{metav1.ObjectNameField: m.Name}
	maps.Copy(set, m.Labels)
	return slices.ContainsFunc(t.affinity, func(s labels.Selector) bool { return s.Matches(set) })
}

// tolerates compares as kube-scheduler does: effect, key and value. Kubernetes' own ToleratesTaint needs a logger.
func tolerates(x *corev1.Toleration, of *taint) bool {
	if x.Effect != "" && x.Effect != of.effect || x.Key != "" && x.Key != of.key {
		return false
	}
	switch x.Operator {
	case "", corev1.TolerationOpEqual:
		return x.Value == of.value
	case corev1.TolerationOpExists:
		return true
	case corev1.TolerationOpLt, corev1.TolerationOpGt: // of numbers alone
		has, err1 := strconv.ParseInt(of.value, 10, 64)
		bound, err2 := strconv.ParseInt(x.Value, 10, 64)
		return err1 == nil && err2 == nil && (x.Operator == corev1.TolerationOpLt && has < bound || x.Operator == corev1.TolerationOpGt && has > bound)
	}
	return false
}
