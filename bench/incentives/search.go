package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/lab/bidder"
)

// response is an answer to the others' honesty that the search tries: what scores are multiplied by (in parts per thousand, 0:
// the highest is declared), which of the variants are sent, and when.
type response struct {
	shade int64
	keep  keep
	late  bool
}

type keep uint8

const (
	all keep = iota
	longest
	shortest
)

// Change implements bidder.Strategy.
func (r response) Change(t *bidder.Turn) {
	if r.shade == 0 {
		bidder.Inflate{}.Change(t)
	} else {
		bidder.Shade(r.shade).Change(t)
	}
	if r.late {
		bidder.Snipe{}.Change(t)
	}
	if r.keep == all || len(t.Answers) == 0 {
		return
	}
	better := func(a, b time.Duration) bool { return r.keep == longest && a > b || r.keep == shortest && a < b }
	var out []protocol.Variant
	for _, v := range t.Answers[0].Body.(*protocol.Proposal).Variants {
		if i := slices.IndexFunc(out, func(o protocol.Variant) bool { return o.Window == v.Window }); i < 0 {
			out = append(out, v)
		} else if better(v.Wall, out[i].Wall) {
			out[i] = v
		}
	}
	t.Answers[0].Body.(*protocol.Proposal).Variants = out
}

// candidates is the grid that is searched.
func candidates() (out []move) {
	for _, shade := range []int64{1000, 250, 500, 2000, 0} {
		for _, k := range []keep{all, longest, shortest} {
			for _, split := range []int{1, 2, 4} {
				for _, late := range []bool{false, true} {
					if late && (k != all || split != 1) {
						continue // when a sealed bid comes does not depend on what is in it
					}
					r := response{shade, k, late}
					if r == (response{shade: 1000}) && split == 1 {
						continue // the truth
					}
					out = append(out, move{name: r.String(split), strategy: func() bidder.Strategy { return r }, split: split, liars: 1})
				}
			}
		}
	}
	return out
}

// String says what a response does.
func (r response) String(split int) string {
	text := "true scores"
	if r.shade == 0 {
		text = "highest score"
	} else if r.shade != 1000 {
		text = fmt.Sprintf("scores x %g", float64(r.shade)/1000)
	}
	text += []string{", all variants", ", longest variants", ", shortest variants"}[r.keep]
	if split > 1 {
		text += fmt.Sprintf(", jobs in %d", split)
	}
	if r.late {
		text += ", in the last moment"
	}
	return text
}

// Seeds of the search stand apart from each other and from those of the tables: what looks best on some seeds is measured on
// others, or else the best of many would be the luckiest.
const (
	searchSeeds = 1_000_000
	finalSeeds  = 2_000_000
)

// search finds the best response to honesty: all candidates on a few seeds, the better ones on more, the best of these on seeds
// of its own. It returns those of the second round, best first, with the last one measured anew in front.
func (s *settings) search(ctx context.Context, m mechanism) ([]cell, error) {
	found, err := s.sift(ctx, m, candidates(), max(2, s.seeds/4), 0)
	if err != nil {
		return nil, err
	}
	found, err = s.sift(ctx, m, found[:min(6, len(found))], s.seeds, s.seeds)
	if err != nil {
		return nil, err
	}
	var cells []cell
	for i, lie := range found {
		n := s.seeds
		if i == 0 {
			n = s.many
		}
		c, err := s.compared(ctx, m, lie, 1, finalSeeds, n)
		if err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, nil
}

// sift sorts moves by their gain on some seeds, the greatest first.
func (s *settings) sift(ctx context.Context, m mechanism, list []move, seeds, from uint64) ([]move, error) {
	gains := map[string]float64{}
	for _, lie := range list {
		c, err := s.compared(ctx, m, lie, 1, searchSeeds+from, seeds)
		if err != nil {
			return nil, err
		}
		gains[lie.name] = c.gain.Mean
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b move) int { return cmp.Compare(gains[b.name], gains[a.name]) })
	return out, nil
}
