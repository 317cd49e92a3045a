package planner

import (
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Live finds a kind that may serve a live cluster. Baselines that stop running work are refused, and so are those that
// only place. The error, of kind Invalid, names those there are.
func Live(kinds []Kind, name string) (Kind, error) {
	why := ": there is none of that name"
	var live []string
	for _, k := range kinds {
		serves := k.Live != nil && !k.Preempts
		switch {
		case serves && k.Name == name:
			return k, nil
		case serves:
			live = append(live, k.Name)
		case k.Name == name && k.Preempts:
			why = " is a baseline that stops running work"
		case k.Name == name:
			why = " is a baseline for simulations"
		}
	}
	return Kind{}, errkind.Errorf(errkind.Invalid, "planner %q%s; choose one of %s", name, why, strings.Join(live, ", "))
}
