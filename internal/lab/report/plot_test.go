package report

import (
	"bytes"
	"math"
	"reflect"
	"testing"

	"sluice.dev/sluice/internal/edge/picture/picturetest"
	"sluice.dev/sluice/internal/lab/measure"
)

// exampleCharts has one chart of each kind, with a value that is missing and names that need care.
func exampleCharts() map[string]*Chart {
	nan := math.NaN()
	dots := func(ys ...float64) (list []Dot) {
		for i, y := range ys {
			list = append(list, Dot{X: .5 + float64(i)*.1, Y: y, Low: y * .9, High: y * 1.1})
		}
		return list
	}
	return map[string]*Chart{
		"lines": {
			Title: "Wait, mean <small>", X: Axis{Label: "load"}, Y: Axis{Label: "Wait, mean", Unit: measure.Seconds},
			Series: []Series{{"sja", dots(200, 300, 500, 700)}, {"sja:throughput", dots(180, 330, 450, 760)},
				{"easy", dots(400, nan, 900, 2400)}, {"fcfs", dots(500, 900, 2500, 7000)},
				{"a mechanism of one's own", dots(100, 100, 100, 100)}},
		},
		"points": {
			Title: "Completion, in the mean and at worst", Kind: Points,
			X: Axis{Label: "Completion, mean", Unit: measure.Seconds, Better: measure.Lower},
			Y: Axis{Label: "Share of the bound", Unit: measure.Share, Better: measure.Higher},
			Series: []Series{
				{"fcfs", []Dot{{X: 9000, Y: .8}}}, {"easy", []Dot{{X: 8900, Y: .81}}}, {"sjf", []Dot{{X: 4000, Y: .83}}},
				{"migrate", []Dot{{X: nan, Y: 1}}},
				{"sja:shortest", []Dot{{X: 3800, Y: .86}}}, {"sja:throughput", []Dot{{X: 7000, Y: .94}}},
				{"jasda", []Dot{{X: 3800, Y: .86}}}, {"las", nil},
			},
		},
		"bars": {
			Title: "Useful utilization", Kind: Bars, Y: Axis{Label: "Useful utilization", Unit: measure.Share},
			Series: []Series{{"sja", []Dot{{Y: .83, Low: .8, High: .86}}}, {"easy", []Dot{{Y: .71, Low: nan, High: nan}}},
				{"random", []Dot{{Y: nan}}}, {"fcfs", nil}},
		},
		"steps": {
			Title: "Waits", Kind: Steps, X: Axis{Label: "wait", Unit: measure.Seconds, Log: true},
			Y: Axis{Label: "share of jobs", Unit: measure.Share},
			Series: []Series{{"sja", []Dot{{}, {X: 0, Y: .5}, {X: 30, Y: .9}, {X: 5000, Y: 1}}},
				{"fcfs", []Dot{{}, {X: 10, Y: .2}, {X: 9000, Y: 1}}}},
		},
	}
}

func TestCharts(t *testing.T) {
	for name, c := range exampleCharts() {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := c.SVG(&out); err != nil {
				t.Fatal(err)
			}
			picturetest.WellFormed(t, out.Bytes())
			if bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")) {
				t.Error("a value that is missing was drawn")
			}
			picturetest.Golden(t, "chart-"+name+".svg", out.Bytes())
		})
	}
}

