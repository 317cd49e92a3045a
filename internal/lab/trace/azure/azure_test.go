package azure

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var suite = tracetest.Suite{
	Format: Format(),
	File:   "conv.csv",
	Sample: "TIMESTAMP,ContextTokens,GeneratedTokens\n1970-01-01 00:00:02.5000001,374,44\n1970-01-01 01:00:00,0,1\n",
	Want: []trace.Record{
		{Kind: trace.Request, Line: 2, At: 2*time.Second + 500_000_100, Request: trace.RequestRecord{Input: 374, Output: 44}},
		{Kind: trace.Request, Line: 3, At: time.Hour, Request: trace.RequestRecord{Output: 1}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "374", New: "3.74", Says: `ContextTokens is "3.74"`},
		{Name: "too big", Old: "374", New: "99999999999999999999", Says: "ContextTokens"},
		{Name: "missing column", Old: ",GeneratedTokens", New: "", Place: "1:1", Says: "the header lacks GeneratedTokens"},
		{Name: "no instant", Old: "1970-01-01 01", New: "1970-01-01T01", Says: "TIMESTAMP"},
		{Name: "before 1970", Old: "1970-01-01 01", New: "1969-01-01 01", Says: "TIMESTAMP"},
	},
}

func TestConforms(t *testing.T)   { tracetest.Run(t, suite) }
func FuzzAzure(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkAzure(b *testing.B) { tracetest.Bench(b, suite) }

// Conversations come with a mean gap of .18 s, nearly as a Poisson process.
func TestPublishedConversations(t *testing.T) {
	var first, last time.Duration
	n := tracetest.Each(t, Format(), "azure/AzureLLMInferenceTrace_conv.csv.gz", func(r *trace.Record) {
		if first == 0 {
			first = r.At
		}
		if r.At < last {
			t.Fatalf("line %d is earlier than the one before", r.Line)
		}
		last = r.At
	})
	if gap := (last - first) / time.Duration(n-1); n != 19366 || gap.Round(10*time.Millisecond) != 180*time.Millisecond {
		t.Errorf("%d requests, mean gap %v", n, gap)
	}
}
