// Package auction is mechanism jasda (arXiv 2510.14599): jobs bid for a window with variants, and the most valuable set of them is sold. It
// must not know who owns a job or a slice, nor how a claim comes to be. Displaces reads that of a running subjob, and nothing here changes
// one.
//
// Read config.go for the rules, bid.go for what a bid is and what it weighs, quoter.go for how a job answers, quote.go for cached answers,
// audience.go for which jobs are asked, sift.go, clear.go and settle.go for which bids win and what is sold, skip.go for rounds that can be
// skipped, and auction.go for a pass.
package auction
