// Package window makes windows of the idle time of slices: which gaps are offered, since when, and what became of the offer. It must not
// know who is offered them, nor how they are sold.
//
// Read class.go, slice.go and window.go for what there is, then board.go, which keeps it up to date.
package window