func TestChartsOfLittle(t *testing.T) {
	for _, c := range []*Chart{
		{}, {Kind: Bars}, {Kind: Points}, {Kind: Points, X: Axis{Log: true, Better: measure.Lower}, Y: Axis{Better: measure.Higher},
			Series: []Series{{"a", []Dot{{X: 0, Y: 1}}}}}, {Kind: Steps, X: Axis{Log: true}},
		{Series: []Series{{"a", []Dot{{X: 3, Y: 0}}}}},
		{Kind: Bars, Series: []Series{{"a", []Dot{{Y: -2, Low: -3, High: -1}}}}},
		{Series: []Series{{"a", []Dot{{X: 1e-9, Y: 1e12}, {X: 1e9, Y: 1e-12}}}}},
	} {
		var out bytes.Buffer
		if err := c.SVG(&out); err != nil {
			t.Fatal(err)
		}
		picturetest.WellFormed(t, out.Bytes())
		if bytes.Contains(out.Bytes(), []byte("NaN")) || bytes.Contains(out.Bytes(), []byte("Inf")) || out.Len() > 20000 {
			t.Errorf("%+v gives %s", c, out.String())
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		axis     Axis
		from, to float64
		want     []string
		unit     string
	}{
		{Axis{}, 0, 10, []string{"0", "2", "4", "6", "8", "10"}, ""},
		{Axis{Unit: measure.Share}, 0, 1, []string{"0%", "20%", "40%", "60%", "80%", "100%"}, ""},
		{Axis{Unit: measure.Seconds}, 0, 9000, []string{"0", "0.5", "1", "1.5", "2", "2.5"}, " (h)"},
		{Axis{Unit: measure.Seconds}, 0, 600, []string{"0", "2", "4", "6", "8", "10"}, " (min)"},
		{Axis{}, -1, 1, []string{"-1", "-0.5", "0", "0.5", "1"}, ""},
		{Axis{}, 5, 5, []string{"5", "5.2", "5.4", "5.6", "5.8", "6"}, ""},
		{Axis{Unit: measure.Seconds, Log: true}, 0, 4000, []string{"1 s", "10 s", "1 min", "10 min", "1 h"}, ""},
		{Axis{Log: true}, 0, 150, []string{"1", "10", "100"}, ""},
	} {
		s := newScale(c.axis, c.from, c.to, 0, 100, 5)
		var got []string
		for _, v := range s.ticks {
			got = append(got, s.label(v))
			if at := s.at(v); at < -1e-6 || at > 100+1e-6 {
				t.Errorf("%g lies at %g, outside of the axis", v, at)
			}
		}
		if !reflect.DeepEqual(got, c.want) || s.unit != c.unit {
			t.Errorf("%+v from %g to %g: %q%q, want %q%q", c.axis, c.from, c.to, got, s.unit, c.want, c.unit)
		}
	}
}

// TestNames: at most five series are named, ours first, at the ends of their lines and apart from each other; the others are there
// for the whole picture.
func TestNames(t *testing.T) {
	c := &Chart{Title: "many", X: Axis{Label: "load"}, Y: Axis{Label: "wait"}}
	for i, name := range []string{"fcfs", "easy", "fgd", "skip", "random", "sja", "packing", "jasda:fifo"} {
		c.Series = append(c.Series, Series{Name: name, Dots: []Dot{{X: 1, Y: 1, Low: math.NaN(), High: math.NaN()},
			{X: 2, Y: 5 + float64(i)/100, Low: math.NaN(), High: math.NaN()}}})
	}
	if got, want := c.featured(), []bool{true, true, true, false, false, true, false, true}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v are named, want %v", got, want)
	}
	text := c.draw(false)
	for name, want := range map[string]int{"sja": 1, "jasda:fifo": 1, "easy": 1, "packing": 0, "random": 0} {
		if got := bytes.Count([]byte(text), []byte(`font-weight="600">`+name+"<")); got != want {
			t.Errorf("%s stands there %d times, want %d", name, got, want)
		}
		if !bytes.Contains([]byte(text), []byte("<title>"+name+"</title>")) {
			t.Errorf("%s is not drawn", name)
		}
	}
	p := &plot{Chart: c}
	y := newScale(c.Y, 0, 6, 300, 40, 5)
	ends := p.labels(c.featured(), newScale(c.X, 1, 2, 0, 100, 5), y, 40, 300)
	for i := 1; i < len(ends); i++ {
		if ends[i].y-ends[i-1].y < lineStep-1e-9 || ends[i].y > 300 || ends[0].y < 40 {
			t.Errorf("labels meet: %+v", ends)
		}
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct {
		v    float64
		unit measure.Unit
		want string
	}{
		{.8319, measure.Share, "83.2%"}, {1, measure.Share, "100%"}, {.00012, measure.Share, "0.012%"}, {0, measure.Share, "0%"},
		{.25, measure.Seconds, "0.25 s"}, {119, measure.Seconds, "119 s"}, {150, measure.Seconds, "2.5 min"},
		{7200, measure.Seconds, "2 h"}, {864000, measure.Seconds, "10 d"},
		{12345.6, measure.Plain, "12346"}, {1.2409, measure.Plain, "1.24"}, {9.999, measure.Plain, "10"},
		{-3.14159, measure.Plain, "-3.14"}, {1e-12, measure.Plain, "0"},
		{math.NaN(), measure.Share, "-"},
	} {
		if got := figure(c.v, c.unit); got != c.want {
			t.Errorf("figure(%g) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestStylesAreFixedAndDiffer(t *testing.T) {
	seen := map[style]string{}
	for _, name := range []string{"sja", "jasda", "fcfs", "skip", "easy", "conservative", "bestfit", "fgd", "staticmig", "migrate",
		"random", "dotproduct", "clustering", "packing",
		"sjf", "sjf-easy", "easy-sjbf", "wspt", "saf", "f1", "wfp3", "srpt", "las",
		"sja:throughput", "sja:deadline", "sja:fifo", "sja:fair"} {
		s := styleOf(name)
		if other := seen[s]; other != "" {
			t.Errorf("%s looks like %s", name, other)
		}
		seen[s] = name
	}
	if styleOf("sja").color != styleOf("sja:deadline").color || styleOf("mine:other").color != styleOf("mine").color {
		t.Error("a mechanism does not keep its color")
	}
}
