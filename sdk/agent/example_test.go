package agent_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"sluice.dev/sluice/sdk/agent"
)

// A chain whose steps take two seconds each, cut to what fits into each window.
func Example() {
	const step, checkpoint = 2 * time.Second, 5 * time.Second
	propose := func(c agent.Call) (out []agent.Variant) {
		for _, w := range c.Windows {
			n := int64(float64(w.Length()-checkpoint) * w.Speed / float64(step))
			if n = min(n, c.Free[0].To-c.Free[0].From); n <= 0 {
				continue
			}
			run := time.Duration(float64(n) * float64(step) / w.Speed)
			out = append(out, agent.Variant{
				Window: w.ID, Range: agent.Range{From: c.Free[0].From, To: c.Free[0].From + n},
				Run: run, Wall: run + checkpoint, Score: float64(n) / float64(c.Left),
			})
		}
		return out
	}
	// With a daemon: agent.Serve(ctx, agent.Options{Job: "train", Key: os.Getenv("SLUICE_AGENT_KEY")}, propose)
	_ = func(ctx context.Context) error {
		return agent.Serve(ctx, agent.Options{Job: "train", Key: os.Getenv("SLUICE_AGENT_KEY")}, propose)
	}
	now := time.Now()
	for _, v := range propose(agent.Call{Left: 100, Free: []agent.Range{{From: 40, To: 100}},
		Windows: []agent.Window{{ID: 7, Speed: .5, Start: now, End: now.Add(time.Minute)}}}) {
		fmt.Println(v.Window, v.Range, v.Wall, v.Score)
	}
	// Output: 7 {40 53} 57s 0.13
}
