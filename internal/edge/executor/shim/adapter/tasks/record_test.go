package tasks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSum(t *testing.T) {
	for text, want := range map[string]string{
		"": `{"lines":0}`,
		`{"metric": 1, "step": 3}` + "\n\n" + `{"step":4, "metric": -2.5e3}`: `{"lines":2,"last":-2500,"step":4,"least":-2500,"most":1}`,
		`{"metric": 1}` + "\n" + `{"metric": NaN, "step": 7}`:                `{"lines":2,"step":7,"least":1,"most":1}`,
		`{"metric": -Infinity, "step": 1.0}`:                                 `{"lines":1,"step":1}`,
		"x\n{\"metric\": \"a\"}\n{\"step\": 1}\n[]\n{\"metric\":":            `{"lines":0,"wrong":5}`,
		strings.Repeat("y", 3<<20) + "\n" + `{"metric": 2}`:                  `{"lines":1,"wrong":1,"last":2,"least":2,"most":2}`,
	} {
		m, err := Sum(strings.NewReader(text))
		got, _ := json.Marshal(m)
		if err != nil || string(got) != want {
			t.Errorf("%.60q: %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestSumIsOverAll: of lines in any order the extremes are theirs and the last is the last.
func TestSumIsOverAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(-1e9, 1e9), 1, 50).Draw(t, "values")
		var b strings.Builder
		for i, v := range values {
			line, _ := json.Marshal(map[string]any{"metric": v, "step": i})
			b.Write(append(line, '\n'))
		}
		m, err := Sum(strings.NewReader(b.String()))
		if err != nil || m.Lines != int64(len(values)) || *m.Least != slices.Min(values) || *m.Most != slices.Max(values) ||
			*m.Last != values[len(values)-1] || *m.Step != int64(len(values)-1) {
			t.Fatalf("%+v, %v of %v", m, err, values)
		}
	})
}

func TestRecordsOfWhatCounts(t *testing.T) {
	text := `{"unit":4,"exit":0}` + "\n" + `{"unit":5,"exit":1}` + "\n" + `{"unit":6,"exit":0}` + "\n" + `{"unit":7,"ex`
	list, err := ReadRecords(strings.NewReader(text), 4, 6)
	if err != nil || len(list) != 2 || list[0].Failed() || !list[1].Failed() {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestFill(t *testing.T) {
	params := []Param{{"lr", "1e-3"}, {"l", "L"}, {"é", "{lr}"}}
	for arg, want := range map[string]string{
		"{lr}": "1e-3", "a{l}b{lr}c": "aLb1e-3c", "{{lr}": "{lr}", "{{{lr}": "{1e-3", "{nope}{": "{nope}{", "{é}": "{lr}", "": "",
		"{ lr}": "{ lr}",
		"{{{{":  "{{", `{"x": {lr}}`: `{"x": 1e-3}`,
	} {
		if got := Fill(arg, params); got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
	if used := Uses("{lr}{{l}", params); len(used) != 1 || !used["lr"] {
		t.Errorf("%v", used)
	}
}

// TestTableKeepsValues: whatever a value is, the trial gets it.
func TestTableKeepsValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 4).Draw(t, "width")
		row := rapid.SliceOfN(rapid.String(), width, width)
		names := row.Draw(t, "names")
		rows := rapid.SliceOfN(row, 1, 20).Draw(t, "rows")
		from := rapid.IntRange(0, len(rows)-1).Draw(t, "from")
		to := rapid.IntRange(from+1, len(rows)).Draw(t, "to")
		var b bytes.Buffer
		if err := WriteTable(&b, names, rows); err != nil {
			t.Fatal(err)
		}
		gotNames, got, err := ReadTable(&b, int64(from), int64(to))
		if err != nil || !slices.Equal(gotNames, names) || !slices.EqualFunc(got, rows[from:to], slices.Equal) {
			t.Fatalf("%q %q, %v, want %q", gotNames, got, err, rows[from:to])
		}
	})
	for text, want := range map[string]string{"": "ends before", "[\"a\"]\n": "ends before", "[\"a\"]\n[1]\n": "line 2",
		"[\"a\"]\n[\"b\",\"c\"]\n": "2 values"} {
		if _, _, err := ReadTable(strings.NewReader(text), 0, 1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte(`{"metric": 0.3, "step": 10}` + "\n" + `{"metric": NaN}` + "\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Sum(bytes.NewReader(data))
		if err != nil || m.Lines+m.Wrong > int64(bytes.Count(data, []byte("\n"))+1) {
			t.Fatalf("%+v, %v", m, err)
		}
		for _, v := range []*float64{m.Last, m.Least, m.Most} {
			if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
				t.Fatal(fmt.Sprint(*v))
			}
		}
	})
}
