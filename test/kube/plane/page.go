//go:build kubernetes

package plane

import (
	"os"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// WritePage puts a text between the marks of a section of a page, <!-- NAME: ... --> and <!-- NAME: end -->, which have to be there.
func WritePage(path, name, text string) error {
	page, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(page), "\n")
	begin := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "<!-- "+name+": written") })
	end := slices.IndexFunc(lines, func(l string) bool { return l == "<!-- "+name+": end -->\n" })
	if begin < 0 || end < begin {
		return errkind.Errorf(errkind.Invalid, "%s has no marks <!-- %s: written ... --> and <!-- %s: end -->: put them where its "+
			"figures belong", path, name, name)
	}
	out := slices.Concat(lines[:begin+1], []string{"\n", strings.TrimSpace(text), "\n\n"}, lines[end:])
	return os.WriteFile(path, []byte(strings.Join(out, "")), 0o644) //nolint:gosec // a page
}
