package output

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// mostNamed bounds how many ranges or nodes a sentence names.
const mostNamed = 5

// Units are those whose output is not known to be in its place.
func Units(list []protocol.Publication, spec *job.Spec) string {
	units := job.Ranges(nil)
	for i := range list {
		units = units.Add(list[i].Range)
	}
	return fmt.Sprintf("%d %ss %s", units.Len(), spec.UnitName(), Spans(units, spec))
}

// Spans names the first of some ranges of a job.
func Spans(units job.Ranges, spec *job.Spec) string {
	names := make([]string, 0, mostNamed)
	for _, r := range units[:min(len(units), mostNamed)] {
		names = append(names, spec.Span(r))
	}
	return first(names, len(units))
}

// Nodes are those that have it.
func Nodes(list []protocol.Publication) string {
	names := []string(nil)
	for i := range list {
		if n := string(list[i].Node); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return first(names[:min(len(names), mostNamed)], len(names))
}

// first lists the first of a number of names.
func first(names []string, of int) string {
	text := strings.Join(names, ", ")
	if of > len(names) {
		text += fmt.Sprintf(" and %d more", of-len(names))
	}
	return text
}
