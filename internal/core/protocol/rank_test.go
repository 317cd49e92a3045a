package protocol

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

func TestRankOf(t *testing.T) {
	for _, c := range []struct {
		name   string
		spec   job.Spec
		weight int64
		want   Rank
	}{
		{"of a job like any other, in a queue that nobody has set", job.Spec{Kind: job.Items, Slices: 1}, 1, Rank{Yields: true}},
		{"of one with a priority", job.Spec{Kind: job.Steps, Slices: 1, Priority: -3}, 1, Rank{Priority: -3, Yields: true}},
		{"of one that is worth nothing later", job.Spec{Kind: job.Rigid, Slices: 1, Patience: time.Second}, 1, Rank{Class: Fleeting}},
		{"of several slices, whether or not they are of one node", job.Spec{Kind: job.Rigid, Slices: 2}, 1, Rank{Class: Collective}},
		{"below the next power of two", job.Spec{}, 7, Rank{Value: 2}},
		{"at it", job.Spec{}, 8, Rank{Value: 3}},
		{"in a queue of the greatest weight", job.Spec{}, 1<<63 - 1, Rank{Value: 62}},
		{"in a queue whose weight is none", job.Spec{}, 0, Rank{}},
	} {
		if got := RankOf(&c.spec, c.weight); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
