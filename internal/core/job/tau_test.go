package job_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

func TestTauMin(t *testing.T) {
	for _, c := range []struct {
		r, k time.Duration
		o    int
		want time.Duration
	}{
		{0, 0, 100, 0},
		{20 * time.Second, 15 * time.Second, 100, 315 * time.Second},
		{20 * time.Second, 15 * time.Second, 50, 665 * time.Second},
		{time.Millisecond, 0, 100, time.Second},
		{time.Hour, 0, 1000, time.Second},
		{time.Second, 0, 0, 999 * time.Second},
		{-time.Second, time.Second, 500, time.Second},
	} {
		if got := job.TauMin(c.r, c.k, c.o); got != c.want {
			t.Errorf("TauMin(%s, %s, %d) = %s, want %s", c.r, c.k, c.o, got, c.want)
		}
	}
}
