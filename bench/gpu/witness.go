package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"
)

// slack is how much of the device's memory may come and go with nobody on it: the driver's own.
const slack = 64 << 20

// look is what NVML said of the device at one moment, between Before and After (Unix time). Power in watts, Busy in percent; what the
// driver does not say is unset.
type look struct {
	Before    float64  `json:"before"`
	After     float64  `json:"after"`
	Used      int64    `json:"used"`
	Processes *int     `json:"processes"`
	Power     *float64 `json:"power"`
	Busy      *float64 `json:"busy"`
}

// witness looks at the device all the while, by way of programs/witness.py, and keeps what it saw.
type witness struct {
	stdin io.Closer
	cmd   *exec.Cmd
	done  chan error

	mu    sync.Mutex
	looks []look
	// idle is what is used of the device's memory with nobody on it.
	idle int64
}

// watch starts a witness. An error is that somebody is on the device, or that it can't be looked at.
func watch(ctx context.Context, python, programs, uuid string, every time.Duration) (*witness, error) {
	// It outlives ctx, which ends with the trials' time: it ends when its stdin does, and so with this process at the latest.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), python, "witness.py", uuid, strconv.FormatFloat(every.Seconds(), 'f', 3, 64))
	cmd.Dir = programs
	stdin, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	w := &witness{stdin: stdin, cmd: cmd, done: make(chan error, 1)}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var l look
			if json.Unmarshal(lines.Bytes(), &l) == nil { // half a line at its end is none
				w.mu.Lock()
				w.looks = append(w.looks, l)
				w.mu.Unlock()
			}
		}
		w.done <- cmd.Wait()
	}()
	for begin := time.Now(); time.Since(begin) < 20*time.Second && ctx.Err() == nil; time.Sleep(every) {
		first := w.after(begin)
		if len(first) < 20 {
			continue
		}
		for _, l := range first {
			if l.Processes != nil && *l.Processes > 0 {
				return nil, errors.Join(fmt.Errorf("%d processes are on the GPU: the trials need one that nobody uses", *l.Processes),
					w.close())
			}
		}
		w.idle = slices.MinFunc(first, func(a, b look) int { return int(a.Used - b.Used) }).Used
		return w, nil
	}
	return nil, errors.Join(errors.New("NVML answers too slowly: 20 looks took more than 20 s"), w.close())
}

func (w *witness) close() error {
	_ = w.stdin.Close() // it ends by it
	select {
	case err := <-w.done:
		return err
	case <-time.After(5 * time.Second):
		return errors.Join(errors.New("the witness did not end"), w.cmd.Process.Kill())
	}
}

// empty says whether nobody is on the device.
func (w *witness) empty(l look) bool {
	return l.Used <= w.idle+slack && (l.Processes == nil || *l.Processes == 0)
}

// after are the looks that began after t, between those before another moment too.
func (w *witness) after(t time.Time) []look { return w.between(t, time.Now().Add(time.Hour)) }

func (w *witness) between(from, to time.Time) []look {
	a, b := unix(from), unix(to)
	w.mu.Lock()
	defer w.mu.Unlock()
	i, _ := slices.BinarySearchFunc(w.looks, a, func(l look, t float64) int { return compare(l.Before, t) })
	j, _ := slices.BinarySearchFunc(w.looks, b, func(l look, t float64) int { return compare(l.Before, t) })
	return slices.Clone(w.looks[i:j])
}

// await returns the first look after t that is as wanted.
func (w *witness) await(ctx context.Context, t time.Time, what string, ok func(look) bool) (look, error) {
	for {
		for _, l := range w.after(t) {
			if ok(l) {
				return l, nil
			}
		}
		select {
		case <-ctx.Done():
			return look{}, fmt.Errorf("NVML did not show the device %s: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// share of these looks, by the time between them, for which something holds.
func share(looks []look, ok func(look) bool) float64 {
	var of, all float64
	for i := range len(looks) - 1 {
		d := looks[i+1].Before - looks[i].Before
		all += d
		if ok(looks[i]) {
			of += d
		}
	}
	if all == 0 {
		return 0
	}
	return of / all
}

// told are the values that the driver said in these looks.
func told(looks []look, of func(look) *float64) (values []float64) {
	for _, l := range looks {
		if v := of(l); v != nil {
			values = append(values, *v)
		}
	}
	return values
}

func unix(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func moment(seconds float64) time.Time { return time.Unix(0, int64(seconds*1e9)) }

func compare(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
