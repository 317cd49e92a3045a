// Package azure reads Microsoft's traces of requests to language models (AzureLLMInferenceTrace, 2023): instant, tokens
// of the prompt, tokens generated.
package azure

import (
	"io"

	"sluice.dev/sluice/internal/lab/trace"
)

const (
	timestamp = iota
	input
	output
)

// Format of the file. Records are requests.
func Format() trace.Format {
	return trace.Format{Name: "azure", Doc: "requests to Azure's language models, 2023 (CSV)", Kinds: []trace.Kind{trace.Request},
		Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	return trace.OpenCSV(r, file, trace.Sheet{
		Columns: []string{timestamp: "TIMESTAMP", input: "ContextTokens", output: "GeneratedTokens"},
		Parse: func(l *trace.Line, r *trace.Record) {
			r.Kind = trace.Request
			r.At = l.Column(timestamp).Date()
			r.Request = trace.RequestRecord{Input: l.Column(input).Count(), Output: l.Column(output).Count()}
		},
	})
}
