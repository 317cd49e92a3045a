package slurm

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/history"
)

// TestADelimiterInAUsersName: rows that can't be cut are left out, and the notice says of how many runs, what that does to the forecast and
// what to do, also where no run is left. A step's row is counted and no run.
func TestADelimiterInAUsersName(t *testing.T) {
	unnamed := func(text string) string { // without a column of free text, as the dump that the help shows
		var out strings.Builder
		for line := range strings.Lines(text) {
			out.WriteString(strings.Join(slices.Delete(strings.Split(line, "|"), 2, 3), "|"))
		}
		return out.String()
	}
	good := unnamed(title + row("900", 0, 1) + row("901", 50, 55) + row("902", 50, 55))
	bad := strings.ReplaceAll(unnamed(row("2", 2, 10, "User", "lab~u1")+row("3", 2, 10, "User", "lab~u2")+
		row("3.batch", 2, 10, "User", "lab~u2")), "~", "|")
	const want = " left out, whose time counts as idle: a name has the delimiter in it, so dump with --delimiter=$'\\x1f', as --help shows"
	h := must(t, history.Options{}, good+bad)
	if i := slices.IndexFunc(h.Oddities, func(o history.Oddity) bool { return o.Name == manyFields }); i < 0 ||
		h.Oddities[i].Done != "2 of 5 runs"+want || h.Oddities[i].Count != 3 || len(h.Runs) != 3 {
		t.Errorf("%+v; want %s", h.Oddities, want)
	}
	if _, err := read(t, history.Options{}, unnamed(title)+bad); err == nil ||
		!strings.HasSuffix(err.Error(), "\n  "+manyFields+" (3 times): 2 of 2 runs"+want) {
		t.Errorf("%v; want %s", err, want)
	}
}
