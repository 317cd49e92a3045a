package index

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestTheIndexOfShortest: of two jobs the shorter is worth more, on every class that of the greater advantage, and each of their pieces
// what is left.
func TestTheIndexOfShortest(t *testing.T) {
	b := window.NewBoard(0)
	e := NewEstimator(shortest.Policy{}, time.Hour, false, b)
	var classes []*window.Class
	for _, s := range []protocol.Slice{{Profile: "1g", Speed: 142}, {Profile: "3g", Speed: 428}} {
		c, _ := b.ClassOf(&s)
		classes = append(classes, c)
	}
	small, large := classes[0], classes[1]
	steps := func(total, done int64, speeds ...job.SpeedOn) *Job {
		return &Job{Demand: &fakeJob{
			spec:      &job.Spec{Kind: job.Steps, Total: total, PerUnit: time.Second, Parallelism: 1, Speeds: speeds},
			committed: job.Ranges{}.Add(job.Range{To: done}),
		}}
	}
	rigid := func(wall time.Duration, priority int32) *Job {
		return &Job{Demand: &fakeJob{spec: &job.Spec{Kind: job.Rigid, Total: 1, Walltime: wall, Priority: priority}}}
	}
	on := func(j *Job, c *window.Class) int64 {
		if o, runs := e.outlook(j, c); runs {
			return shortest.Policy{}.Index(o)
		}
		return 0
	}
	// The first is as fast on the small slice as on the large one; the second three times as fast on the large.
	flat := steps(100, 0, job.SpeedOn{Profile: "1g", Permille: 400}, job.SpeedOn{Profile: "3g", Permille: 400})
	steep := steps(100, 0, job.SpeedOn{Profile: "1g", Permille: 133}, job.SpeedOn{Profile: "3g", Permille: 400})
	barred := steps(100, 0, job.SpeedOn{Profile: "3g", Permille: 0})
	for _, c := range []struct {
		name           string
		less, more     *Job
		lessOn, moreOn *window.Class
	}{
		{"twice the work", steps(200, 0), steps(100, 0), small, small},
		{"what is left counts", steps(100, 0), steps(200, 150), small, small},
		{"a large slice ends it sooner", steps(100, 0), steps(100, 0), small, large},
		{"as soon over there, but it could be elsewhere", flat, steep, large, large},
		{"sooner over on the small one than the other", steep, flat, small, small},
		{"it can't run there", barred, steps(100_000, 0), large, large},
		{"a longer walltime", rigid(2*time.Hour, 0), rigid(time.Hour, 0), small, small},
		{"no walltime counts as the horizon", rigid(0, 0), rigid(59*time.Minute, 0), small, small},
		{"a hundred points of priority count twice", rigid(time.Hour, 0), rigid(119*time.Minute, 100), small, small},
		{"and no more", rigid(121*time.Minute, 100), rigid(time.Hour, 0), small, small},
		{"a year against a year and a day", rigid(366*24*time.Hour, -500), rigid(365*24*time.Hour, -500), small, small},
	} {
		if less, more := on(c.less, c.lessOn), on(c.more, c.moreOn); less >= more || less < 0 {
			t.Errorf("%s: %d, want less than %d", c.name, less, more)
		}
	}
	if d := on(rigid(time.Millisecond, 500), large); d <= on(rigid(2*time.Millisecond, 500), large) {
		t.Errorf("the greatest index there is does not fit: %d", d)
	}
}
