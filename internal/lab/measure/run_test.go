package measure_test

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/measure"
)

var runs = []measure.Run{
	{Scenario: "small", Mechanism: "sja", Seed: 1, Metrics: measure.Metrics{{Name: "utilization", Value: 1. / 3},
		{Name: "waitMean", Value: math.NaN()}}},
	{Scenario: "small, \"big\"", Mechanism: "easy", Seed: math.MaxUint64, Metrics: measure.Metrics{{Name: "waitMean", Value: 1e21},
		{Name: "boundShare", Value: 1}}},
}

func TestJSON(t *testing.T) {
	const want = `[
 {"scenario":"small","mechanism":"sja","seed":1,"metrics":{"utilization":0.3333333333333333,"waitMean":null}},
 {"scenario":"small, \"big\"","mechanism":"easy","seed":18446744073709551615,"metrics":{"waitMean":1e+21,"boundShare":1}}
]
`
	var out bytes.Buffer
	if err := measure.WriteJSON(&out, runs); err != nil || out.String() != want {
		t.Fatalf("got %v\n%swant\n%s", err, out.String(), want)
	}
	read, err := measure.ReadJSON(&out)
	if err != nil || len(read) != 2 || !same(read[0], runs[0]) || !same(read[1], runs[1]) {
		t.Errorf("read back %v, %v", read, err)
	}
	out.Reset()
	if err := measure.WriteJSON(&out, nil); err != nil || out.String() != "[\n]\n" {
		t.Errorf("no runs: %q, %v", out.String(), err)
	}
}

func TestCSV(t *testing.T) {
	const want = `scenario,mechanism,seed,utilization,waitMean,boundShare
small,sja,1,0.3333333333333333,,
"small, ""big""",easy,18446744073709551615,,1e+21,1
`
	var out bytes.Buffer
	if err := measure.WriteCSV(&out, runs); err != nil || out.String() != want {
		t.Errorf("got %v\n%swant\n%s", err, out.String(), want)
	}
}

// same compares runs; NaN equals NaN.
func same(a, b measure.Run) bool {
	if a.Scenario != b.Scenario || a.Mechanism != b.Mechanism || a.Seed != b.Seed || len(a.Metrics) != len(b.Metrics) {
		return false
	}
	for i, v := range a.Metrics {
		w := b.Metrics[i]
		if v.Name != w.Name || v.Value != w.Value && !(math.IsNaN(v.Value) && math.IsNaN(w.Value)) {
			return false
		}
	}
	return true
}

func TestReadJSONSaysWhatIsWrong(t *testing.T) {
	const whole = `{"scenario":"s","mechanism":"m","seed":1,"metrics":{}}`
	for _, c := range []struct{ in, want string }{
		{``, "EOF"}, {`{}`, "cannot unmarshal object"}, {`[` + whole + `] 1`, "more after the list"},
		{`[{"scenario":"s"},` + whole + `,{"seed":1}]`, "run 0: want scenario, mechanism, seed and metrics\nrun 2: want"},
		{strings.ReplaceAll(`[`+whole+`]`, `"seed"`, `"sead"`), `unknown field "sead"`},
		{strings.ReplaceAll(`[`+whole+`]`, `{}`, `{"a":1,"b":"x","a":1e999}`),
			"metric \"b\": x; want a number or null\nmetric \"a\": 1e999; want a number or null\nmetric \"a\": given twice"},
		{strings.ReplaceAll(`[`+whole+`]`, `{}`, `[]`), "want an object of names and numbers"},
		{strings.ReplaceAll(`[`+whole+`]`, `1`, `-1`), "cannot unmarshal number -1"},
	} {
		_, err := measure.ReadJSON(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) || errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v (%v); want it to say %q", c.in, err, errkind.Of(err), c.want)
		}
	}
}

func FuzzReadJSON(f *testing.F) {
	var out bytes.Buffer
	if err := measure.WriteJSON(&out, runs); err != nil {
		f.Fatal(err)
	}
	f.Add(out.Bytes())
	f.Add([]byte(`[{"scenario":"","mechanism":"","seed":0,"metrics":{"a":-0.0,"":null}}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		read, err := measure.ReadJSON(bytes.NewReader(data))
		if err != nil {
			if errkind.Of(err) != errkind.Invalid || read != nil {
				t.Fatalf("%v is %v, with %v", err, errkind.Of(err), read)
			}
			return
		}
		var again bytes.Buffer
		if err := measure.WriteJSON(&again, read); err != nil {
			t.Fatal(err)
		}
		twice, err := measure.ReadJSON(&again)
		if err != nil || len(twice) != len(read) {
			t.Fatalf("%q does not read back: %v", data, err)
		}
		for i := range read {
			if !same(read[i], twice[i]) {
				t.Fatalf("%v reads back as %v", read[i], twice[i])
			}
		}
	})
}
