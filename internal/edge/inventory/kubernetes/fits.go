//go:build kubernetes

package kubernetes

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"sluice.dev/sluice/internal/core/reclaim"
)

// asksOf records what a waiting Pod asks of its machine. Affinities between Pods are not modelled.
func (s *slimmer) asksOf(t *tenant, spec *corev1.PodSpec) {
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
