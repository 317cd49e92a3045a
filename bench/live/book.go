package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"sluice.dev/sluice/bench/sample"
)

// figure is one number with its unit, as benchmark lines have them: "subjobs/s", "ms-to-start".
type figure struct {
	value float64
	unit  string
}

// book keeps what was measured, to be summed up at the end.
type book struct {
	order   []string
	figures map[string][]float64
}

// add prints one repetition as a line of Go's benchmark format and remembers its figures. n is how many operations the
// figures are of.
func (b *book) add(name string, n int, figures ...figure) {
	line := fmt.Sprintf("Benchmark%s \t%8d", name, n)
	if b.figures == nil {
		b.figures = map[string][]float64{}
	}
	for _, f := range figures {
		line += fmt.Sprintf("\t%12.4g %s", f.value, f.unit)
		key := name + " " + f.unit
		if b.figures[key] == nil {
			b.order = append(b.order, key)
		}
		b.figures[key] = append(b.figures[key], f.value)
	}
	fmt.Println(line)
}

// summary says median and range of everything, and how the throughputs stand to the first of them: the ratios are of the
// pairs, one by one, so that what slowed the machine for a while slowed both.
func (b *book) summary(w io.Writer) {
	fmt.Fprintf(w, "#\n# %-44s %10s   %s\n", "median of the repetitions", "", "range")
	for _, key := range b.order {
		v := slices.Sorted(slices.Values(b.figures[key]))
		fmt.Fprintf(w, "# %-44s %10.4g   %.4g to %.4g\n", key, sample.Median(v), v[0], v[len(v)-1])
	}
	base := b.figures[ownJobs+" "+perSecond]
	if base == nil {
		return
	}
	fmt.Fprintf(w, "#\n# no-op processes a second as a multiple of %s, pair by pair\n", ownJobs)
	for _, key := range b.order {
		other := b.figures[key]
		if !strings.HasSuffix(key, " "+perSecond) || key == ownJobs+" "+perSecond || len(other) != len(base) {
			continue
		}
		ratios := make([]float64, len(base))
		for i := range base {
			ratios[i] = other[i] / base[i]
		}
		slices.Sort(ratios)
		fmt.Fprintf(w, "# %-44s %10.3g   %.3g to %.3g\n", strings.TrimSuffix(key, " "+perSecond), sample.Median(ratios), ratios[0],
			ratios[len(ratios)-1])
	}
}
