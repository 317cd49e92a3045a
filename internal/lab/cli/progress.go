package cli

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// simProgress shows on a terminal how far a set of runs is, at most ten times a second; show is nil where there is no
// terminal. stop clears the line.
func (a *app) simProgress() (show func(play.Progress), stop func()) {
	if !terminal.Is(a.RawErr) {
		return nil, func() {}
	}
	begun, line := time.Now(), terminal.NewLive(a.RawErr)
	var last time.Time
	return func(p play.Progress) {
		now := time.Now()
		if now.Sub(last) < 100*time.Millisecond {
			return
		}
		last = now
		line.Show(progressLine(p, now.Sub(begun)))
	}, line.Clear
}

// progressLine is shown after a time: runs done, how far a running one is, and the time left if the rest take as long each as those before.
func progressLine(p play.Progress, after time.Duration) string {
	line := fmt.Sprintf("%d of %d runs", p.Done, p.Total)
	if p.Now > 0 {
		line += fmt.Sprintf(", virtual time %s, %d jobs", command.Short(time.Duration(p.Now).Truncate(time.Second)), p.Live)
	}
	if p.Done > 0 && p.Done < p.Total {
		left := after / time.Duration(p.Done) * time.Duration(p.Total-p.Done)
		line += ", about " + command.Short(left.Truncate(time.Second)) + " to go"
	}
	return line
}
