package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/bench/play"
	"sluice.dev/sluice/internal/lab/measure"
	scenarios "sluice.dev/sluice/internal/lab/scenario/play"
)

// unforeseen is an end that no pilot comes to: of the hosts' jobs most are not there yet when a gap begins, so no end of it is known.
const unforeseen = 1000 * time.Hour

// twin is the share of the leftover that the simulator commits, where pilots like the replay's have the gaps that hosts' jobs leave where
// they are alone. Its host takes a gap back when that ends, and has not foretold it; a pilot's start takes what the real ones took.
func twin(ctx context.Context, s *settings, w *way, gaps []span, usable, length time.Duration) (measure.Estimate, error) {
	grace := max(w.grace, killWait)
	var list []string
	for _, g := range gaps {
		list = append(list, fmt.Sprintf("{at: %v, for: %v, shown: %v, grace: %v}", g.from.Round(time.Millisecond),
			max(time.Second, (g.to-g.from).Round(time.Millisecond)), unforeseen, grace))
	}
	text := fmt.Sprintf(`scenario: replay
pools:
- {name: %s, atMost: %d, lengths: %s, idle: %v, start: %v, slices: [{memory: %s, speed: 1}], gaps: [%s]}
workload:
  jobs:
  - {at: 0s, name: train, count: %d, memory: %s, steps: {total: %d, perStep: %v, every: 1, checkpoint: 0s, restore: %v}, true: {saves: %d}}
window: {limit: %v}
mechanism: {grace: %v}
`, pool, s.stretch.nodes, replayLengths, pilotIdle, w.meanStart(), pilotMemory, strings.Join(list, ", "), 2*s.stretch.nodes, trainingMemory,
		trainingSteps, stepTime, trainingStart, saveEvery, length+5*time.Minute, trainingGrace)
	path := filepath.Join(s.temp, fmt.Sprintf("twin-%s.yml", strings.ReplaceAll(w.name, " ", "-")))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return measure.Estimate{}, err
	}
	seeded := play.Settings{Seeds: []uint64{1, 2, 3}}
	out, err := seeded.Play(ctx, io.Discard, "twin", path, []string{scenarios.SJA}, nil)
	if err != nil {
		return measure.Estimate{}, err
	}
	share := out.Values(scenarios.SJA, measure.PilotUseful)
	for i, whole := range out.Values(scenarios.SJA, measure.PilotTime) {
		share[i] *= whole / usable.Seconds()
	}
	return measure.Mean(share), nil
}
