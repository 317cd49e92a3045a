package config_test

import (
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/config"
)

// TestSizesNeedAUnit: nobody means 16 bytes by 16. What a cluster has taken stays what it was, and what is rendered reads back.
func TestSizesNeedAUnit(t *testing.T) {
	file := func(size string) []byte {
		return []byte("apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: a}\nspec: {command: [\"true\"], rigid: {walltime: " +
			"1m}, memory: " + size + "}\n")
	}
	for size, want := range map[string]quantity.Amount{"16": 16, "3000": 3000, "1.5": 2, `"3001"`: 3001} {
		if _, err := config.ParseJobs("f", file(size)); err == nil || !strings.Contains(err.Error(), "spec.memory: size") ||
			!strings.Contains(err.Error(), "give a unit: ") {
			t.Errorf("%s: %v", size, err)
		}
		list, err := config.ParseObject("f", file(size))
		if err != nil {
			t.Errorf("%s in an object: %v", size, err)
			continue
		}
		text, err := config.RenderJob(list[0].Spec, "")
		if err != nil {
			t.Fatal(err)
		}
		back, err := config.ParseJobs("f", text)
		if err != nil || list[0].Spec.Profile.Phases[0].Mean != back[0].Spec.Profile.Phases[0].Mean ||
			list[0].Spec.Profile.Phases[0].Mean != want {
			t.Errorf("%s: %v\n%s", size, err, text)
		}
	}
	if _, err := config.ParseJobs("f", file("16B")); err != nil {
		t.Error(err)
	}
}
