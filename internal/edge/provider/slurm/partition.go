package slurm

import (
	"context"
	"time"
)

// keepPartition is how long what a partition allows is believed.
const keepPartition = 10 * time.Minute

// partition is what cluster.longest says, asked again when that is old.
func (s *Slurm) partition(ctx context.Context) (time.Duration, error) {
	s.mu.Lock()
	most, until := s.most, s.mostUntil
	s.mu.Unlock()
	if s.now().Before(until) {
		return most, nil
	}
	most, err := s.cluster.longest(ctx)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.most, s.mostUntil = most, s.now().Add(keepPartition)
	return most, nil
}
