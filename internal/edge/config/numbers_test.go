package config

import (
	"regexp"
	"testing"
)

// TestExpressionsThatFindNumbers: what can't say a number is told apart, and what to write instead.
func TestExpressionsThatFindNumbers(t *testing.T) {
	for text, want := range map[string]string{
		`step (\d+)`: "", `step \d+`: "", `step .*`: "", `(?i)step=([0-9,]+)`: "", `step (?:at )?(\w+)`: "", `[^a-z]+`: "", `at 1`: "",
		`step`: `step (\d+)`, `(step) \d+`: `step (\d+)`, `epoch [a-z]+`: `epoch [a-z]+ (\d+)`, `saved `: `saved (\d+)`, `it's`: `step (\d+)`,
	} {
		by := regexp.MustCompile(text)
		if got := findsNumbers(by); got != (want == "") {
			t.Errorf("%s finds numbers: %v", text, got)
		}
		if want != "" && numbering(text) != want {
			t.Errorf("for %s it says to write %s, want %s", text, numbering(text), want)
		}
	}
}
