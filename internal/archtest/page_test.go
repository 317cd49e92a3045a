package archtest

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// oneLine is a row of the page: a package and something about it.
var oneLine = regexp.MustCompile("^\\| `([^`]+)` \\| [^|\\s]")

// Page compares ARCHITECTURE.md's list of packages with the packages of the module: a line for each and none for what is not there,
// in order within each table.
func Page(text string, packages []string) []string {
	const heading = "\n## Every package in one line\n"
	_, page, ok := strings.Cut(text, heading)
	if !ok {
		return []string{"docs/ARCHITECTURE.md has no section" + strings.ReplaceAll(heading, "\n", " ")}
	}
	page, _, _ = strings.Cut(page, "\n## ")
	missing := map[string]bool{}
	for _, p := range packages {
		missing[strings.TrimPrefix(p, "internal/")] = true
	}
	var bad []string
	last := ""
	for line := range strings.Lines(page) {
		row := oneLine.FindStringSubmatch(line)
		if row == nil {
			last = ""
			continue
		}
		switch name := row[1]; {
		case name <= last:
			bad = append(bad, fmt.Sprintf("docs/ARCHITECTURE.md: %s stands behind %s", name, last))
		case !missing[name]:
			bad = append(bad, fmt.Sprintf("docs/ARCHITECTURE.md lists %s, which is no package", name))
		}
		last = row[1]
		delete(missing, last)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		bad = append(bad, fmt.Sprintf("docs/ARCHITECTURE.md: say in one line what %s is", name))
	}
	return bad
}
