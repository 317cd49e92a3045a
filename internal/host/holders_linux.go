package host

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

// mostHolders is how many folders are named, mostLooked how many files of one are looked at.
const (
	mostHolders = 3
	mostLooked  = 100_000
)

// holders says what takes the most room of a data directory.
func holders(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "nobody knows who fills it: " + err.Error()
	}
	type holder struct {
		name string
		foreign.Usage
	}
	var all []holder
	var sum int64
	for _, e := range entries {
		one := holder{name: e.Name()}
		if e.IsDir() {
			one.Add(filepath.Join(dir, e.Name()), foreign.Usage{Files: mostLooked})
		} else if info, err := e.Info(); err == nil {
			one.Bytes = info.Size()
		}
		all = append(all, one)
		sum += one.Bytes
	}
	slices.SortStableFunc(all, func(a, b holder) int { return cmp.Compare(b.Bytes, a.Bytes) })
	var texts []string
	for _, one := range all[:min(len(all), mostHolders)] {
		more := ""
		if one.Files > mostLooked {
			more = "more than "
		}
		texts = append(texts, fmt.Sprintf("%s %s%s", one.name, more, volume.Bytes(one.Bytes)))
	}
	return fmt.Sprintf("the data directory has %s of it (%s), the rest is others'", volume.Bytes(sum), strings.Join(texts, ", "))
}
