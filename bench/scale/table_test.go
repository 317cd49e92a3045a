package main

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

func vector(gib int64) trp.Vector { return trp.Vector{quantity.Amount(gib << 30)} }

// TestVerdicts: a line is met only if every case has a value and the target holds; what was given up is missed.
func TestVerdicts(t *testing.T) {
	cells := func(v ...float64) (out []cell) {
		for _, x := range v {
			if x < 0 {
				out = append(out, gaveUp("case", "gave up"))
			} else {
				out = append(out, measured("case", x))
			}
		}
		return out
	}
	for _, c := range []struct {
		l    line
		want string
	}{
		{line{Value: 50, Cells: cells(10, 50)}, met},
		{line{Value: 50, Cells: cells(60, 50)}, met}, // the last case counts
		{line{Value: 50, Cells: cells(10, 51)}, missed},
		{line{Value: 50, More: true, Cells: cells(10, 50)}, met},
		{line{Value: 50, More: true, Cells: cells(60, 49)}, missed},
		{line{Ratio: 2, Cells: cells(10, 20)}, met},
		{line{Ratio: 2, Cells: cells(10, 21, 10)}, missed}, // in between too
		{line{Ratio: 2, AtLast: true, Cells: cells(10, 21, 10)}, met},
		{line{Ratio: 2, AtLast: true, Cells: cells(10, 10, 21)}, missed},
		{line{Ratio: 2, AtLast: true, Cells: cells(10, -1, 10)}, missed},
		{line{Ratio: 1.2, More: true, Cells: cells(1200, 1000)}, met},
		{line{Ratio: 1.2, More: true, Cells: cells(1200, 999)}, missed},
		{line{Ratio: 2, Cells: cells(10, -1)}, missed},
		{line{Ratio: 2, Cells: cells(-1, 10)}, missed},
		{line{Value: 50, Cells: cells(-1, 10)}, missed},
		{line{Value: 50}, unmeasured},
		{line{Cells: cells(10)}, ""},
	} {
		if got := c.l.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.l, got, c.want)
		}
	}
}

func TestMeasured(t *testing.T) {
	c := measured("1k", 3, 1, 2, 10)
	if c.Median != 2.5 || c.Low != 1 || c.High != 10 || c.Rounds != 4 {
		t.Errorf("%+v", c)
	}
	if measured("1k").GaveUp == "" {
		t.Error("a case without a value has none to show")
	}
	for want, v := range map[string]float64{"0": 0, "0.12": .123, "5": 5, "12.3": 12.34, "123": 123.4, "12k": 12_340} {
		if got := number(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
	for want, n := range map[string]int{"999": 999, "10k": 10_000, "1M": 1_000_000, "1234": 1234} {
		if got := size(n); got != want {
			t.Errorf("%d is shown as %s, want %s", n, got, want)
		}
	}
}

// TestThePage is replaced between its marks and nowhere else, and refused where it has none.
func TestThePage(t *testing.T) {
	page, err := replaced("before\n"+pageBegin+"old\n"+pageEnd+"after\n", "new\n")
	if want := "before\n" + pageBegin + "new\n" + pageEnd + "after\n"; err != nil || page != want {
		t.Errorf("%q, %v; want %q", page, err, want)
	}
	if _, err := replaced("before\nafter\n", "new\n"); err == nil {
		t.Error("a page without marks is written")
	}
}

// TestTheTable says every case, what was given up, and the verdict; and a run with a missed target says which.
func TestTheTable(t *testing.T) {
	r := results{Machine: "m", Commit: "c", Date: "d", Took: "1m", Lines: []line{
		{Row: "sold", Name: "sold subjob", Unit: "us", Value: 50, Target: "50 us",
			Cells: []cell{measured("1k", 10, 12, 14), measured("1M", 40)}, Note: "a note"},
		{Row: "sim", Name: "simulator", Unit: "subjobs/s", More: true, Value: 5000, Target: "5,000",
			Cells: []cell{gaveUp("10k nodes", "gave up after 60s")}},
	}}
	for name, write := range map[string]func(*strings.Builder) error{
		"text": func(s *strings.Builder) error { return r.text(s) }, "markdown": func(s *strings.Builder) error { return r.markdown(s) },
	} {
		var s strings.Builder
		if err := write(&s); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"1k: 12.0 (10.0 to 14.0)", "1M: 40.0", "3.3", "a note", "10k nodes: gave up after 60s", met, missed,
			"1 targets met, 1 not met: simulator"} {
			if !strings.Contains(s.String(), want) {
				t.Errorf("%s: %q is not in\n%s", name, want, s.String())
			}
		}
	}
	base := results{Machine: "m", Lines: []line{{Row: "sold", Name: "sold subjob", Unit: "us",
		Cells: []cell{measured("1k", 12), measured("1M", 80)}}}}
	var s strings.Builder
	if err := r.compare(&s, &base); err != nil {
		t.Fatal(err)
	}
	if got := s.String(); !strings.Contains(got, "1M: 80.0, is 1M: 40.0: 2 times better") || strings.Contains(got, "1k") {
		t.Errorf("compared with the baseline it says\n%s", got)
	}
}
