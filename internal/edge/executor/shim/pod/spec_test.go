package pod

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// TestWhatIsSaidFitsAndIsReadAgain: a kubelet cuts off what is longer, and half a message is none.
func TestWhatIsSaidFitsAndIsReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Said{Result: job.Result{
			Outcome: job.Outcome(rapid.IntRange(1, int(job.NodeFailed)).Draw(t, "outcome")), Progress: rapid.Int64().Draw(t, "progress"),
			ExitCode: rapid.IntRange(-1, 255).Draw(t, "code"),
			Detail: strings.Repeat(rapid.SampledFrom([]string{"a", "\x00", "<", "é", "\xff", "\n"}).Draw(t, "letter"),
				rapid.IntRange(0, 20_000).Draw(t, "length")) + rapid.String().Draw(t, "end"),
		}}
		if rapid.Bool().Draw(t, "left something") {
			s.Output = &Left{Digest: store.Digest(strings.Repeat("a", 64)), Size: rapid.Int64().Draw(t, "size")}
			s.Checkpoint = s.Output
		}
		data := s.Encode()
		if len(data) > MaxSaid || !json.Valid(data) {
			t.Fatalf("%d bytes: %.80q", len(data), data)
		}
		got, ok := Decode(string(data))
		if !ok {
			t.Fatalf("not read: %.80q", data)
		}
		if (got.Output == nil) != (s.Output == nil) || got.Output != nil && *got.Output != *s.Output ||
			got.Result.Progress != s.Result.Progress || got.Result.Outcome != s.Result.Outcome {
			t.Errorf("%+v, want %+v", got, s)
		}
		if len(s.Result.Detail) < 100 && got.Result.Detail != strings.ToValidUTF8(s.Result.Detail, "\uFFFD") &&
			strings.ToValidUTF8(s.Result.Detail, "") == s.Result.Detail {
			t.Errorf("a short text was cut: %q, want %q", got.Result.Detail, s.Result.Detail)
		}
	})
}

func TestOthersWordsAreNotOurs(t *testing.T) {
	for _, text := range []string{"", "{}", "null", `{"Result":{}}`, "reading what is to run: no such file", `{"Result":{"Outcome":1}`} {
		if s, ok := Decode(text); ok {
			t.Errorf("%q is read as %+v", text, s)
		}
	}
}
