package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
)

// empty has a program killed that holds memory and does not end when it is told to, while another job waits. Before that one begins
// NVML must show nobody on the device: to the witness, and to the second program, first thing.
func empty(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	size := w.known()
	walltime := w.startup() + w.pace.hold + 2*time.Second
	began := time.Now()
	first, err := w.submit(ctx, "stubborn", job{
		program: []string{"hold.py"},
		spec: map[string]any{"rigid": map[string]any{"walltime": walltime.String()}, "grace": "1s", "maxFailures": 1,
			"memory": asked(size + w.room())},
		env: map[string]string{"SIZE": strconv.FormatInt(size, 10), "HOLD": "600", "STUBBORN": "1"},
	})
	if err != nil {
		return nil, err
	}
	full := func(l look) bool { return l.Used >= w.eye.idle+size }
	if _, err = w.eye.await(ctx, began, "full", full); err != nil {
		return nil, err
	}
	second, err := w.submit(ctx, "next", job{
		program: []string{"look.py", w.machine.gpu().UUID},
		spec:    map[string]any{"items": map[string]any{"total": 1, "perItem": "1s"}},
	})
	if err != nil {
		return nil, err
	}
	next, err := w.completed(ctx, second)
	if err != nil {
		return nil, err
	}
	killed, err := w.until(ctx, first, "has ended", func(j *pb.Job) bool { return j.Final })
	if err != nil {
		return nil, err
	}
	var own struct {
		Began     float64 `json:"began"`
		Used      int64   `json:"used"`
		Processes *int    `json:"processes"`
	}
	if err = w.output(ctx, second, "look.json", &own); err != nil {
		return nil, err
	}
	started := next.History[len(next.History)-1].Start.AsTime()
	return judgeEmpty(w.eye, began, killed, started, look{Used: own.Used, Processes: own.Processes})
}

// judgeEmpty holds what the witness saw, and what the next program saw first, against when it was started.
func judgeEmpty(eye *witness, began time.Time, killed *pb.Job, started time.Time, own look) ([]figure, error) {
	all := eye.after(began)
	last, gone := -1, -1
	for i, l := range all {
		switch {
		case !eye.empty(l):
			last, gone = i, -1
		case gone < 0:
			gone = i
		}
	}
	if last < 0 || gone < 0 {
		return nil, errors.New("the witness did not see the device full, and then empty")
	}
	end := killed.History[len(killed.History)-1]
	seen := []figure{
		fig("the first program ended by", "%s", end.Outcome),
		fig("seen last, from the start of the next", "%+.0f ms", 1000*(all[last].Before-unix(started))),
		fig("seen empty first, from the start of the next", "%+.0f ms", 1000*(all[gone].After-unix(started))),
		fig("the next saw, first thing", "%s in use (idle: %s), %s processes", mebibytes(own.Used), mebibytes(eye.idle),
			number(own.Processes)),
	}
	var errs []error
	if all[last].Before > unix(started) {
		errs = append(errs, fmt.Errorf("somebody was on the device %.0f ms after the next subjob had begun",
			1000*(all[last].Before-unix(started))))
	}
	if !eye.empty(own) {
		errs = append(errs, errors.New("the next program found somebody on the device"))
	}
	return seen, errors.Join(errs...)
}

func number(n *int) string {
	if n == nil {
		return "an unknown number of"
	}
	return strconv.Itoa(*n)
}
