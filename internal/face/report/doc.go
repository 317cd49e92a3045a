// Package report draws what slices did: a row for each slice, leases in the color of their job, reservations hatched,
// empty windows outlined, and how much of the time that could be filled was filled. Several panels share one scale, so
// that two ways of running the same work can be compared. It draws histories and knows nothing of where they come from;
// it reads no clock, and the same panels give the same bytes. No concurrency.
package report
