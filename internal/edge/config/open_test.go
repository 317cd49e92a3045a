package config

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// TestChainsWithoutALength: only where an adapter sees the end; without progress a step is a second. What is written is read as the same.
func TestChainsWithoutALength(t *testing.T) {
	const file = "apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {memory: 1Mi, command: [a], workdir: ., "
	for text, want := range map[string]job.Spec{
		"steps: {every: 1}, adapter: {directory: {path: c}}":                                       {Unit: "second", PerUnit: time.Second},
		"steps: {every: 1, perStep: 1s, unit: moment}, adapter: {directory: {path: c}}":            {Unit: "moment", PerUnit: time.Second},
		"steps: {every: 1}, adapter: {directory: {path: c, progress: 'step (\\d+)'}}":              {Unit: "step"},
		"steps: {every: 1, perStep: 5h}, adapter: {directory: {path: c, progress: 'step (\\d+)'}}": {Unit: "step", PerUnit: 5 * time.Hour},
	} {
		s, _, err := ParseJob("f", []byte(file+text+"}"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if !s.Open() || s.Unit != want.Unit || s.PerUnit != want.PerUnit {
			t.Errorf("%s: %+v", text, s)
		}
		written, err := RenderJob(s, ".")
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := ParseJob("f", written)
		if err != nil || again.Total != s.Total || again.PerUnit != s.PerUnit || again.Unit != s.Unit {
			t.Errorf("%s: read again %+v, %v", written, again, err)
		}
	}
	for text, says := range map[string]string{
		"steps: {every: 1}": `"total" is missing`,
		"steps: {every: 1}, adapter: {lines: {input: a}}":                          "only a job of items",
		"steps: {every: 2}, adapter: {directory: {path: c}}":                       "every: 1",
		"steps: {every: 1, perStep: 5s}, adapter: {directory: {path: c}}":          "a step is a second",
		"steps: {total: 1000000000001, every: 1}, adapter: {directory: {path: c}}": "1000000000000",
	} {
		if _, _, err := ParseJob("f", []byte(file+text+"}")); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", text, err, says)
		}
	}
}
