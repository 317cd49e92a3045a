package history

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// watched is a gauge of whole devices with a level each 10 seconds from begin on: "b" busy, "i" idle, "?" not measured, " " no sample.
func watched(b *Book, node string, index int32, levels string) {
	measure(b, Gauge{Node: node, Index: index}, levels)
}

func measure(b *Book, g Gauge, levels string) {
	for i, c := range levels {
		level := map[rune]Level{'b': Busy, 'i': Idle, '?': Unmeasured}[c]
		if c != ' ' {
			b.Samples().Measure(g, Sample{At: at(10 * i), Level: level, MiB: NoMemory})
		}
	}
}

// used shows by device who held it and what was measured.
func used(h *History) (out []string) {
	show := func(s Spans) string {
		var times []string
		for _, x := range s {
			times = append(times, fmt.Sprintf("%d-%d", (x.From-begin)/second, (x.To-begin)/second))
		}
		return strings.Join(times, " ")
	}
	for i, d := range h.Devices {
		text := fmt.Sprintf("%s/%d:", h.Nodes[d.Node].Name, i-int(h.Nodes[d.Node].First))
		for _, x := range h.Held[i] {
			text += " " + h.Runs[x.Run].ID
		}
		if h.Used != nil && h.Used[i] != nil {
			text += " idle " + show(h.Used[i].Idle) + " busy " + show(h.Used[i].Busy)
		}
		out = append(out, text)
	}
	return out
}

