// Package fluid is arithmetic that says what the flow of Laminar should do, from how it works and not from how it was seen to work: hops,
// tasks placed and leftover used, against load and the age of digests.
//
// # Equations
//
// A zone has c slices that rigid work leaves, and h of them are free; -h tickets wait there if h is below 0. Slices become free at f(h) =
// (c - max(h, 0))/m, where m is the mean length of a task. A ticket is drawn to a zone at a rate A w, in proportion to what the zone's
// digest said, w = max(1, 10 T, h(then)), with A such that all zones together are sent all that arrives: E[A w] = lambda + what moves. So
// h goes up by one at rate f(h) and down by one at rate A w(then), and by rigid jobs that come and go; between two digests w stands still.
// That is a chain of (h(then), h), solved on a lattice; what it settles on is one zone among very many.
//
//   - A digest of period T is used until the next one, and a gate makes its tables anew once a period: its age is T on average, like that
//     of one that is held for 2T. One that is first
//     late and then held for T swings less, so this is too dark where a zone fills within a period.
//   - Of those that wait who gives up first is served first. So of q nobody gives up while q < fW, W being their patience, and what comes
//     beyond that is lost. Without patience that is
//     Erlang's loss, and with W beyond all bounds nobody gives up.
//   - A ticket that waits goes to another zone after ZoneHops looks at Pace, Resplits times, and stays in the last one for what is left of
//     its patience. Which share of those
//     that wait may still move is the same in all zones here.
//   - The rigid part of a zone is a compound Poisson number: jobs of 1 to Width slices. What it leaves in a zone (three values) and in the
//     world (five) is
//     drawn once, since rigid jobs last many patiences; and on top, jobs that come and go let h walk at random with the same variance.
//   - A hop to what looks free fails if somebody is on the way to the same fragment, within a round trip, or if rigid work has taken it
//     since the node's report, half a period old:
//     with chance min(1, (arrivals x 2 Delay + rigid x T/2)/h). A ticket that finds no room asks Guesses nodes in vain.
//
// # What it does not know
//
// Sizes: there is one class, and any slice serves any task. Lengths: they are exponential with one mean; how many run at a fixed rate does
// not depend on more (Erlang), how fast a zone that was sent too much empties does: short ones, of which most has just come, go first.
// Long tasks have so much more patience than short ones that they wait for all of those: what is lost is long first, and that is parked
// and counts as placed, which is right for windows shorter than its patience.
package fluid
