package main

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/sdk/agent"
)

// roundCloses is how long a round waits for agents unless the daemon is set otherwise: a call says when it closes, and so when
// it was announced.
const roundCloses = 200 * time.Millisecond

// bidding is a job whose agent bids for pieces of 100 ms, half of which are for starting the process on a busy machine.
func bidding(name string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  external: {total: 1000000, perUnit: 10ms}
  memory: 16Mi
  command: [/bin/sleep, "0.05"]
  grace: 1s
`, name)
}

// auction is what all agents of a measurement have seen together.
type auction struct {
	mu sync.Mutex
	// announced and asked of each round, and how long it took to its first award.
	announced map[uint64]time.Time
	asked     map[uint64]int
	awarded   map[uint64]time.Duration
}

func (a *auction) propose(c agent.Call) (out []agent.Variant) {
	a.mu.Lock()
	a.announced[c.Round] = c.Closes.Add(-roundCloses)
	a.asked[c.Round]++
	a.mu.Unlock()
	for _, w := range c.Windows {
		for n := range int64(min(4, c.Most)) {
			to := c.Free[0].From + 10 - n
			out = append(out, agent.Variant{
				Window: w.ID, Range: agent.Range{From: c.Free[0].From, To: to}, Run: time.Duration(10-n) * 10 * time.Millisecond,
				Score: float64(10-n) / 10,
			})
		}
	}
	return out
}

func (a *auction) told(n agent.Notice) {
	if n.Kind != agent.Awarded {
		return
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, again := a.awarded[n.Round]; !again {
		a.awarded[n.Round] = now.Sub(a.announced[n.Round])
	}
}

// full are the times, in milliseconds and in order, of the rounds that at least so many agents were asked in.
func (a *auction) full(agents int) (took []float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for round, d := range a.awarded {
		if a.asked[round] >= agents {
			took = append(took, sample.Milliseconds(d))
		}
	}
	slices.Sort(took)
	return took
}

// rounds measures a live bidding round: from the zone's announcement of a window until the winner's agent hears of its award. In between
// all agents answer over the API and the round is cleared. There are s.agents external jobs and a few spare ones, since recent winners are
// not asked; each has its own agent on its own connection, which offers four variants for every window.
func rounds(ctx context.Context, s *settings, b *book) error {
	// A hundred agents would each have a heap of its own and next to nothing in it; here they share one.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	for range s.pairs {
		if err := s.auction(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

func (s *settings) auction(ctx context.Context, b *book) (err error) {
	d, err := s.upWith(ctx, 1, "--mechanism", "jasda")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	giveBack, err := d.Drain(ctx, "")
	if err != nil {
		return err
	}
	var file []string
	bidders := s.agents + 3
	for i := range bidders {
		file = append(file, bidding(fmt.Sprintf("bidder-%d", i)))
	}
	if err := d.Send(ctx, strings.Join(file, "---\n")); err != nil {
		return err
	}
	a := auction{announced: map[uint64]time.Time{}, asked: map[uint64]int{}, awarded: map[uint64]time.Duration{}}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	errs := make([]error, bidders)
	for i := range bidders {
		name := fmt.Sprintf("bidder-%d", i)
		key, err := d.AgentKey(ctx, connect.NewRequest(&pb.AgentKeyRequest{Job: name}))
		if err != nil {
			return err
		}
		all.Go(func() {
			errs[i] = agent.Serve(working, agent.Options{Addr: d.Base, Job: name, Key: key.Msg.Key, Client: d.HTTP, Told: a.told},
				a.propose)
		})
	}
	// Everybody is there before anything is offered.
	time.Sleep(time.Second)
	begin := time.Now()
	if err := giveBack(); err != nil {
		return err
	}
	var took []float64
	for len(took) < s.rounds {
		if time.Since(begin) > time.Minute {
			return fmt.Errorf("after a minute %d rounds of so many agents were awarded, want %d; the daemon's log: %s", len(took), s.rounds,
				d.Said())
		}
		time.Sleep(10 * time.Millisecond)
		took = a.full(s.agents)
	}
	passed := time.Since(begin)
	stop()
	all.Wait()
	for _, err := range errs {
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("an agent ended by itself: %w", err)
		}
	}
	b.add(fmt.Sprintf("Round/agents=%d", s.agents), len(took), figure{sample.Median(took), "ms-announce-to-award"},
		figure{sample.Quantile(took, 99), "ms-announce-to-award-p99"},
		figure{float64(len(took)) / passed.Seconds(), "rounds/s"})
	return nil
}
