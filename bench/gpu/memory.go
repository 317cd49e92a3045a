package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// contextMost is what a process may have on the device besides what it asks for: CUDA's context and PyTorch's kernels.
const contextMost = 2 << 30

// known is a size that a program is told to take: a quarter of the slice, at most 8 GiB.
func (w *world) known() int64 { return min(w.slice.MemoryBytes/4, 8<<30) >> 20 << 20 }

// memory runs a program that takes a known size, and asks what was observed of it.
func memory(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	size, began := w.known(), time.Now()
	name, err := w.submit(ctx, "hold", job{
		program: []string{"hold.py"},
		spec: map[string]any{"items": map[string]any{"total": 1, "perItem": (w.pace.hold + time.Second).String()},
			"memory": asked(size + w.room())},
		env: map[string]string{"SIZE": strconv.FormatInt(size, 10), "HOLD": seconds(w.pace.hold)},
	})
	if err != nil {
		return nil, err
	}
	j, err := w.completed(ctx, name)
	if err != nil {
		return nil, err
	}
	var own struct {
		Before int64 `json:"before"`
		During int64 `json:"during"`
	}
	if err = w.output(ctx, name, "hold.json", &own); err != nil {
		return nil, err
	}
	var most int64
	for _, l := range w.eye.after(began) {
		most = max(most, l.Used-w.eye.idle)
	}
	peak := j.History[len(j.History)-1].PeakMemoryBytes
	seen := []figure{
		fig("asked for", "%s", mebibytes(size)), fig("observed peak of the subjob", "%s", mebibytes(peak)),
		fig("NVML: more in use than idle", "%s", mebibytes(most)),
		fig("CUDA: taken by the one allocation", "%s", mebibytes(own.During-own.Before)),
	}
	return seen, plausible(size, peak, most)
}

// plausible says where what was observed can't be of a program that took so much.
func plausible(size, peak, most int64) error {
	var errs []error
	if peak == 0 {
		errs = append(errs, errors.New("no peak was observed: the driver does not say here which process uses how much"))
	} else if peak < size || peak > size+contextMost {
		errs = append(errs, fmt.Errorf("the observed peak is %s, want %s and at most %s more", mebibytes(peak), mebibytes(size),
			mebibytes(contextMost)))
	}
	if most < size || most > size+contextMost {
		errs = append(errs, fmt.Errorf("NVML had %s more in use, want %s and at most %s more", mebibytes(most), mebibytes(size),
			mebibytes(contextMost)))
	}
	return errors.Join(errs...)
}

// outgrow runs a program that the device refuses memory, and one that fails of itself.
func outgrow(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	var seen []figure
	var errs []error
	for _, c := range []struct {
		mode   string
		want   pb.Subjob_Outcome
		raised bool
	}{{"memory", pb.Subjob_MEMORY, true}, {"crash", pb.Subjob_FAILED, false}} {
		name, err := w.submit(ctx, "outgrow-"+c.mode, job{
			program: []string{"outgrow.py"},
			spec:    map[string]any{"items": map[string]any{"total": 1, "perItem": "5s"}, "maxFailures": 1},
			env:     map[string]string{"MODE": c.mode},
		})
		if err != nil {
			return seen, err
		}
		j, err := w.until(ctx, name, "has a subjob that ended", func(j *pb.Job) bool {
			return len(j.History) > 0 && j.History[0].End != nil && j.History[0].Outcome != pb.Subjob_PUBLISHING
		})
		if err != nil {
			return seen, err
		}
		first := j.History[0]
		seen = append(seen, fig("a program that fails by "+c.mode, "%s, a peak of %s, then its profile x %.2f", first.Outcome,
			mebibytes(first.PeakMemoryBytes), float64(j.MemoryScale)/1000))
		if first.Outcome != c.want {
			errs = append(errs, fmt.Errorf("%s: the subjob ended as %s (%s), want %s", c.mode, first.Outcome, first.Detail, c.want))
		}
		if raised := j.MemoryScale > 1000; raised != c.raised {
			errs = append(errs, fmt.Errorf("%s: what the job declares counts %.2f times, want it raised: %v", c.mode,
				float64(j.MemoryScale)/1000, c.raised))
		}
		if !j.Final {
			if err = w.cancel(ctx, name); err != nil {
				return seen, err
			}
		}
	}
	return seen, errors.Join(errs...)
}

func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
