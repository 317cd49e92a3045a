package config

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// TestWhatAJobSaysToTheMarket: external work, what it values and its options become these fields of the spec.
func TestWhatAJobSaysToTheMarket(t *testing.T) {
	for _, c := range []struct {
		text string
		want job.Spec // Kind, Unit, PerUnit, Grid, Parallelism, External, Restore, Checkpoint, Worth, Options, Template
	}{
		{"items: {total: 9, perItem: 1s}", job.Spec{Kind: job.Items, Unit: "item", PerUnit: time.Second, Grid: 1, Parallelism: 1,
			Worth: job.DefaultWorth}},
		{
			"external: {total: 9, perUnit: 1s, grid: 3, parallelism: 5}, worth: {laxity: 25%, overhead: 0.75}, template: resnet",
			job.Spec{Kind: job.Items, Unit: "unit", PerUnit: time.Second, Grid: 3, Parallelism: 5, External: true,
				Worth: job.Worth{Laxity: 250, Overhead: 750}, Template: "resnet"},
		},
		{
			"external: {total: 9, unit: epoch, perUnit: 2s, chain: true, restore: 3s, checkpoint: 4s}, options: [{name: bf16, speed: " +
				"1.4, memory: 0.6, env: {B: 2, A: 1}}, {name: same}]",
			job.Spec{
				Kind: job.Steps, Unit: "epoch", PerUnit: 2 * time.Second, Grid: 1, Parallelism: 1, External: true, Restore: 3 * time.Second,
				Checkpoint: 4 * time.Second,
				Worth:      job.DefaultWorth,
				Options: []job.Option{{Name: "bf16", Speed: 1400, Memory: 600, Env: []string{"A=1", "B=2"}},
					{Name: "same", Speed: 1000, Memory: 1000}},
			},
		},
	} {
		s, _, err := ParseJob("f", fmt.Appendf(nil, "{apiVersion: %s, kind: Job, metadata: {name: a}, spec: {%s, memory: 1Gi, command: "+
			"[x]}}", APIVersion, c.text))
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		got := job.Spec{
			Kind: s.Kind, Unit: s.Unit, PerUnit: s.PerUnit, Grid: s.Grid, Parallelism: s.Parallelism, External: s.External,
			Restore: s.Restore, Checkpoint: s.Checkpoint,
			Worth: s.Worth, Options: s.Options, Template: s.Template,
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", c.text, got, c.want)
		}
	}
}
