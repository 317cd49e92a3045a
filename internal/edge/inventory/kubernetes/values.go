//go:build kubernetes

package kubernetes

import (
	"maps"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/reclaim"
)

func only(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// bare strips a name's domain.
func bare[T ~string](name T) string {
	_, after, found := strings.Cut(string(name), "/")
	if !found {
		return string(name)
	}
	return after
}

// shared interns a text that many objects have.
func shared(text string) string { return unique.Make(text).Value() }

// named is the metadata that informers need.
func named(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.GetName(), Namespace: o.GetNamespace(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

func pairs(of map[string]string) (list []reclaim.Pair) {
	for _, name := range slices.Sorted(maps.Keys(of)) {
		list = append(list, reclaim.Pair{Name: name, Value: of[name]})
	}
	return list
}
