// Package placement measures placements a second in memory, without a journal, a network or a person: asks of one slice by size class come
// to nodes of four slices, at a load, and each runs for a second in the mean. Search and arbitration alone are Flow, everything that gate,
// zones and nodes do for a job are Actors; docs/benchmarks.md has what is measured, and bench/peers places the same asks with other
// schedulers.
package placement
