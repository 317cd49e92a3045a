// Package usage tells people what takes the space of a data directory.
package usage

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/volume"
)

// mostEntries entries are named; in each at most mostLooked files are counted.
const (
	mostEntries = 3
	mostLooked  = 100_000
)

// Of says how much space a data directory takes, and which of its entries take the most.
func Of(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "nobody knows who fills it: " + err.Error()
	}
	type size struct {
		name string
		foreign.Usage
	}
	var all []size
	var sum int64
	for _, e := range entries {
		one := size{name: e.Name()}
		if e.IsDir() {
			one.Add(filepath.Join(dir, e.Name()), foreign.Usage{Files: mostLooked})
		} else if info, err := e.Info(); err == nil {
			one.Bytes = info.Size()
		}
		all = append(all, one)
		sum += one.Bytes
	}
	slices.SortStableFunc(all, func(a, b size) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var texts []string
	for _, one := range all[:min(len(all), mostEntries)] {
		more := ""
		if one.Files > mostLooked {
			more = "more than "
		}
		texts = append(texts, fmt.Sprintf("%s %s%s", one.name, more, volume.Bytes(one.Bytes)))
	}
	return fmt.Sprintf("the data directory has %s of it (%s), the rest is others'", volume.Bytes(sum), strings.Join(texts, ", "))
}
