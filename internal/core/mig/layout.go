package mig

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// maxText bounds what ParseLayout looks at, in bytes.
const maxText = 256

// ParseLayout reads a layout and finds legal places for it. Parts are joined by '+'; a part is a profile's name, with a
// count in front ("2x1g.10gb") or a place behind ("3g.40gb@4") if wanted: "3g.40gb+2g.20gb+2x1g.10gb". Where several
// placements are legal the first in order of start is taken, largest profiles first, so the same text gives the same
// places.
//
// An error is of kind Invalid and lists every problem, and the nearest layouts that are legal.
func (g *Geometry) ParseLayout(s string) (Layout, error) {
	if len(s) > maxText {
		return nil, errkind.Errorf(errkind.Invalid, "layout of a board: %d bytes long; no layout needs more than %d", len(s), maxText)
	}
	var problems []error
	var wishes []wish
	for _, part := range splitParts(s) {
		w, err := g.parsePart(part)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		wishes = append(wishes, w)
	}
	instances := expand(wishes, g.MemorySlices)
	problems = append(problems, g.checkSums(wishes)...)
	if len(problems) == 0 {
		if l := g.place(instances); l != nil {
			return l, nil
		}
		problems = append(problems, errors.New("each part would fit, but there are no places for all of them at once"))
	}
	if near := g.nearest(wishes); len(near) > 0 {
		problems = append(problems, fmt.Errorf("the nearest legal layouts: %s", strings.Join(near, ", ")))
	}
	return nil, &errkind.Error{Kind: errkind.Invalid, Err: fmt.Errorf("layout %q of board %s: %w", s, g.Name, errors.Join(problems...))}
}

// splitParts cuts at '+', but keeps the suffix of a profile such as 1g.10gb+me with it.
func splitParts(s string) []string {
	var parts []string
	for _, p := range strings.Split(s, "+") {
		word, _, _ := strings.Cut(strings.TrimSpace(p), "@")
		if slices.Contains(extras, strings.ToLower(strings.TrimSpace(word))) && len(parts) > 0 &&
			!strings.Contains(parts[len(parts)-1], "@") {
			parts[len(parts)-1] += "+" + strings.TrimSpace(p)
			continue
		}
		parts = append(parts, strings.TrimSpace(p))
	}
	return parts
}

// parsePart reads [COUNTx]PROFILE[@START].
func (g *Geometry) parsePart(part string) (wish, error) {
	w := wish{count: 1, start: -1}
	name := part
	if c, rest, ok := strings.Cut(part, "x"); ok && strings.Trim(c, "0123456789 ") == "" {
		n, err := strconv.Atoi(strings.TrimSpace(c))
		if err != nil || n < 1 {
			return w, fmt.Errorf("%q: the count %q is not a number of at least 1", part, c)
		}
		w.count, name = n, strings.TrimSpace(rest)
	}
	name, at, placed := strings.Cut(name, "@")
	at = strings.TrimSpace(at)
	p, ok := g.Profile(name)
	if !ok {
		names := make([]string, len(g.Profiles))
		for i, q := range g.Profiles {
			names[i] = q.Name
		}
		return w, fmt.Errorf("%q: the board has no profile %q; it has %s", part, name, strings.Join(names, ", "))
	}
	w.profile = p
	if !placed {
		return w, nil
	}
	start, err := strconv.Atoi(at)
	if err != nil || !slices.Contains(p.Starts, start) {
		return w, fmt.Errorf("%q: %s can't begin at %q; it begins at one of %s", part, p.Name, at, numbers(p.Starts))
	}
	if w.count > 1 {
		return w, fmt.Errorf("%q: a place is for one instance; write a part for each", part)
	}
	w.start = start
	return w, nil
}

// checkSums finds what is wrong with the counts alone.
func (g *Geometry) checkSums(wishes []wish) []error {
	var problems []error
	compute, memory, media := 0, 0, 0
	for _, p := range g.Profiles {
		n := 0
		for _, w := range wishes {
			if w.profile.Name == p.Name {
				n = min(n+w.count, 1<<20)
			}
		}
		if n > p.Max {
			problems = append(problems, fmt.Errorf("%d of %s; the board has room for %d", n, p.Name, p.Max))
		}
		compute, memory, media = compute+n*p.Compute, memory+n*p.Size, media+n*p.Media
	}
	if compute > g.ComputeSlices {
		problems = append(problems, fmt.Errorf("it takes %d compute slices; the board has %d", compute, g.ComputeSlices))
	}
	if memory > g.MemorySlices {
		problems = append(problems, fmt.Errorf("it takes %d memory slices; the board has %d", memory, g.MemorySlices))
	}
	if g.Media > 0 && media > g.Media {
		problems = append(problems, fmt.Errorf("it takes %d media engines; the board has %d", media, g.Media))
	}
	return problems
}

// expand lists every instance wished for, largest first, those with a given place before those without. It stops at
// most+1, which is too many in any case.
func expand(wishes []wish, most int) []wish {
	var all []wish
	for _, w := range wishes {
		for range min(w.count, most+1) {
			all = append(all, wish{profile: w.profile, count: 1, start: w.start})
		}
	}
	slices.SortStableFunc(all, func(a, b wish) int {
		if placed := cmp.Compare(min(a.start, 0), min(b.start, 0)); placed != 0 {
			return -placed
		}
		return largestFirst(a.profile, b.profile)
	})
	return all
}

// place searches places for all of them; nil if there are none. At most seven instances fit, so the search is small.
func (g *Geometry) place(wishes []wish) Layout {
	l := Layout{}
	var search func(n int) bool
	search = func(n int) bool {
		if n == len(wishes) {
			return true
		}
		for _, start := range wishes[n].profile.Starts {
			i := Instance{Profile: wishes[n].profile, Start: start}
			given := wishes[n].start
			if given >= 0 && given != start || slices.ContainsFunc(l, i.overlaps) {
				continue
			}
			l = append(l, i)
			if search(n + 1) {
				return true
			}
			l = l[:len(l)-1]
		}
		return false
	}
	if !search(0) {
		return nil
	}
	slices.SortFunc(l, func(a, b Instance) int { return cmp.Compare(a.Start, b.Start) })
	return l
}

func numbers(ns []int) string {
	s := make([]string, len(ns))
	for i, n := range ns {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ", ")
}
