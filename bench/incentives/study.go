package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/lab/measure"
)

// mechanism is a market that moves are tried in.
type mechanism struct {
	name, summary string
	config        auction.Config
}

// mechanisms are the compared ones: first those that differ in what the market believes, then those that differ in what it charges.
func mechanisms() []mechanism {
	return []mechanism{
		{"trusting", "every declaration is taken at its word, and nothing is paid", auction.Config{Trusting: true}},
		{"calibration", "declared scores count as far as the record of the job and its queue goes, and nothing is paid",
			auction.Config{Payment: auction.Free}},
		{"steep", "the same with kappa 8, so that trust falls four times as steeply with error",
			auction.Config{Payment: auction.Free, Kappa: 8_000_000}},
		{"first price", "calibration, and a queue pays its own bid in credits", auction.Config{Payment: auction.FirstPrice}},
		{"vcg", "calibration, and a queue pays what others lose by it (Vickrey, Clarke, Groves), in credits",
			auction.Config{Payment: auction.VCG}},
	}
}

// unpaid is the place of the mechanism that calibrates as the default does and sells for nothing.
const unpaid = 1

// shipped is the mechanism that the market is set to by default.
func shipped() mechanism {
	for _, m := range mechanisms() {
		if m.config.WithDefaults() == (auction.Config{}).WithDefaults() {
			return m
		}
	}
	return mechanism{"default", "what is shipped", auction.Config{}}
}

// game is one that is to be played.
type game struct {
	mechanism mechanism
	seed      uint64
	moves     []move
}

// plays plays games, several at once. Outcomes come in the order of games whatever the number of workers.
func plays(ctx context.Context, workers int, games []game) ([]*outcome, error) {
	out, errs := make([]*outcome, len(games)), make([]error, len(games))
	next := make(chan int)
	var crew sync.WaitGroup
	for range workers {
		crew.Go(func() {
			for i := range next {
				g := &games[i]
				out[i], errs[i] = play(ctx, g.mechanism.config, g.seed, g.moves)
			}
		})
	}
	for i := range games {
		next <- i
	}
	close(next)
	crew.Wait()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("stopped: %w", ctx.Err())
	}
	return out, errors.Join(errs...)
}

// cell is a move in a mechanism, against honesty on the same seeds.
type cell struct {
	mechanism, move string
	liars           int
	// gain in completion and in work done of those who play the move, slowdown of the others, and change of the mean over all
	// owners: logarithms of ratios, so that 0 is no difference.
	gain, work, victims, welfare measure.Estimate
	// jain of the owners' speeds (1: all alike), all honest and with the move.
	jainHonest, jain measure.Estimate
	rounds           int64
}

// compared plays a move in a mechanism on seeds from first on, and the truth unless it is known.
func (s *settings) compared(ctx context.Context, m mechanism, lie move, liars int, first, seeds uint64) (cell, error) {
	honest, err := s.honest(ctx, m, first, seeds)
	if err != nil {
		return cell{}, err
	}
	games := make([]game, seeds)
	for i := range games {
		games[i] = game{m, first + uint64(i), seats(lie, liars)}
	}
	lying, err := plays(ctx, s.workers, games)
	if err != nil {
		return cell{}, err
	}
	return compare(m.name, lie.name, liars, honest, lying), nil
}

// honest games of a mechanism are played once.
func (s *settings) honest(ctx context.Context, m mechanism, first, seeds uint64) ([]*outcome, error) {
	key := fmt.Sprint(m.name, " ", first)
	if known := s.known[key]; uint64(len(known)) >= seeds {
		return known[:seeds], nil
	}
	games := make([]game, seeds)
	for i := range games {
		games[i] = game{m, first + uint64(i), seats(truth(), 0)}
	}
	out, err := plays(ctx, s.workers, games)
	s.known[key] = out
	return out, err
}

func compare(mechanism, lie string, liars int, honest, lying []*outcome) cell {
	c := cell{mechanism: mechanism, move: lie, liars: liars}
	var gain, work, victims, welfare, fairHonest, fair []float64
	for i, l := range lying {
		h := honest[i]
		gain = append(gain, mean(liars, func(o int) float64 { return math.Log(h.cost[o] / l.cost[o]) }))
		work = append(work, mean(liars, func(o int) float64 { return math.Log((1 + l.done[o]) / (1 + h.done[o])) }))
		victims = append(victims, mean(owners-liars, func(o int) float64 { return math.Log(l.cost[liars+o] / h.cost[liars+o]) }))
		welfare = append(welfare, math.Log(l.total()/h.total()))
		fairHonest, fair = append(fairHonest, h.jain()), append(fair, l.jain())
		c.rounds += l.rounds
	}
	for _, e := range []struct {
		to     *measure.Estimate
		values []float64
	}{{&c.gain, gain}, {&c.work, work}, {&c.victims, victims}, {&c.welfare, welfare}, {&c.jainHonest, fairHonest}, {&c.jain, fair}} {
		*e.to = measure.Mean(e.values)
	}
	return c
}

// mean of the first n, those left out that have no value; NaN of none.
func mean(n int, of func(int) float64) float64 {
	sum, count := 0., 0.
	for i := range n {
		if v := of(i); !math.IsNaN(v) {
			sum, count = sum+v, count+1
		}
	}
	return sum / count
}

// total is the mean cost over all work.
func (o *outcome) total() float64 {
	cost, work := 0., 0.
	for i := range owners {
		if o.offered[i] > 0 {
			cost, work = cost+o.cost[i]*o.offered[i], work+o.offered[i]
		}
	}
	return cost / work
}

// jain is Jain's index of the owners' speeds, the inverse of their costs: 1 where all are alike, 1/n where one has all.
func (o *outcome) jain() float64 {
	sum, squares, n := 0., 0., 0.
	for _, c := range o.cost {
		if !math.IsNaN(c) {
			sum, squares, n = sum+1/c, squares+1/(c*c), n+1
		}
	}
	return sum * sum / (n * squares)
}
