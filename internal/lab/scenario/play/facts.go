package play

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
)

// Facts are what is measured of the work that a scenario offers under its first seed.
type Facts struct {
	// Slices of the cluster.
	Slices int
	// Measured says that the rest is known: it is not where published traces are needed and absent.
	Measured bool
	Jobs     int64
	// Load is the work offered over what the cluster can do for this mix of jobs until the last arrives; 0 for explicit jobs.
	Load float64
	// RigidShare is the part of the work that can't be cut.
	RigidShare float64
	// MeanGap is the mean idle stretch of a slice where only the rigid work and the reservations run, until the last
	// arrival; 0 for explicit jobs, or where the workload is too large to look. MeanJob is the mean time that a job takes on the
	// whole reference GPU, where it takes the least.
	MeanGap, MeanJob time.Duration
}

// gapJobs is the largest workload whose gaps are looked for.
const gapJobs = 6_000

// Measure finds the facts. Without data, a scenario that needs some is not measured.
func Measure(ctx context.Context, s *scenario.Scenario, m Mechanism, data *Traces) (Facts, error) {
	f := Facts{Slices: s.Slices()}
	if s.Swarm != nil { // its work has no end, and its load is what the file says
		return f, nil
	}
	if s.NeedsData() && data.Dir == "" {
		return f, nil
	}
	if m.Policy == nil {
		return f, errkind.Errorf(errkind.Invalid, "mechanism %s does not sell gaps; measure with sja", m.Name)
	}
	var w world
	if _, err := w.see(ctx, s, &m, s.Seeds[0], data); err != nil {
		return f, err
	}
	f.Measured, f.Jobs = true, w.jobs
	if w.jobs == 0 {
		return f, nil
	}
	f.MeanJob = seconds(w.length / float64(w.jobs))
	f.RigidShare = w.rigid / w.work
	if s.Host != nil {
		f.MeanGap = meanGap(w.host.Gaps(s.Window.Warmup, s.Window.Until))
		return f, nil
	}
	if !w.generated {
		return f, nil
	}
	if w.last > 0 && w.rate > 0 {
		span := time.Duration(w.last).Seconds() * float64(w.jobs) / float64(max(1, w.jobs-1)) // with a mean gap after the last
		f.Load = w.work / w.rate / span
	}
	if w.jobs <= gapJobs && w.last > 0 {
		gap, err := gap(ctx, s, m, &w, data)
		if err != nil {
			return f, err
		}
		f.MeanGap = gap
	}
	return f, nil
}

// meanGap is the mean length of a host's gaps.
func meanGap(gaps []measure.Gap) time.Duration {
	sum := 0.0 // seconds
	for _, g := range gaps {
		sum += g.To.Sub(g.From).Seconds()
	}
	return seconds(sum / float64(max(1, len(gaps))))
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// gap runs the rigid work alone and measures what is left between.
func gap(ctx context.Context, s *scenario.Scenario, m Mechanism, w *world, data *Traces) (time.Duration, error) {
	from, err := offer(ctx, s, s.Seeds[0], data)
	if err != nil {
		return 0, err
	}
	from.only = job.Rigid
	seen := &occupied{slices: make([][]hold, s.Slices())}
	if _, _, err := playProtocol(ctx, stage{s, &m, s.Seeds[0], w, from, seen, func(quantity.Instant, int) {}, &measure.Negotiation{},
		&measure.Survival{}, new(measure.Visits), new(measure.Lent), &[]status.Strain{}, &[]status.ReclaimStep{}, nil}); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, errkind.Errorf(errkind.Unavailable, "the gaps were not looked at to the end: %w", err)
	}
	number := map[job.SliceID]int{}
	for _, n := range s.Nodes {
		for i := range n.Slices {
			number[n.Slices[i].ID] = len(number)
		}
	}
	for i := range s.Reservations {
		r := &s.Reservations[i]
		for start, end := r.Start, r.End; start < w.last; start, end = start.Add(r.Every), end.Add(r.Every) {
			seen.slices[number[r.Slice]] = append(seen.slices[number[r.Slice]], hold{start, end})
			if r.Every == 0 {
				break
			}
		}
	}
	return seen.mean(w.last), nil
}

// occupied is an Observer that notes when each slice was held. Slices that a gang holds are taken for neighbours.
type occupied struct{ slices [][]hold }

// Arrived implements measure.Observer.
func (o *occupied) Arrived(quantity.Instant, measure.Slot, *workload.Job) {}

// Began implements measure.Observer.
func (o *occupied) Began(quantity.Instant, measure.Slot, uint8, int32) {}

// Ended implements measure.Observer.
func (o *occupied) Ended(_ quantity.Instant, p *measure.Piece) {
	for i := p.First; i < p.First+p.Slices && int(i) < len(o.slices); i++ {
		o.slices[i] = append(o.slices[i], hold{p.Start, p.End})
	}
}

// Done implements measure.Observer.
func (o *occupied) Done(quantity.Instant, measure.Slot, job.State) {}

// Sent implements measure.Observer.
func (o *occupied) Sent(int) {}

// mean length of the idle stretches from 0 to an instant.
func (o *occupied) mean(until quantity.Instant) time.Duration {
	var idle, n float64 // seconds
	for _, list := range o.slices {
		slices.SortFunc(list, func(a, b hold) int { return cmp.Compare(a.from, b.from) })
		at := quantity.Instant(0)
		for _, h := range append(list, hold{until, until}) {
			if from := min(h.from, until); from > at {
				idle, n = idle+from.Sub(at).Seconds(), n+1
			}
			at = max(at, h.to)
		}
	}
	if n == 0 {
		return 0
	}
	return seconds(idle / n)
}

// String is a line for people.
func (f Facts) String() string {
	text := fmt.Sprintf("%d slices", f.Slices)
	if f.Measured {
		text += fmt.Sprintf(", %d jobs, %.0f%% of the work rigid", f.Jobs, 100*f.RigidShare)
	}
	if f.Load > 0 {
		text += fmt.Sprintf(", load %.2f", f.Load)
	}
	if f.MeanGap > 0 {
		text += fmt.Sprintf(", mean gap %s, mean job %s", f.MeanGap.Round(time.Second), f.MeanJob.Round(time.Second))
	}
	return text
}
