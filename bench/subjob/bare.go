package subjob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// half is how many of the bare starts come before the daemon's part.
func (s *Settings) half() int { return max(s.Slots, s.Subjobs/2) }

// Bare starts the supervisor's program and then the command and waits for each, Subjobs times, Slots at once: how many ended in a second.
func Bare(ctx context.Context, s Settings) (perSecond float64, err error) {
	n := s.Subjobs
	s.Subjobs = 2 * n
	c, err := bare(ctx, &s)
	return float64(s.half()) / c.took.Seconds(), err
}

// cost is what bare starts took together.
type cost struct{ took, used time.Duration }

// bare starts the supervisor's program and then the command and waits for each, half() times, Slots at once. Told nothing, the
// supervisor's program says how it is used and ends.
func bare(ctx context.Context, s *Settings) (c cost, err error) {
	var next atomic.Int64
	errs := make([]error, s.Slots)
	var all sync.WaitGroup
	used := processor()
	begin := time.Now()
	for w := range s.Slots {
		all.Go(func() {
			for int(next.Add(1)) <= s.half() && errs[w] == nil && ctx.Err() == nil {
				var wrong *exec.ExitError
				if err := exec.Command(s.shim()).Run(); err == nil || !errors.As(err, &wrong) || wrong.ExitCode() != 2 {
					errs[w] = fmt.Errorf("%s without arguments: %w, want exit status 2", s.shim(), err)
				} else if err := exec.Command(command).Run(); err != nil {
					errs[w] = err
				}
			}
		})
	}
	all.Wait()
	return cost{time.Since(begin), processor() - used}, errors.Join(append(errs, ctx.Err())...)
}

// processor is the time that the reaped children of this process have used.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// watched runs perf until it is stopped, and adds up what it counted.
func watched(cmd *exec.Cmd, counts bool) (syncs func() (float64, bool), stop func() error, err error) {
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	time.Sleep(300 * time.Millisecond) // perf does not say when it has begun
	stop = func() error {
		_ = cmd.Process.Signal(syscall.SIGINT)
		err := cmd.Wait()
		if counts {
			return nil // without the rights to count it says so, and syncs does
		}
		var ended *exec.ExitError
		if errors.As(err, &ended) && ended.ExitCode() == -1 {
			err = nil // it is ended by the signal, once it has written everything
		}
		return err
	}
	return func() (sum float64, ok bool) {
		if !counts {
			return 0, false
		}
		for line := range strings.Lines(said.String()) {
			fields := strings.Split(line, ",")
			if len(fields) < 3 || !strings.HasPrefix(fields[2], "syscalls:") {
				continue
			}
			n, err := strconv.ParseFloat(fields[0], 64)
			if err != nil {
				return 0, false
			}
			sum, ok = sum+n, true
		}
		return sum, ok
	}, stop, nil
}
