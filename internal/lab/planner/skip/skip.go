// Package skip is first-come with skipping: everything that fits now starts, in the order of arrival. Among classes with
// room a task takes the one where it ends first. It never idles a device that somebody who waits could use, and lets large
// tasks wait for ever behind small ones.
package skip

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/greedy"
)

// Kind is the kind.
func Kind() planner.Kind {
	return planner.Kind{
		Name:    "skip",
		Summary: "first-come with skipping: everything that fits now starts, in order of arrival",
		New: func(o planner.Options) (planner.Planner, error) {
			p, err := greedy.New(o, (*book.Entry).Run)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}
