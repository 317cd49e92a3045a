// Package interest is mechanism sja (arXiv 2509.19086): jobs signal interest in a window, the policy picks among them, and only the picked
// one cuts a piece. It must not know who owns a job or a slice, nor what a claim is.
//
// Read state.go for the state, decline.go and picker.go for its parts, offer.go for one window, signal.go for agents, pass.go for the
// slices of one speed, and interest.go for a whole sale.
package interest
