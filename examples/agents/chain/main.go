// Command chain is an agent that cuts a chain by its own model: SLUICE_AGENT_KEY=$(sluice agent key chain) go run .
//
// Step i takes 20 ms times 1 + i/100, which no job file can say. The agent knows, and so its pieces fill their windows and
// still end in time.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"sluice.dev/sluice/sdk/agent"
)

// What the job file says.
const (
	grid                = 5
	restore, checkpoint = 100 * time.Millisecond, 100 * time.Millisecond
	grace               = time.Second
)

// longest piece that is proposed: what a failure costs at most.
const longest = 4 * time.Second

// margin covers what the model does not know: starting processes, a busy machine.
const margin = 1.3

// seconds that the steps [from, to) take at speed 1: the sum of 0.02 (1 + i/100).
func seconds(from, to int64) float64 {
	n := float64(to - from)
	return 0.02 * (n + n*float64(from+to-1)/200)
}

// wall is what a piece takes in a window of this speed, and run the work alone.
func plan(from, to int64, first bool, speed float64) (run, wall time.Duration) {
	run = time.Duration(margin * seconds(from, to) / speed * float64(time.Second))
	wall = run + checkpoint
	if !first {
		wall += restore
	}
	return run, wall
}

// propose gives for each window the longest piece that fits, and the two that are one and two cuts shorter: they begin together,
// so only one of them can be sold.
func propose(c agent.Call) (out []agent.Variant) {
	if len(c.Free) == 0 {
		return nil
	}
	from, end := c.Free[0].From, c.Free[0].To
	for _, w := range c.Windows {
		room := min(w.Length()-grace, longest)
		to := from
		for to < end {
			next := min(to+grid, end)
			if _, wall := plan(from, next, c.First, w.Speed); wall > room {
				break
			}
			to = next
		}
		for range min(3, c.Most) {
			if to <= from {
				break
			}
			run, wall := plan(from, to, c.First, w.Speed)
			out = append(out, agent.Variant{
				Window: w.ID, Range: agent.Range{From: from, To: to}, Run: run, Wall: wall, Score: float64(to-from) / float64(c.Left),
			})
			to -= grid
		}
	}
	return out
}

// told prints what the model can be held against.
func told(n agent.Notice) {
	switch n.Kind {
	case agent.Concluded:
		run, _ := plan(n.Range.From, n.Range.To, false, 1)
		fmt.Printf("steps %d to %d: %s after %v, planned %v at full speed\n", n.Range.From, n.Range.To, n.Outcome,
			n.Ran.Round(time.Millisecond), run.Round(time.Millisecond))
	case agent.Denied:
		fmt.Println("denied:", n.Text)
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := agent.Serve(ctx, agent.Options{
		Job: "chain", Key: os.Getenv("SLUICE_AGENT_KEY"), Told: told, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, propose)
	if err != nil {
		fmt.Fprintln(os.Stderr, "chain:", err)
		os.Exit(1)
	}
}
