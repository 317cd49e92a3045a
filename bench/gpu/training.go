package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// trained is what programs/train.py leaves.
type trained struct {
	From    int64   `json:"from"`
	To      int64   `json:"to"`
	Startup float64 `json:"startup"`
	Run     float64 `json:"run"`
	Step    float64 `json:"step"`
	Digest  string  `json:"digest"`
}

// stepping is how long a step takes. Where it is known a program's start is known too (world.startup).
type stepping struct{ step time.Duration }

// measure says how long a step takes, from a short run without Sluice.
func (w *world) measure(ctx context.Context) (stepping, error) {
	if w.stepping.step > 0 {
		return w.stepping, nil
	}
	const steps = 60
	var t trained
	env := map[string]string{"TOTAL": strconv.Itoa(steps), "EVERY": strconv.Itoa(steps)}
	if err := w.bare(ctx, steps, env, "train-*.json", &t, "train.py"); err != nil {
		return stepping{}, err
	}
	w.stepping = stepping{max(time.Microsecond, time.Duration(t.Step*1e9))}
	w.slowest = max(w.slowest, t.Startup)
	return w.stepping, nil
}

// steps that take about as long as d, in twenty equal parts.
func (s stepping) steps(d time.Duration) (total, every int64) {
	every = max(5, min(5000, int64(d/s.step)/20))
	return 20 * every, every
}

// loop is a job of training.
func (s stepping) loop(total, every int64, env map[string]string) job {
	own := map[string]string{"TOTAL": strconv.FormatInt(total, 10), "EVERY": strconv.FormatInt(every, 10)}
	for k, v := range env {
		own[k] = v
	}
	return job{program: []string{"train.py"}, env: own, spec: map[string]any{
		"steps": map[string]any{"total": total, "every": every, "perStep": s.step.String(), "restore": "200ms", "checkpoint": "100ms"},
		"grace": "3s", "overheadMax": "100%", "minRuntime": "500ms",
	}}
}

// training trains without Sluice, and again in gaps that are too short for it, and holds the weights against each other.
func training(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	s, err := w.measure(ctx)
	if err != nil {
		return nil, err
	}
	total, every := s.steps(w.pace.training)
	env := map[string]string{"TOTAL": strconv.FormatInt(total, 10), "EVERY": strconv.FormatInt(every, 10)}
	var uncut trained
	began := time.Now()
	if err = w.bare(ctx, total, env, "train-*.json", &uncut, "train.py"); err != nil {
		return nil, err
	}
	w.slowest, s = max(w.slowest, uncut.Startup), stepping{time.Duration(uncut.Run / float64(total) * 1e9)}
	w.spans["training"] = append(w.spans["training"], span{began.Add(time.Duration(uncut.Startup * 1e9)), time.Now()})
	if err = w.free(ctx); err != nil { // the daemon takes a while to see that the other run has left the device
		return nil, err
	}
	// Each gap holds a start, a grace, and half of the work. Behind them the time is open: what took longer than planned ends there.
	const gaps = 2
	gap := (w.startup() + 4*time.Second + time.Duration(uncut.Run*1e9)/2).Round(time.Millisecond)
	for at, n := time.Now(), 0; n < gaps; n++ {
		at = at.Add(gap)
		if _, err = w.d.Reserve(ctx, connect.NewRequest(&pb.ReserveRequest{Kind: pb.Reservation_MAINTENANCE, Slice: w.slice.Id,
			Start: timestamppb.New(at), End: timestamppb.New(at.Add(time.Second)), Source: "trial"})); err != nil {
			return nil, err
		}
		at = at.Add(time.Second)
	}
	name, err := w.submit(ctx, "train", s.loop(total, every, nil))
	if err != nil {
		return nil, err
	}
	j, err := w.completed(ctx, name)
	if err != nil {
		return nil, err
	}
	var cut trained
	if err = w.output(ctx, name, fmt.Sprintf("train-%08d.json", total), &cut); err != nil {
		return nil, err
	}
	seen := []figure{
		fig("steps", "%d, a checkpoint every %d, %.2f ms each", total, every, float64(s.step.Microseconds())/1000),
		fig("uncut, without Sluice", "%.1f s, weights %.16s", uncut.Run, uncut.Digest),
		fig("cut", "%d subjobs, in two gaps of %.1f s and behind them, weights %.16s", j.Subjobs, gap.Seconds(), cut.Digest),
		fig("from submission to end", "%.1f s", j.Ended.AsTime().Sub(j.Submitted.AsTime()).Seconds()),
	}
	var errs []error
	if j.Subjobs < 2 {
		errs = append(errs, errors.New("the loop was not cut: it ran in one subjob"))
	}
	if cut.Digest != uncut.Digest {
		errs = append(errs, fmt.Errorf("the weights of the cut run are %s, of the uncut one %s", cut.Digest, uncut.Digest))
	}
	return seen, errors.Join(errs...)
}
