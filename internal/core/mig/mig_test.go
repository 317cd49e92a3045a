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
	for name, want := range map[string]string{
		"a100-80gb": "a100-80gb", "A100-80GB": "a100-80gb", " a100-80 ": "a100-80gb", "NVIDIA A100-SXM4-80GB": "a100-80gb",
		"A100-SXM4-80GB":        "a100-80gb",
		"NVIDIA-A100-80GB-PCIe": "a100-80gb", "h100-nvl": "h100-94gb", "NVIDIA-H100-PCIe": "h100-pcie-80gb", "b200": "b200-180gb",
		"gb200":              "gb200-186gb",
		"NVIDIA-GH200-480GB": "gh200-96gb", "NVIDIA-GH200-144G-HBM3e": "gh200-144gb", "H20": "h20-96gb",
		"NVIDIA-RTX-PRO-6000-Blackwell-Max-Q-Workstation-Edition": "rtx-pro-6000-96gb",
	} {
		if g := board(t, name); g.Name != want {
			t.Errorf("%q is %q, want %q", name, g.Name, want)
		}
	}
	_, err := mig.Board("v100")
	if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "a30-24gb, a100-40gb, a100-80gb, b200-180gb, gb200-186gb") {
		t.Errorf("unknown board: %v", err)
	}
}

