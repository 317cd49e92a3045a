package main

import (
	"sluice.dev/sluice/internal/lab/bidder"
)

// move is how an owner bids.
type move struct {
	name, summary string
	// strategy of its jobs' agents, made anew for each game and shared by all who play the move.
	strategy func() bidder.Strategy
	// split: items jobs are submitted as so many. memory: what profiles declare of the true use, in parts per thousand; 0 is all.
	split  int
	memory int64
	// liars is how many owners play it where not said otherwise.
	liars int
}

func named(name string) func() bidder.Strategy {
	return func() bidder.Strategy {
		k, _ := bidder.Find(name)
		return k.New(k.By)
	}
}

// truth is the move that all others are held against.
func truth() move { return move{name: "honest", strategy: named("honest"), liars: 1} }

// lies are the deviations that are studied by name.
func lies() []move {
	return []move{
		{"over-declare", "declares the highest score for everything", named("inflate"), 0, 0, 1},
		{"split", "submits every job that has independent units as four", named("honest"), 4, 0, 1},
		{"snipe", "answers in the last moment of a round", named("snipe"), 0, 0, 1},
		{"collude", "two owners leave each round to one of their jobs, which declares the highest score", named("collude"), 0, 0, 2},
		{"tiny memory", "declares two thirds of the memory that its jobs use", named("tiny-memory"), 0, 667, 1},
		{"hoard", "asks for whole windows to do as little as it may there", named("hoard"), 0, 0, 1},
		{"understate", "declares half of the run time", named("understate"), 0, 0, 1},
	}
}

// seats gives the first owners a move, and the others the truth.
func seats(m move, liars int) []move {
	out := make([]move, owners)
	for i := range out {
		out[i] = truth()
		if i < liars {
			out[i] = m
		}
	}
	return out
}
