// Package all is the ordered table of allocation policies, each named for its objective, and the only place of their names. Adding one
// is a folder and a line here.
package all

import (
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/deadline"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/throughput"
)

// Policies in the order they are shown; the first is the default.
func Policies() []policy.Policy {
	return []policy.Policy{shortest.Policy{}, fair.Policy{}, deadline.Policy{}, throughput.Policy{}, fifo.Policy{}}
}

// aliasTable has the names of before. They still choose, in files, flags and tapes; what is shown is the policy's own name.
var aliasTable = []struct{ was, is string }{
	{"fairness", "fair"},
	{"sla", "deadline"},
	{"efficiency", "throughput"},
}

// Default is the policy where none is named.
func Default() policy.Policy { return Policies()[0] }

// Names of all policies, without aliases.
func Names() []string {
	var names []string
	for _, p := range Policies() {
		names = append(names, p.Name())
	}
	return names
}

// ByName finds a policy by its name or an alias of it; the error, of kind Invalid, names those there are.
func ByName(name string) (policy.Policy, error) {
	own := name
	for _, a := range aliasTable {
		if a.was == name {
			own = a.is
		}
	}
	for _, p := range Policies() {
		if p.Name() == own {
			return p, nil
		}
	}
	return nil, errkind.Errorf(errkind.Invalid, "policy %q: there is none of that name; choose one of %s", name,
		strings.Join(Names(), ", "))
}
