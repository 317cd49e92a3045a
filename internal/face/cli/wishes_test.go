package cli

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestWhoWaitsAndWhatIsGivenBack shows what sluice says of workloads outside it, with and without any.
func TestWhoWaitsAndWhatIsGivenBack(t *testing.T) {
	fake := apitest.New()
	fake.ReclaimList = apitest.Reclaimed()
	addr, quiet := answering(t, fake), answering(t, apitest.New())
	var all strings.Builder
	show := func(addr, line string) {
		r := sluice(t, addr, "", strings.Fields(line)...)
		fmt.Fprintf(&all, "$ sluice %s\n%s%sexit %d\n\n", line, r.out, r.err, r.code)
	}
	for _, line := range []string{"slices", "slices -o wide", "slices -o json", "slices -o name", "slices --wishes",
		"slices --wishes -o json", "slices --wishes -o name", "explain count-words", "explain count-words -o json", "explain train"} {
		show(addr, line)
	}
	show(quiet, "slices --wishes")
	show(quiet, "slices --wishes -o json")
	golden(t, "testdata/wishes.golden", all.String())
}
