package main

import (
	"fmt"
	"strings"
)

// rows are what is measured, in order: the key, the words, and how it is printed.
var rows = []struct{ key, words, format string }{
	{"binary MiB", "the binary grows by", "%.1f MiB"},
	{"all linked s", "all machines are linked after", "%.2f s"},
	{"head MiB", "the head's memory grows by", "%.0f MiB"},
	{"trip p50 us", "a message to a machine and its answer, median", "%.0f us"},
	{"trip p99 us", "the same, 99%", "%.0f us"},
	{"flood k/s", "messages of all machines at once, a second", "%.0f,000"},
	{"flood lost %", "of these lost", "%.1f%%"},
	{"killed known s", "machines are killed: known after", "%.3f s"},
	{"stopped known s", "machines are stopped (SIGSTOP): known after", "%.1f s"},
	{"all back s", "the head was away for 5 s: all are back after", "%.1f s"},
}

// table is the results in Markdown.
func table(results map[string]map[string]float64, machines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %d machines |", machines)
	for _, c := range contestants {
		fmt.Fprintf(&b, " %s |", c.name)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(contestants)) + "\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s |", r.words)
		for _, c := range contestants {
			if v := results[c.name][r.key]; v < 0 && r.key != "binary MiB" {
				b.WriteString(" not within 120 s |")
			} else {
				fmt.Fprintf(&b, " "+r.format+" |", v)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
