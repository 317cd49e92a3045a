package forecast

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// TestElsewhere: runs that are played in other processes, each of which hears nothing but text, give the same answer to the last digit,
// whatever the number of workers: with assumptions, slices of two weights, devices of known and unknown memory, and reservations. Each
// worker plays one run at a time.
func TestElsewhere(t *testing.T) {
	log := logged(t, made(4, 40*time.Minute, 40*time.Minute))
	log.Devices[1].Weight, log.Devices[2].Memory = 250, 40<<30
	for i := range log.Devices[0].Busy {
		log.Devices[0].Busy[i].Why = []Why{Job, Reserved, Away, Used}[i%4]
		log.Devices[0].Busy[i].Asked -= 7 * 60 * second
	}
	answer := func(o Options) []byte {
		t.Helper()
		o.Notice, o.Seed, o.Table, o.Backlogs, o.Devices = Notice, 1, mechanisms(), Stated(StatedMemory)[:1], 3
		a, err := Forecast(t.Context(), log, o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	want := answer(Options{Workers: 2})
	for _, workers := range []int{1, 3} {
		var mu sync.Mutex
		runs, at := make([]int, workers), make([]int, workers)
		got := answer(Options{Workers: workers, Elsewhere: func(ctx context.Context, worker int, run []byte) ([]byte, error) {
			mu.Lock()
			runs[worker]++
			at[worker]++
			if at[worker] > 1 {
				t.Errorf("worker %d of %d has %d runs at once", worker, workers, at[worker])
			}
			mu.Unlock()
			booked, err := Play(ctx, mechanisms(), run)
			mu.Lock()
			defer mu.Unlock()
			at[worker]--
			return booked, err
		}})
		if !bytes.Equal(got, want) {
			t.Errorf("%d workers elsewhere: %s\nwant %s", workers, got, want)
		}
		if slices.Contains(runs, 0) {
			t.Errorf("of %d workers some had no run: %v", workers, runs)
		}
	}
}

// TestElsewhereFails: the error of one run is that of the forecast, and nobody waits for the others.
func TestElsewhereFails(t *testing.T) {
	died := errors.New("a worker ended")
	l := logged(t, made(2, 40*time.Minute, 40*time.Minute))
	_, err := Forecast(t.Context(), l, Options{Notice: Notice, Table: mechanisms(), Workers: 3,
		Elsewhere: func(ctx context.Context, worker int, _ []byte) ([]byte, error) {
			if worker == 1 {
				return nil, died
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}})
	if !errors.Is(err, died) {
		t.Error(err)
	}
	_, err = Forecast(t.Context(), l, Options{Notice: Notice, Table: mechanisms(),
		Elsewhere: func(context.Context, int, []byte) ([]byte, error) { return []byte("{"), nil }})
	if err == nil || !strings.Contains(err.Error(), "JSON") {
		t.Error(err)
	}
	if _, err := Play(t.Context(), mechanisms(), []byte("?")); err == nil {
		t.Error("what is no run was played")
	}
	// The error of a run is told there with the words that it has here.
	short := Backlog{Doc: "jobs of mine", Lines: "[{at: 0s, name: x, items: {total: 1, perItem: 10ms}, memory: 1Gi}]"}
	said := func(elsewhere func(context.Context, int, []byte) ([]byte, error)) error {
		_, err := Forecast(t.Context(), l, Options{Notice: Notice, Table: mechanisms(), Backlogs: []Backlog{short}, Elsewhere: elsewhere})
		return err
	}
	here := said(nil)
	there := said(func(ctx context.Context, _ int, run []byte) ([]byte, error) { return Play(ctx, mechanisms(), run) })
	if here == nil || there == nil || here.Error() != there.Error() || errkind.Of(here) != errkind.Invalid ||
		!strings.Contains(here.Error(), "jobs of mine: its jobs are so short") {
		t.Errorf("here %v; there %v", here, there)
	}
}