func TestMeasurementsFindTheirDevices(t *testing.T) {
	two := func(name string) func(b *Book) {
		return func(b *Book) { b.Tell(NodeRow{Name: name, Devices: []Part{{b.Kind([]byte("a100")), 2, 1000}}}) }
	}
	j := func(node string) job {
		return job{id: 1, submit: 0, start: 0, end: 50, gpus: 1, kind: "a100", nodes: node, state: Completed}
	}
	last := job{id: 2, submit: 100, start: 100, end: 110, gpus: 1, kind: "a100", nodes: "n1", state: Completed}
	for _, c := range []struct {
		name string
		fill func(b *Book)
		node string
		want []string
		odd  string
	}{
		{"by name", func(b *Book) { two("n1")(b); watched(b, "n1", 0, "iii"); watched(b, "n1", 1, "bbb") }, "n1",
			[]string{"n1/0: 2 idle 0-20 busy ", "n1/1: 1 idle  busy 0-20"}, ""},
		{"by the short name", func(b *Book) { two("n1")(b); watched(b, "n1.example", 0, "iii"); watched(b, "n1.example", 1, "bbb") }, "n1",
			[]string{"n1/0: 2 idle 0-20 busy ", "n1/1: 1 idle  busy 0-20"}, ""},
		{"two names of one", func(b *Book) { two("n1")(b); watched(b, "n1.example", 0, "  iii"); watched(b, "n1", 0, "iii") }, "n1",
			[]string{"n1/0: 1 2 idle 0-40 busy ", "n1/1:"}, ""},
		{"of no node", func(b *Book) { two("n1")(b); watched(b, "n7", 0, "iii"); watched(b, "n7", 1, "iii") }, "n1",
			[]string{"n1/0: 1 2", "n1/1:"},
			"a measured node that the log does not name: 1 n7"},
		{"of a device too many", func(b *Book) { two("n1")(b); watched(b, "n1", 2, "iii") }, "n1", []string{"n1/0: 1 2", "n1/1:"},
			"a measured device that is none of its node's in the log: 1 n1/2"},
		{"nothing was told", func(b *Book) { watched(b, "n1", 0, "iii"); watched(b, "n1", 1, "bbb"); watched(b, "n1", 2, "iii") }, "n1",
			[]string{"n1/0: 2 idle 0-20 busy ", "n1/1: 1 idle  busy 0-20", "n1/2: idle 0-20 busy "}, ""},
		{"by index, as one tells nothing", func(b *Book) { two("n1")(b); watched(b, "n1", 0, "???"); watched(b, "n1", 1, "ibb") }, "n1",
			[]string{"n1/0: 2", "n1/1: 1 idle  busy 10-20"}, ""},
		{"samples that are missing", func(b *Book) { two("n1")(b); watched(b, "n1", 0, "iiii     iii") }, "n1",
			[]string{"n1/0: 1 2 idle 0-30 90-110 busy ", "n1/1:"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := closed(t, Options{}, c.fill, j(c.node), last)
			if got := used(h); !slices.Equal(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			odd := ""
			for _, o := range h.Oddities {
				odd = fmt.Sprintf("%s: %d %s", o.Name, o.Count, strings.Join(o.Places, " "))
			}
			if odd != c.odd {
				t.Errorf("odd %q, want %q", odd, c.odd)
			}
		})
	}
}

// TestSlicesAreMeasuredInTheirOrder: by GPU and instance, if there are as many.
func TestSlicesAreMeasuredInTheirOrder(t *testing.T) {
	slice := func(index int32, id string) Gauge {
		return Gauge{Node: "n1", Index: index, Profile: "1g.10gb", Slice: id}
	}
	fill := func(count int32) func(b *Book) {
		return func(b *Book) {
			b.Tell(NodeRow{Name: "n1", Devices: []Part{{b.Kind([]byte("1g.10gb")), count, 1000}, {b.Kind([]byte("a100")), 1, 1000}}})
			measure(b, slice(1, "11"), "bbb")
			measure(b, slice(1, "9"), "iii")
			watched(b, "n1", 0, "iii")
			watched(b, "n1", 1, "???") // it has MIG
		}
	}
	jobs := []job{{id: 1, submit: 0, start: 0, end: 50, gpus: 1, kind: "1g.10gb", nodes: "n1", state: Completed},
		{id: 2, submit: 100, start: 100, end: 110, gpus: 1, kind: "a100", nodes: "n1", state: Completed}}
	got := used(closed(t, Options{}, fill(2), jobs...))
	if want := []string{"n1/0: idle 0-20 busy ", "n1/1: 1 idle  busy 0-20", "n1/2: 2 idle 0-20 busy "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = used(closed(t, Options{}, fill(3), jobs...))
	if want := []string{"n1/0: 1", "n1/1:", "n1/2:", "n1/3: 2 idle 0-20 busy "}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestSpans: a union is what a look at each instant says, and so is what of it lies in a stretch.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Spans
		var in [60]bool
		for range rapid.IntRange(0, 10).Draw(t, "unions") {
			from, to := rapid.IntRange(0, 59).Draw(t, "from"), rapid.IntRange(0, 60).Draw(t, "to")
			s = s.With(quantity.Instant(from), quantity.Instant(to))
			for i := from; i < to; i++ {
				in[i] = true
			}
		}
		for i := 1; i < len(s); i++ {
			if s[i-1].To >= s[i].From {
				t.Fatalf("%v", s)
			}
		}
		from, to := rapid.IntRange(0, 59).Draw(t, "from"), rapid.IntRange(0, 60).Draw(t, "to")
		var got [60]bool
		for x := range s.Within(quantity.Instant(from), quantity.Instant(to)) {
			for i := x.From; i < x.To; i++ {
				got[i] = true
			}
		}
		sum := 0
		for i := range in {
			want := in[i] && i >= from && i < to
			if want {
				sum++
			}
			if got[i] != want {
				t.Fatalf("%v within %d..%d at %d", s, from, to, i)
			}
		}
		if got := s.Overlap(quantity.Instant(from), quantity.Instant(to)); int(got) != sum {
			t.Fatalf("%d, want %d", got, sum)
		}
	})
}

// TestMemoryThatIsAlwaysThere: what drivers and daemons hold of a device's memory, here 500 MiB, is nobody's work, and what lies on top is,
// also where a device is never seen without.
func TestMemoryThatIsAlwaysThere(t *testing.T) {
	b := NewBook(Options{})
	for device, samples := range [][]int32{{500, 500, 500, 900, 900, 500, 500, 560}, {9000, 9000, 9000, 9000, 9000, 9000, 9000, 9000}} {
		for i, used := range samples {
			b.Samples().Measure(Gauge{Node: "n", Index: int32(device)}, Sample{At: at(10 * i), MiB: used})
		}
	}
	h, err := b.Close()
	if err != nil {
		t.Fatal(err)
	}
	for device, want := range []Gap{{at(0), at(70)}, {at(20), at(50)}} { // memory alone does not say which is which
		if held := h.Held[device]; len(held) != 1 || held[0].From != want.From || held[0].To != want.To {
			t.Errorf("device %d: held %+v, want %+v", device, held, want)
		}
	}
}
