package fgd

import "sluice.dev/sluice/internal/core/prng"

// Load of the cluster at the end, in percent of its GPUs.
const Load130 = 130

// Arrivals draws in which order pods arrive: the whole list once, shuffled; then copies of pods drawn with replacement
// until the next would bring the arrived share above 130%. (The published program adds only one GPU of the next pod in
// that check; so the end may lie above by the rest.) A list that is above 130% by itself loses pods at random until it is
// not. The result is indices of w.Pods.
func (w *Workload) Arrivals(seed uint64) []int32 {
	s := prng.New(seed, prng.Name("experiment/fgd/arrivals"))
	order := make([]int32, len(w.Pods))
	total := int64(0)
	for i := range order {
		order[i] = int32(i)
		total += asked(&w.Pods[i])
	}
	s.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	limit := w.Capacity * Load130 / 100
	for total > limit {
		i := s.IntN(len(order))
		total -= asked(&w.Pods[order[i]])
		order = append(order[:i], order[i+1:]...)
	}
	if len(order) < len(w.Pods) || total == 0 {
		return order
	}
	for {
		i := int32(s.IntN(len(w.Pods)))
		next := &w.Pods[i]
		one := int64(next.Share) * int64(min(next.Devices, 1))
		if total+one > limit {
			return order
		}
		total += asked(next)
		order = append(order, i)
	}
}

// Ranks draws the order of the nodes where scores tie.
func (w *Workload) Ranks(seed uint64) []int32 {
	s := prng.New(seed, prng.Name("experiment/fgd/ranks"))
	ranks := make([]int32, len(w.Cluster.Nodes))
	for i := range ranks {
		ranks[i] = int32(i)
	}
	s.Shuffle(len(ranks), func(i, j int) { ranks[i], ranks[j] = ranks[j], ranks[i] })
	return ranks
}
