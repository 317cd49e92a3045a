package witness

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Only are the kinds of strikes with these names, separated by commas; if there are none, all.
func Only[K any](all []K, name func(K) string, names string) ([]K, error) {
	if names == "" {
		return all, nil
	}
	var some []K
	for want := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(k K) bool { return name(k) == strings.TrimSpace(want) })
		if i < 0 {
			return nil, fmt.Errorf("there are no strikes %q", want)
		}
		some = append(some, all[i])
	}
	return some, nil
}

// Tally counts strikes: how many fell while a subjob ran on what they struck (Leased), and how long they took.
type Tally struct {
	Strikes, Leased int
	Took            time.Duration
}

func (t *Tally) add(more Tally) {
	t.Strikes, t.Leased, t.Took = t.Strikes+more.Strikes, t.Leased+more.Leased, t.Took+more.Took
}

// Tallies are those of each kind, by its name.
type Tallies map[string]*Tally

// Note counts one strike.
func (t Tallies) Note(kind string, leased bool, took time.Duration) {
	if t[kind] == nil {
		t[kind] = &Tally{}
	}
	one := Tally{Strikes: 1, Took: took}
	if leased {
		one.Leased = 1
	}
	t[kind].add(one)
}

// Print prints the table, and returns its sum.
func (t Tallies) Print() (all Tally) {
	line := func(name string, of Tally) {
		fmt.Printf("%-20s  %7d  %11d  %7.0f\n", name, of.Strikes, of.Leased, of.Took.Seconds())
	}
	fmt.Printf("\n%-20s  %7s  %11s  %7s\n", "strike", "strikes", "on a lease", "seconds")
	for _, name := range slices.Sorted(maps.Keys(t)) {
		line(name, *t[name])
		all.add(*t[name])
	}
	line("all", all)
	fmt.Println()
	return all
}
