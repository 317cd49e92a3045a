// Package indices reads the index lists of job arrays, such as 1,3,5-9:2%4. It imports nothing of ours: the small program that runs tasks
// reads them too.
package indices

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxID is the largest index, which is Slurm's own bound.
	MaxID = 4_000_000
	// MaxTasks is how many indices a list may have.
	MaxTasks = 1_000_000
	// maxText bounds what is read.
	maxText = 1 << 16
)

// List is the indices of an array.
type List struct {
	// IDs ascend, each once, as Slurm takes a list whatever its order.
	IDs []int64
	// Parallel is how many may run at once; 0: it does not say.
	Parallel int
}

// Parse reads a list: indices and ranges FROM-TO or FROM-TO:STEP between commas, then %N for how many may run at once.
func Parse(text string) (List, error) {
	var l List
	if len(text) > maxText {
		return l, fmt.Errorf("is longer than %d bytes", maxText)
	}
	text, most, limited := strings.Cut(text, "%")
	if limited {
		n, err := strconv.ParseInt(most, 10, 31)
		if !digits(most) || err != nil || n < 1 {
			return l, fmt.Errorf("%q behind %% is not how many tasks may run at once; want a number such as %%20", most)
		}
		l.Parallel = int(n)
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, step, err := span(part)
		if err != nil {
			return List{}, err
		}
		if (to-from)/step+1 > int64(2*MaxTasks-len(l.IDs)) { // doubled ones go below
			return List{}, tooMany()
		}
		for id := from; id <= to; id += step {
			l.IDs = append(l.IDs, id)
		}
	}
	slices.Sort(l.IDs)
	if l.IDs = slices.Compact(l.IDs); len(l.IDs) > MaxTasks {
		return List{}, tooMany()
	}
	return l, nil
}

func tooMany() error { return fmt.Errorf("has more than %d indices", MaxTasks) }

// span is one index or range of a list.
func span(part string) (from, to, step int64, err error) {
	wrong := func(why string) (int64, int64, int64, error) {
		return 0, 0, 0, fmt.Errorf("%q %s; want indices such as 7, 0-199 or 1-9:2 between commas", part, why)
	}
	rest, by, stepped := strings.Cut(part, ":")
	first, last, ranged := strings.Cut(rest, "-")
	if !ranged {
		last = first
	}
	step = 1
	for _, f := range []struct {
		text string
		to   *int64
	}{{first, &from}, {last, &to}, {by, &step}} {
		if f.to == &step && !stepped {
			continue
		}
		n, err := strconv.ParseInt(f.text, 10, 64)
		if !digits(f.text) {
			return wrong("is no index or range")
		}
		if err != nil || n > MaxID {
			return wrong(fmt.Sprintf("has a number above %d", MaxID))
		}
		*f.to = n
	}
	switch {
	case stepped && !ranged:
		return wrong("has a step and no range")
	case step < 1:
		return wrong("has a step of 0")
	case to < from:
		return wrong("ends before it begins")
	}
	return from, to, step, nil
}

// Step is the difference between each index and the next, if it is always the same; else 1.
func (l *List) Step() int64 {
	if len(l.IDs) < 2 {
		return 1
	}
	step := l.IDs[1] - l.IDs[0]
	for i := 2; i < len(l.IDs); i++ {
		if l.IDs[i]-l.IDs[i-1] != step {
			return 1
		}
	}
	return step
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}
