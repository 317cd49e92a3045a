package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/sample"
)

// served is what bursts of a host's server came to.
type served struct {
	// latencies in milliseconds, in order; loading of each burst's server, and how late it was ready, in seconds.
	latencies, loading, late []float64
	// freed is how long it took from each notice until the device was empty, in milliseconds.
	freed []float64
	span  span
}

// host plays a host with an inference server that runs in bursts, first alone and then with training in the gaps.
func host(ctx context.Context, w *world) ([]figure, error) {
	if err := w.upOnOne(ctx); err != nil {
		return nil, err
	}
	s, err := w.measure(ctx)
	if err != nil {
		return nil, err
	}
	alone, err := w.bursts(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("without training: %w", err)
	}
	if err = w.free(ctx); err != nil {
		return nil, err
	}
	every := max(1, int64(500*time.Millisecond/s.step)) // what a subjob that is ended loses at most
	filler := s.loop(every*100_000, every, map[string]string{"HOLD": strconv.FormatInt(w.known(), 10)})
	filler.spec["memory"] = asked(w.known() + w.room())
	name, err := w.submit(ctx, "filler", filler)
	if err != nil {
		return nil, err
	}
	beside, err := w.bursts(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("with training: %w", err)
	}
	r, err := w.d.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: name}))
	if err != nil {
		return nil, err
	}
	if err = w.cancel(ctx, name); err != nil {
		return nil, err
	}
	return w.judgeHost(s, alone, beside, r.Msg.Job)
}

// bursts plays the host. Each time it gives notice, if it is not alone, by a reservation that cuts short what runs; starts its server
// when the notice is over; and has it serve.
func (w *world) bursts(ctx context.Context, filled bool) (*served, error) {
	r := &served{span: span{from: time.Now()}}
	serving := pb.Reservation_SERVING
	for range w.pace.bursts {
		if err := pause(ctx, w.pace.gap+w.startup()); err != nil {
			return nil, err
		}
		told := time.Now()
		begins := told.Add(w.pace.notice)
		serves := begins.Add(w.startup())
		ends := serves.Add(w.pace.burst)
		if filled {
			if _, err := w.d.Reserve(ctx, connect.NewRequest(&pb.ReserveRequest{Kind: serving, Slice: w.slice.Id, Truncate: true,
				Start: timestamppb.New(begins), End: timestamppb.New(ends.Add(time.Second)), Source: "trial"})); err != nil {
				return nil, err
			}
			l, err := w.vacated(ctx, told, begins)
			if err != nil {
				return nil, err
			}
			r.freed = append(r.freed, 1000*(l.After-unix(told)))
		}
		if err := pause(ctx, time.Until(begins)); err != nil {
			return nil, err
		}
		if err := w.serve(ctx, serves, r); err != nil {
			return nil, err
		}
		w.spans["serving"] = append(w.spans["serving"], span{serves, ends})
	}
	r.span.to = time.Now()
	slices.Sort(r.latencies)
	return r, nil
}

// vacated waits until the device is empty after a notice, which it has to be when the host begins.
func (w *world) vacated(ctx context.Context, told, begins time.Time) (look, error) {
	before := w.eye.between(told.Add(-time.Second), told)
	if share(before, w.eye.empty) > 0.5 {
		return look{}, errors.New("nothing of the training was on the device when the host gave notice")
	}
	late, cancel := context.WithDeadline(ctx, begins)
	defer cancel()
	return w.eye.await(late, told, "empty before the host began", w.eye.empty)
}

// serve runs one burst of the server.
func (w *world) serve(ctx context.Context, begins time.Time, r *served) error {
	cmd := exec.CommandContext(ctx, w.machine.Python.Path, "server.py", strconv.FormatFloat(unix(begins), 'f', 6, 64),
		seconds(w.pace.burst), strconv.FormatFloat(w.pace.rate, 'f', 1, 64))
	cmd.Dir = filepath.Join(w.bundle, "programs")
	cmd.Env = append(os.Environ(), "CUDA_VISIBLE_DEVICES="+w.slice.Device)
	out, err := cmd.Output()
	if err != nil {
		return said("server.py", err)
	}
	var burst struct {
		Loading   float64   `json:"loading"`
		Late      float64   `json:"late"`
		Latencies []float64 `json:"latencies"`
	}
	if err = json.Unmarshal(out, &burst); err != nil {
		return fmt.Errorf("server.py: %w", err)
	}
	if len(burst.Latencies) == 0 {
		return errors.New("server.py answered nothing")
	}
	for _, l := range burst.Latencies {
		r.latencies = append(r.latencies, 1000*l)
	}
	r.loading, r.late = append(r.loading, burst.Loading), append(r.late, burst.Late)
	return nil
}

// judgeHost says what became of the host, of the device and of the training.
func (w *world) judgeHost(s stepping, alone, beside *served, j *pb.Job) ([]figure, error) {
	busy := func(r *served) string {
		looks := w.eye.between(r.span.from, r.span.to)
		text := fmt.Sprintf("%.0f%% of the time with somebody on it", 100*share(looks, func(l look) bool { return !w.eye.empty(l) }))
		if rates := told(looks, func(l look) *float64 { return l.Busy }); len(rates) > 0 {
			text += fmt.Sprintf(", %.0f%% by the driver's utilization", mean(rates))
		}
		return text
	}
	latency := func(r *served) string {
		return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms, most %.2f ms of %d requests", sample.Quantile(r.latencies, 50),
			sample.Quantile(r.latencies, 99), r.latencies[len(r.latencies)-1], len(r.latencies))
	}
	kept := time.Duration(j.Progress) * s.step
	seen := []figure{
		fig("device, the host alone", "%s", busy(alone)), fig("device, with training in the gaps", "%s", busy(beside)),
		fig("requests, the host alone", "%s", latency(alone)), fig("requests, with training in the gaps", "%s", latency(beside)),
		fig("from notice to memory free", "%s ms, of %.0f ms of notice", list(beside.freed), 1000*w.pace.notice.Seconds()),
		fig("the server's loading, alone and beside", "%s s, %s s", list(alone.loading), list(beside.loading)),
		fig("training kept", "%d steps, worth %.1f s, in %d subjobs (%d left nothing)", j.Progress, kept.Seconds(), j.Subjobs, j.Lost),
	}
	if j.Progress == 0 {
		return seen, errors.New("nothing of the training was kept")
	}
	return seen, nil
}

// list is numbers for people.
func list(values []float64) (text string) {
	for i, v := range values {
		if i > 0 {
			text += ", "
		}
		text += strconv.FormatFloat(v, 'f', 1, 64)
	}
	return text
}

func mean(values []float64) (sum float64) {
	for _, v := range values {
		sum += v / float64(len(values))
	}
	return sum
}
