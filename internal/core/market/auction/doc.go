// Package auction is mechanism jasda (arXiv 2510.14599): jobs bid for a window with variants, and what is worth most in it is sold. It must
// not know who owns a job or a slice, nor what a claim is.
//
// Read config.go for the rules, bid.go for what a bid is and what it weighs, quoter.go for how a job answers, quote.go for
// answers that are kept,
// audience.go for who is asked, sift.go, clear.go and settle.go for who wins and what is sold, skip.go for rounds that need not be held,
// and auction.go for a pass.
package auction
