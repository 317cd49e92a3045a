// Package all is the ordered table of planners. Adding one is a folder and a line here.
package all

import (
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/planner"
	"sluice.dev/sluice/internal/core/planner/bestfit"
	"sluice.dev/sluice/internal/core/planner/clustering"
	"sluice.dev/sluice/internal/core/planner/conservative"
	"sluice.dev/sluice/internal/core/planner/dotproduct"
	"sluice.dev/sluice/internal/core/planner/easy"
	"sluice.dev/sluice/internal/core/planner/fcfs"
	"sluice.dev/sluice/internal/core/planner/fgd"
	"sluice.dev/sluice/internal/core/planner/migrate"
	"sluice.dev/sluice/internal/core/planner/packing"
	"sluice.dev/sluice/internal/core/planner/random"
	"sluice.dev/sluice/internal/core/planner/skip"
	"sluice.dev/sluice/internal/core/planner/staticmig"
)

// Kinds in the order they are shown; the first is the default.
func Kinds() []planner.Kind {
	return []planner.Kind{
		fcfs.Kind(), skip.Kind(), easy.Kind(), conservative.Kind(),
		bestfit.Kind(), random.Kind(), dotproduct.Kind(), clustering.Kind(), packing.Kind(), fgd.Kind(),
		staticmig.Kind(), migrate.Kind(),
	}
}

// Names of all kinds.
func Names() []string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// ByName finds a kind; the error names those there are.
func ByName(name string) (planner.Kind, error) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, nil
		}
	}
	return planner.Kind{}, errkind.Errorf(errkind.Invalid, "planner %q: there is none of that name; choose one of %s", name, strings.Join(Names(), ", "))
}

// Live finds a kind that may serve a live cluster.
func Live(name string) (planner.Kind, error) { return planner.Live(Kinds(), name) }
