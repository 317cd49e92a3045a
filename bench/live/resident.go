package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/bench/sample"
)

const (
	// alike is how many jobs of one template are submitted together, each of one unit.
	alike = 40
	// slowStart is what their program takes to start.
	slowStart = 5 * time.Second
)

// residents measures jobs whose program takes long to start and nothing to work: with a start for each, and with a program that stays.
func residents(ctx context.Context, s *settings, b *book) error {
	for range s.pairs {
		cold, err := s.alike(ctx, false)
		if err != nil {
			return err
		}
		stay, err := s.alike(ctx, true)
		if err != nil {
			return err
		}
		b.add("Resident", alike, figure{sample.Milliseconds(cold), "ms-a-start-each"}, figure{sample.Milliseconds(stay), "ms-resident"},
			figure{stay.Seconds() / cold.Seconds(), "ratio"})
	}
	return nil
}

// alike is how long the jobs take, from before the first is submitted until the last is COMPLETED.
func (s *settings) alike(ctx context.Context, stay bool) (took time.Duration, err error) {
	d, err := s.up(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, d.Stop()) }()
	began := time.Now()
	for i := range alike {
		if err := d.Send(ctx, slowToStart(fmt.Sprintf("alike-%d", i), stay)); err != nil {
			return 0, err
		}
	}
	if err := d.Completed(ctx, alike); err != nil {
		return 0, err
	}
	return time.Since(began), nil
}

// slowToStart is a job file: one unit of a program that sleeps first. Where it stays it answers each line with the subjob that this names.
func slowToStart(name string, stay bool) string {
	const answer = `while read -r line; do t=${line#*\"subjob\":\"}; echo "{\"subjob\":\"${t%%\"*}\",\"exit\":0}"; done`
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  items: {total: 1, perItem: 100ms}
  memory: 16Mi
  template: alike
  startup: %s
  resident: %v
  command:
    - sh
    - -c
    - sleep %g; [ -n "$SLUICE_RESIDENT" ] || exit 0; %s
`, name, slowStart, stay, slowStart.Seconds(), answer)
}
