package mig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/mig"
)

func board(t testing.TB, name string) mig.Geometry {
	t.Helper()
	g, err := mig.Board(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestBoardsAreFoundAsPeopleWriteThem(t *testing.T) {
	for _, name := range []string{"a100-80gb", "A100-80GB", " a100-80 "} {
		if g := board(t, name); g.Name != "a100-80gb" {
			t.Errorf("%q is %q", name, g.Name)
		}
	}
	_, err := mig.Board("v100")
	if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "a100-40gb, a100-80gb, h100-80gb, h200-141gb") {
		t.Errorf("unknown board: %v", err)
	}
}

// The table's own promises: what the rules of placement rely on.
func TestTablesAreConsistent(t *testing.T) {
	for _, g := range mig.Boards() {
		if whole := g.Profiles[0]; whole.Speed != 1000 || whole.Size != g.MemorySlices || whole.Compute != g.ComputeSlices || whole.Memory >= g.Memory {
			t.Errorf("%s: the first profile is not the whole board: %+v", g.Name, whole)
		}
		for i, p := range g.Profiles {
			if !slices.IsSorted(p.Starts) || p.Starts[0] < 0 || p.Starts[len(p.Starts)-1]+p.Size > g.MemorySlices {
				t.Errorf("%s %s: starts %v leave the board", g.Name, p.Name, p.Starts)
			}
			if !strings.HasPrefix(p.Name, fmt.Sprintf("%dg.", p.Compute)) || p.Max < 1 || p.SMs < 1 || p.Memory <= 0 {
				t.Errorf("%s: %+v", g.Name, p)
			}
			if i > 0 && (p.Memory > g.Profiles[i-1].Memory || p.Size > g.Profiles[i-1].Size) {
				t.Errorf("%s: %s comes after %s", g.Name, p.Name, g.Profiles[i-1].Name)
			}
		}
	}
}

func TestSpeedsAndMemory(t *testing.T) {
	for _, c := range []struct {
		board, profile string
		speed, mib     int64
	}{
		{"a100-80", "3g.40gb", 428, 40192}, {"a100-80", "2g.20gb", 285, 19968}, {"a100-80", "1g.10gb", 142, 9856},
		{"h100-80", "3g.40gb", 454, 40448}, {"h100-80", "1g.20gb", 196, 20096}, {"a30-24", "1g.6gb", 250, 5836},
		{"a100-40", "4g.20gb", 571, 19968}, {"h200-141", "7g.141gb", 1000, 143360},
	} {
		g := board(t, c.board)
		p, ok := g.Profile(strings.ToUpper(c.profile))
		if !ok || p.Speed != c.speed || int64(p.Memory) != c.mib<<20 {
			t.Errorf("%s %s: speed %d, %d MiB (found %v); want %d, %d", c.board, c.profile, p.Speed, p.Memory>>20, ok, c.speed, c.mib)
		}
	}
}

func TestDeviceNames(t *testing.T) {
	g := board(t, "a100-80")
	for _, c := range []struct{ layout, want string }{
		{"1g.10gb@3", "gpu-0-mig-1g10gb-19-3"}, {"3g.40gb@4", "gpu-0-mig-3g40gb-9-4"}, {"1g.10gb+me@6", "gpu-0-mig-1g10gb-me-20-6"},
	} {
		l, err := g.ParseLayout(c.layout)
		if err != nil || l[0].DeviceName(0) != c.want {
			t.Errorf("%s: %v, %v; want %s", c.layout, l, err, c.want)
		}
	}
}

func TestParseLayoutFindsPlaces(t *testing.T) {
	for _, c := range []struct{ board, in, want string }{
		{"a100-80", "3g.40gb+2g.20gb+2x1g.10gb", "2g.20gb@0 1g.10gb@2 1g.10gb@3 3g.40gb@4"},
		{"a100-80", "7g.80gb", "7g.80gb@0"},
		{"a100-80", "4g.40gb + 3G.40GB", "4g.40gb@0 3g.40gb@4"},
		{"a100-80", "2x3g.40gb", "3g.40gb@0 3g.40gb@4"},
		{"a100-80", "3g.40gb@4+3x1g.10gb", "1g.10gb@0 1g.10gb@1 1g.10gb@2 3g.40gb@4"},
		{"a100-80", "1g.10gb+1g.10gb@0", "1g.10gb@0 1g.10gb@1"},
		{"a100-80", "6x1g.10gb+1g.10gb+me", "1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 1g.10gb@5 1g.10gb+me@6"},
		{"a30-24", "2g.12gb+me+2x1g.6gb", "2g.12gb+me@0 1g.6gb@2 1g.6gb@3"},
		{"h200-141", "1g.35gb+3x2g.35gb", "2g.35gb@0 2g.35gb@2 2g.35gb@4 1g.35gb@6"},
	} {
		g := board(t, c.board)
		l, err := g.ParseLayout(c.in)
		var got []string
		for _, i := range l {
			got = append(got, i.String())
		}
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s %q: %v, %v; want %s", c.board, c.in, got, err, c.want)
		}
	}
}

