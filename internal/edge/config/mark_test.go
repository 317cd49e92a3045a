package config_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/strict"
)

// TestByteOrderMark: a file means the same with the mark that some editors put before it.
func TestByteOrderMark(t *testing.T) {
	for text, want := range map[string]string{"a: 1\n": "", `{"a": "\ud83d\ude00"}`: "", "": "f:1:1: the file is empty"} {
		for _, mark := range []string{"", strict.ByteOrderMark} {
			said := ""
			if err := strict.Read("f", []byte(mark+text), nil, func(strict.Value) {}); err != nil {
				said = err.Error()
			}
			if !strings.Contains(said, want) || want == "" && said != "" {
				t.Errorf("%q: %q, want %q", mark+text, said, want)
			}
		}
	}
}