// The table's own promises: what the rules of placement rely on.
func TestTablesAreConsistent(t *testing.T) {
	for _, g := range mig.Boards() {
		if whole := g.Profiles[0]; whole.Speed != 1000 || whole.Size != g.MemorySlices || whole.Compute != g.ComputeSlices ||
			whole.Memory >= g.Memory {
			t.Errorf("%s: the first profile is not the whole board: %+v", g.Name, whole)
		}
		for i, p := range g.Profiles {
			if !slices.IsSorted(p.Starts) || p.Starts[0] < 0 || p.Starts[len(p.Starts)-1]+p.Size > g.MemorySlices {
				t.Errorf("%s %s: starts %v leave the board", g.Name, p.Name, p.Starts)
			}
			if !strings.HasPrefix(p.Name, fmt.Sprintf("%dg.", p.Compute)) || p.Max < 1 || p.SMs < 0 || p.Memory <= 0 || p.Speed < 1 {
				t.Errorf("%s: %+v", g.Name, p)
			}
			if again, ok := mig.Canonical(p.Name); !ok || again != p.Name {
				t.Errorf("%s: %s reads back as %q", g.Name, p.Name, again)
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
		{"h100-80", "3g.40gb", 454, 40448}, {"h100-80", "1g.20gb", 196, 20096}, {"a30-24", "1g.6gb", 250, 5952},
		{"a30-24", "2g.12gb", 500, 11968},
		{"a100-40", "4g.20gb", 571, 19968}, {"h200-141", "7g.141gb", 1000, 143104}, {"b200", "1g.23gb", 121, 20992},
		{"b200", "1g.45gb", 202, 45312},
		{"b200", "2g.45gb", 243, 45312}, {"gb200", "1g.23gb", 118, 22528}, {"gb200", "2g.47gb", 250, 46592},
		{"gh200-96", "1g.12gb", 121, 11264},
		{"gh200-96", "7g.96gb", 1000, 95232}, {"gh200-144", "1g.36gb", 196, 36096}, {"h100-nvl", "1g.12gb", 121, 10880},
		{"h100-nvl", "3g.47gb", 454, 47232},
		{"h100-pcie", "1g.10gb", 122, 9984}, {"h20", "1g.12gb", 102, 12032}, {"rtx-pro-6000-96", "1g.24gb+gfx", 244, 23680},
		{"rtx-pro-6000-96", "4g.96gb", 1000, 95616},
	} {
		g := board(t, c.board)
		p, ok := g.Profile(strings.ToUpper(c.profile))
		if !ok || p.Speed != c.speed || int64(p.Memory) != c.mib<<20 {
			t.Errorf("%s %s: speed %d, %d MiB (found %v); want %d, %d", c.board, c.profile, p.Speed, p.Memory>>20, ok, c.speed, c.mib)
		}
	}
}

// Where no output of a driver was found, the name's gigabytes and its compute slices count.
func TestSpeedsAndMemoryByName(t *testing.T) {
	for _, c := range []struct {
		board, profile string
		speed, bytes   int64
	}{
		{"b200", "3g.90gb", 428, 90e9}, {"b200", "4g.90gb", 571, 90e9}, {"b200", "7g.180gb", 1000, 180e9}, {"gb200", "3g.93gb", 428, 93e9},
		{"gb200", "4g.93gb", 571, 93e9}, {"gb200", "7g.186gb", 1000, 186e9}, {"gh200-144", "3g.72gb", 454, 72e9},
		{"h20", "2g.24gb", 285, 24e9},
		{"h20", "3g.48gb", 428, 48e9},
	} {
		g := board(t, c.board)
		p, ok := g.Profile(c.profile)
		if !ok || p.Speed != c.speed || int64(p.Memory) != c.bytes {
			t.Errorf("%s %s: speed %d, %d bytes (found %v); want %d, %d", c.board, c.profile, p.Speed, p.Memory, ok, c.speed, c.bytes)
		}
	}
}

func TestNamesInEverySpelling(t *testing.T) {
	for want, spellings := range map[string][]string{
		"1g.10gb": {"1g.10gb", " 1G.10GB ", "MIG 1g.10gb", "mig-1g.10gb", "nvidia.com/mig-1g.10gb", "1g10gb",
			"NVIDIA A100-SXM4-80GB MIG 1g.10gb", "1g.10 gb", "mig_1g.10gb"},
		"1g.10gb+me": {"1g.10gb+me", "1g.10gb.me", "nvidia.com/mig-1g.10gb.me", "1g.10gb+ME", "1g.10gb +me",
			"NVIDIA-A100-SXM4-80GB-MIG-1g.10gb.me"},
		"1g.24gb+me.all": {"1g.24gb+me.all", "mig-1g.24gb.me.all"},
		"2g.48gb+gfx":    {"2g.48gb+gfx", "mig-2g.48gb.gfx", "2G.48GB+GFX"},
		"2g.48gb-me":     {"2g.48gb-me", "mig-2g.48gb-me"},
		"1c.2g.20gb":     {"1c.2g.20gb", "MIG 1c.2g.20gb"},
	} {
		for _, s := range spellings {
			if got, ok := mig.Canonical(s); got != want || !ok {
				t.Errorf("%q is %q (%v), want %q", s, got, ok, want)
			}
		}
	}
	for _, s := range []string{"", "gpu", "g.10gb", "1g.gb", "1g.10gb+", "1g.10gb+x", "1g.10gbme", "0g.10gb", "1g.10gb@0", "A100-SXM4-80GB",
		"99999g.1gb"} {
		if got, ok := mig.Canonical(s); ok {
			t.Errorf("%q is a profile: %q", s, got)
		}
	}
}

func TestWhatIsKnown(t *testing.T) {
	for _, c := range []struct {
		model, profile string
		want           mig.Known
	}{
		{"NVIDIA-A100-SXM4-80GB", "mig-1g.10gb", mig.Known{Memory: 9856 << 20, Speed: 142}},
		{"NVIDIA H100 80GB HBM3", "1g.10gb.me", mig.Known{Memory: 9984 << 20, Speed: 121}},
		{"B200", "gpu", mig.Known{Memory: 183359 << 20, Speed: 1000}},
		// An unknown model: what the name says, and no row of another board.
		{"NVIDIA-H800", "1g.10gb", mig.Known{Memory: 10e9, Speed: 142}},
		{"", "3g.40gb", mig.Known{Memory: 40e9, Speed: 428}},
		{"", "1g.6gb", mig.Known{Memory: 6e9, Speed: 250}},
		{"", "1g.23gb", mig.Known{Memory: 20992 << 20, Speed: 142}}, // a B200 has less than its name says
		{"", "1g.24gb", mig.Known{Memory: 22016 << 20, Speed: 142}}, // a quarter of one board, and less of another
		// A known model without such a profile is of the same account.
		{"NVIDIA A30", "3g.40gb", mig.Known{Memory: 40e9, Speed: 428}},
		// Names that no board has, and no names.
		{"", "3g.95gb", mig.Known{Speed: 428}}, {"NVIDIA A30", "9g.99gb", mig.Known{Speed: 1000}}, {"", "gpu", mig.Known{Speed: 1000}},
		{"Tesla-T4", "gpu", mig.Known{Speed: 1000}},
	} {
		if got := mig.Lookup(c.model, c.profile); got != c.want {
			t.Errorf("%q %q: %d MiB, %d; want %d MiB, %d", c.model, c.profile, got.Memory>>20, got.Speed, c.want.Memory>>20, c.want.Speed)
		}
	}
	for product, want := range map[string]string{"A100-SXM4-80GB": "NVIDIA A100-SXM4-80GB",
		"NVIDIA-A100-80GB-PCIe": "NVIDIA A100 80GB PCIe",
		"b200-180gb":            "NVIDIA B200", "Tesla-T4": "Tesla-T4"} {
		if got, _ := mig.ModelOf(product); got != want {
			t.Errorf("%q is a %q, want %q", product, got, want)
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
		{"rtx-pro-6000-96", "2g.48gb+gfx@6+2x1g.24gb", "1g.24gb@0 1g.24gb@3 2g.48gb+gfx@6"},
		{"rtx-pro-6000-96", "1g.24gb+me.all + 3x1g.24gb-me", "1g.24gb+me.all@0 1g.24gb-me@3 1g.24gb-me@6 1g.24gb-me@9"},
		{"rtx-pro-6000-96", "mig-1g.24gb.gfx+1G.24GB+GFX", "1g.24gb+gfx@0 1g.24gb+gfx@3"},
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
		{"3x3g.40gb", []string{"3 of 3g.40gb; the board has room for 2", "9 compute slices; the board has 7",
			"12 memory slices; the board has 8", "nearest legal layouts: 2x3g.40gb,"}},
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

func TestAWrongProfileIsToldAsOne(t *testing.T) {
	a100, pro := board(t, "a100-80"), board(t, "rtx-pro-6000-96")
	for _, c := range []struct {
		board mig.Geometry
		in    string
		want  []string
	}{
		{a100, "1g.10gb+gfx", []string{`"1g.10gb+gfx": the board has no profile "1g.10gb+gfx"; it has 7g.80gb`}},
		{a100, "foox1g.10gb", []string{`no profile "foox1g.10gb"`}},
		{pro, "1g.24gb+me.all+1g.24gb", []string{"it takes 5 media engines; the board has 4", "nearest legal layouts: "}},
	} {
		_, err := c.board.ParseLayout(c.in)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not say %q:\n%v", c.in, want, err)
			}
		}
	}
}

// plain are the profiles without a second variant of the same size: no media extensions, no double memory.
func plain(g mig.Geometry) []mig.Profile {
	return slices.DeleteFunc(slices.Clone(g.Profiles), func(p mig.Profile) bool {
		return strings.ContainsAny(p.Name, "+-") || p.ID == 15
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
	taken, compute, media, counts := map[int]bool{}, 0, 0, map[string]int{}
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
		compute, media = compute+i.Profile.Compute, media+i.Profile.Media
		if counts[i.Profile.Name]++; counts[i.Profile.Name] > i.Profile.Max {
			t.Fatalf("%v: too many of %s", l, i.Profile.Name)
		}
	}
	if compute > g.ComputeSlices {
		t.Fatalf("%v: %d compute slices", l, compute)
	}
	if media > g.Media && g.Media > 0 {
		t.Fatalf("%v: %d media engines", l, media)
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

// FuzzCanonical: what is taken for a name is one that is taken again, as it is.
func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"1g.10gb+me", "MIG 1c.2g.20gb", "nvidia.com/mig-1g.24gb.me.all", "2g.48gb-me", "mig", "1g.10gb+", "1g1gb..",
		"gpu"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, ok := mig.Canonical(s)
		if !ok {
			return
		}
		if again, is := mig.Canonical(strings.ToUpper(name)); !is || again != name {
			t.Fatalf("%q is %q, and that is %q (%v)", s, name, again, is)
		}
		if k := mig.Lookup("", s); k != mig.Lookup("", name) || k.Speed < 1 || k.Speed > 1000 || k.Memory < 0 {
			t.Fatalf("%q is known as %+v", s, k)
		}
	})
}
