package mooncake

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var suite = tracetest.Suite{
	Format: Format(),
	File:   "conv.jsonl",
	Sample: `{"timestamp": 1500, "input_length": 6758, "output_length": 50, "hash_ids": [0, 1, 22]}
{"hash_ids":[],"output_length":1,"input_length":2,"timestamp":3}
 { "timestamp" : 4 , "input_length": 9, "output_length": 0, "hash_ids": [ 7 ] }
`,
	Want: []trace.Record{
		{Kind: trace.Request, Line: 1, At: 1500 * time.Millisecond, Request: trace.RequestRecord{Input: 6758, Output: 50,
			Blocks: []int64{0, 1, 22}}},
		{Kind: trace.Request, Line: 2, At: 3 * time.Millisecond, Request: trace.RequestRecord{Input: 2, Output: 1}},
		{Kind: trace.Request, Line: 3, At: 4 * time.Millisecond, Request: trace.RequestRecord{Input: 9, Blocks: []int64{7}}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "6758", New: "6e8", Says: `input_length is "6e8"`},
		{Name: "a text", Old: "6758", New: `"6758"`, Says: "input_length: expected a number"},
		{Name: "id in a list", Old: "22", New: "-22", Says: `hash_ids is "-22"`},
		{Name: "no list", Old: "[]", New: "0", Says: "expected a list of ids"},
		{Name: "open list", Old: "[0, 1, 22]", New: "[0, 1, 22", Place: "1:85", Says: "a comma or the list's end"},
		{Name: "comma too many", Old: "[0, 1, 22]", New: "[0, 1, 22, ]", Place: "1:87", Says: "expected a number"},
		{Name: "missing key", Old: `{"hash_ids":[],`, New: "{", Says: "the object lacks hash_ids"},
		{Name: "unknown key", Old: `"output_length":1`, New: `"Output_length":1`,
			Says: `expected one of the keys "timestamp", "input_length"`},
		{Name: "key twice", Old: `"output_length":1`, New: `"output_length":1,"output_length":1`, Place: "2:34",
			Says: "output_length is there twice"},
		{Name: "no colon", Old: `"output_length":1`, New: `"output_length" 1`, Place: "2:32", Says: "expected a colon"},
		{Name: "two objects", Old: `"timestamp":3}`, New: `"timestamp":3}{}`, Place: "2:65", Says: "nothing behind the object"},
		{Name: "no object", Old: ` { "timestamp" : 4`, New: `[ "timestamp" : 4`, Says: "expected an object"},
	},
}

func TestConforms(t *testing.T)      { tracetest.Run(t, suite) }
func FuzzMooncake(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkMooncake(b *testing.B) { tracetest.Bench(b, suite) }

// What a JSON encoder writes is read as it was meant.
func TestReadsWhatIsEncoded(t *testing.T) {
	type line struct {
		Timestamp int64   `json:"timestamp"`
		Input     int64   `json:"input_length"`
		Output    int64   `json:"output_length"`
		Blocks    []int64 `json:"hash_ids"`
	}
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.Int64Range(0, 1<<40)
		want := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) line {
			return line{number.Draw(t, "timestamp"), number.Draw(t, "input"), number.Draw(t, "output"),
				rapid.SliceOf(number).Draw(t, "blocks")}
		}), 1, 5).Draw(t, "lines")
		var content strings.Builder
		for _, l := range want {
			if err := json.NewEncoder(&content).Encode(l); err != nil {
				t.Fatal(err)
			}
		}
		reader := Format().Open(strings.NewReader(content.String()), "x")
		var r trace.Record
		for _, l := range want {
			if err := reader.Next(&r); err != nil {
				t.Fatal(err)
			}
			got := line{r.At.Milliseconds(), r.Request.Input, r.Request.Output, append([]int64{}, r.Request.Blocks...)}
			if !reflect.DeepEqual(got, l) {
				t.Fatalf("%+v, want %+v", got, l)
			}
		}
		if err := reader.Next(&r); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	})
}

// Conversations arrive at 3.4 a second; blocks have 512 tokens.
func TestPublishedConversations(t *testing.T) {
	var last time.Duration
	n := tracetest.Each(t, Format(), "mooncake/conversation_trace.jsonl.gz", func(r *trace.Record) {
		if r.At < last {
			t.Fatalf("line %d is earlier than the one before", r.Line)
		}
		last = r.At
		if want := (r.Request.Input + 511) / 512; int64(len(r.Request.Blocks)) != want {
			t.Fatalf("line %d: %d tokens in %d blocks", r.Line, r.Request.Input, len(r.Request.Blocks))
		}
	})
	if rate := 10 * time.Duration(n) * time.Second / last; n != 12031 || rate != 33 && rate != 34 {
		t.Errorf("%d requests, %d in 10 s", n, rate)
	}
}
