// Package report draws a Study of simulations: a page of tables, plots and timelines that needs nothing else, plots as pictures
// of their own, the runs as JSON and CSV, and a trace for Perfetto. docs/metrics.md says what the figures are.
//
// It reads no clock, and the same input gives the same bytes. No concurrency.
package report