func TestParseLayoutSaysWhatIsWrongAndWhatIsNear(t *testing.T) {
	g := board(t, "a100-80")
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"3x3g.40gb", []string{"3 of 3g.40gb; the board has room for 2", "9 compute slices; the board has 7", "12 memory slices; the board has 8", "nearest legal layouts: 2x3g.40gb,"}},
		{"2x3g.40gb+1g.10gb", []string{"9 memory slices", "nearest legal layouts: 2x3g.40gb, 3g.40gb+1g.10gb"}},
		{"foo+0x1g.10gb+1g.20gb", []string{`no profile "foo"; it has 7g.80gb, 4g.40gb`, `the count "0"`, "nearest legal layouts: 1g.20gb"}},
		{"2g.20gb@1", []string{"can't begin at \"1\"; it begins at one of 0, 2, 4"}},
		{"2x2g.20gb@0", []string{"a place is for one instance"}},
		{"2g.20gb@0+2g.20gb@0", []string{"no places for all of them at once", "nearest legal layouts: 2x2g.20gb"}},
		{"", []string{`no profile ""`}},
		{"99999999999x1g.10gb", []string{"the board has room for 7", "nearest legal layouts: 7x1g.10gb"}},
		{strings.Repeat("1g.10gb+", 100), []string{"no layout needs more than 256"}},
	} {
		l, err := g.ParseLayout(c.in)
		if err == nil || errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v, %v; want an error", c.in, l, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q:\n%v", c.in, want, err)
			}
		}
	}
}

// plain are the profiles without a second variant of the same size: no media extensions, no double memory.
func plain(g mig.Geometry) []mig.Profile {
	return slices.DeleteFunc(slices.Clone(g.Profiles), func(p mig.Profile) bool {
		return strings.HasSuffix(p.Name, "+me") || p.ID == 15
	})
}

// We count the placements over the five plain profiles to which nothing can be added; two that differ only in where an
// instance lies are two. As sets of sizes there are fewer.
func TestMaximalPartitions(t *testing.T) {
	for _, c := range []struct {
		board        string
		places, sets int
	}{{"a100-40", 19, 14}, {"a100-80", 19, 14}, {"h100-80", 19, 14}, {"h200-141", 19, 14}, {"a30-24", 5, 4}} {
		g := board(t, c.board)
		profiles := plain(g)
		places, sets := 0, map[string]bool{}
		for _, l := range g.Partitions() {
			only := !slices.ContainsFunc(l, func(i mig.Instance) bool {
				return !slices.ContainsFunc(profiles, func(p mig.Profile) bool { return p.Name == i.Profile.Name })
			})
			if only && g.Maximal(l, profiles) {
				places++
				sets[l.String()] = true
			}
		}
		if places != c.places || len(sets) != c.sets {
			t.Errorf("%s: %d maximal placements, %d sets of sizes; want %d, %d", c.board, places, len(sets), c.places, c.sets)
		}
	}
}

// checkLegal is an oracle apart from the package's search: a map of memory slices.
func checkLegal(t interface{ Fatalf(string, ...any) }, g mig.Geometry, l mig.Layout) {
	taken, compute, counts := map[int]bool{}, 0, map[string]int{}
	for _, i := range l {
		if !slices.Contains(i.Profile.Starts, i.Start) {
			t.Fatalf("%v: %v begins where it may not", l, i)
		}
		for s := i.Start; s < i.Start+i.Profile.Size; s++ {
			if taken[s] || s >= g.MemorySlices {
				t.Fatalf("%v: memory slice %d is taken twice or not there", l, s)
			}
			taken[s] = true
		}
		compute += i.Profile.Compute
		if counts[i.Profile.Name]++; counts[i.Profile.Name] > i.Profile.Max {
			t.Fatalf("%v: too many of %s", l, i.Profile.Name)
		}
	}
	if compute > g.ComputeSlices {
		t.Fatalf("%v: %d compute slices", l, compute)
	}
}

func TestAcceptedLayoutsAreLegalAndLegalOnesAccepted(t *testing.T) {
	boards := mig.Boards()
	legal := make([]map[string]bool, len(boards))
	for i, g := range boards {
		legal[i] = map[string]bool{}
		for _, l := range g.Partitions() {
			checkLegal(t, g, l)
			legal[i][l.String()] = true
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, len(boards)-1).Draw(t, "board")
		g := boards[n]
		var wished mig.Layout
		var parts []string
		for range rapid.IntRange(1, 7).Draw(t, "parts") {
			p := rapid.SampledFrom(g.Profiles).Draw(t, "profile")
			wished = append(wished, mig.Instance{Profile: p})
			parts = append(parts, p.Name)
		}
		l, err := g.ParseLayout(strings.Join(parts, "+"))
		if (err == nil) != legal[n][wished.String()] {
			t.Fatalf("%s %v: %v, %v, but among the legal ones: %v", g.Name, parts, l, err, err != nil)
		}
		if err != nil {
			return
		}
		checkLegal(t, g, l)
		if l.String() != wished.String() {
			t.Fatalf("%v became %v", wished, l)
		}
		again, err := g.ParseLayout(l.String())
		if err != nil || again.String() != l.String() {
			t.Fatalf("%v reads back as %v, %v", l, again, err)
		}
	})
}

func FuzzParseLayout(f *testing.F) {
	for _, s := range []string{"3g.40gb+2g.20gb+2x1g.10gb", "7x1g.10gb", "1g.10gb+me@6", "3g.40gb@4+@", "0x", "xx+me+me", "+"} {
		f.Add(s)
	}
	g := board(f, "a100-80")
	f.Fuzz(func(t *testing.T, s string) {
		l, err := g.ParseLayout(s)
		if err == nil && len(l) == 0 {
			t.Fatalf("%q is accepted as an empty layout", s)
		}
		checkLegal(t, g, l)
	})
}
