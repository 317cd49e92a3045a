//go:build kubernetes

package measure

import (
	"fmt"
	"strings"
	"time"
)

// Row is what the hosts' Pods met in one world.
type Row struct {
	By     By
	Beside string
	Waits  *Waits
	// Patience is how long after the last Pod's creation those that had not started were waited for.
	Patience time.Duration
}

// table is the rows as Markdown.
func table(rows []Row) string {
	var b strings.Builder
	b.WriteString("| devices are asked for by | the gaps are filled by | hosts' Pods | p50 to start | p99 | longest | not started " +
		"|\n|---|---|---:|---:|---:|---:|---:|\n")
	for _, r := range rows {
		never := "0"
		if r.Waits.Never > 0 {
			never = fmt.Sprintf("%d after %s", r.Waits.Never, r.Patience)
		}
		fmt.Fprintf(&b, "| %s | %s | %d | %s | %s | %s | %s |\n", r.By, r.Beside, len(r.Waits.Started)+r.Waits.Never, cell(r.Waits, .5),
			cell(r.Waits, .99), cell(r.Waits, 1), never)
	}
	return b.String()
}

// cell is a quantile of the waits: a dash where that Pod never started.
func cell(w *Waits, q float64) string {
	d, started := w.At(q)
	if !started {
		return "-"
	}
	return millis(d)
}

func millis(d time.Duration) string {
	if d >= 10*time.Second {
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Millisecond).String()
}
