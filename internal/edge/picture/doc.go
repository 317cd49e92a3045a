// Package picture draws what slices did, on a terminal and as a picture: a row for each slice, leases in the color of their job,
// reservations hatched, empty windows outlined, and how much of the time that could be filled was filled. Several panels
// share one scale, so that two ways of running the same work can be compared.
//
// It knows nothing of where histories come from; it reads no clock, and the same input gives the same bytes. No concurrency.
package picture
