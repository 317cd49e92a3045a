// Package report draws what happened.
//
// Of a live cluster it draws what slices did, on a terminal and as a picture: a row for each slice, leases in the color of
// their job, reservations hatched, empty windows outlined, and how much of the time that could be filled was filled. Several
// panels share one scale, so that two ways of running the same work can be compared.
//
// Of simulations it draws a Study: a page of tables, plots and timelines that needs nothing else, plots as pictures of their
// own, the runs as JSON and CSV, and a trace for Perfetto. docs/metrics.md says what the figures are.
//
// It knows nothing of where histories come from; it reads no clock, and the same input gives the same bytes. No concurrency.
package report
