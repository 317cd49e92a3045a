package main

import (
	"context"
	"errors"
	"slices"
	"time"
)

// power sums up what the driver said of the power that was drawn, all through the run, and how closely the witness looked.
func power(_ context.Context, w *world) ([]figure, error) {
	all := w.eye.after(time.Unix(0, 0))
	if len(all) < 2 {
		return nil, errors.New("the witness saw nothing")
	}
	var gaps []float64
	for i := range len(all) - 1 {
		gaps = append(gaps, 1000*(all[i+1].Before-all[i].Before))
	}
	seen := []figure{fig("looks at the device", "%d, %.0f ms apart in the mean, %.0f ms at most", len(all), mean(gaps), slices.Max(gaps))}
	draw := func(l look) *float64 { return l.Power }
	if len(told(all, draw)) == 0 {
		return append(seen, fig("power", "the driver does not say here")), nil
	}
	idle := slices.DeleteFunc(slices.Clone(all), func(l look) bool { return !w.eye.empty(l) })
	for _, of := range []struct {
		what  string
		looks []look
	}{{"with nobody on it", idle}, {"training", w.during("training")}, {"serving", w.during("serving")}} {
		if values := told(of.looks, draw); len(values) > 0 {
			seen = append(seen, fig("power, "+of.what, "%.0f W in the mean, %.0f W at most", mean(values), slices.Max(values)))
		}
	}
	return seen, nil
}

// during are the looks of one kind of work.
func (w *world) during(kind string) (all []look) {
	for _, s := range w.spans[kind] {
		all = append(all, w.eye.between(s.from, s.to)...)
	}
	return all
}
