package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"sluice.dev/sluice/internal/face/scenario"
)

// progress shows on a terminal how far a set of runs is, at most ten times a second. stop clears the line.
func (a *app) progress(o *scenario.Options) (stop func()) {
	if !terminal(a.Err) {
		return func() {}
	}
	begun := time.Now()
	var last time.Time
	o.Progress = func(p scenario.Progress) {
		now := time.Now()
		if now.Sub(last) < 100*time.Millisecond {
			return
		}
		last = now
		fmt.Fprintf(a.Err, "\r\x1b[K%s", progressLine(p, now.Sub(begun)))
	}
	return func() { fmt.Fprint(a.Err, "\r\x1b[K") }
}

// progressLine is what is shown after a time: runs done, how far a running one is, and when all is over if the rest takes
// as long for each run as those before.
func progressLine(p scenario.Progress, after time.Duration) string {
	line := fmt.Sprintf("%d of %d runs", p.Done, p.Total)
	if p.Now > 0 {
		line += fmt.Sprintf(", virtual time %s, %d jobs", short(time.Duration(p.Now).Truncate(time.Second)), p.Live)
	}
	if p.Done > 0 && p.Done < p.Total {
		left := after / time.Duration(p.Done) * time.Duration(p.Total-p.Done)
		line += ", about " + short(left.Truncate(time.Second)) + " to go"
	}
	return line
}

// terminal says whether somebody looks at w.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
