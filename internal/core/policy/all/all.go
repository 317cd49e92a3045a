// Package all is the ordered table of allocation policies. Adding one is a folder and a line here.
package all

import (
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/efficiency"
	"sluice.dev/sluice/internal/core/policy/fairness"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/sla"
)

// Policies in the order they are shown; the first is the default.
func Policies() []policy.Policy {
	return []policy.Policy{fairness.Policy{}, efficiency.Policy{}, sla.Policy{}, fifo.Policy{}, shortest.Policy{}}
}

// Names of all policies.
func Names() []string {
	var names []string
	for _, p := range Policies() {
		names = append(names, p.Name())
	}
	return names
}

// ByName finds a policy; the error names those there are.
func ByName(name string) (policy.Policy, error) {
	for _, p := range Policies() {
		if p.Name() == name {
			return p, nil
		}
	}
	return nil, errkind.Errorf(errkind.Invalid, "policy %q: there is none of that name; choose one of %s", name, strings.Join(Names(), ", "))
}
