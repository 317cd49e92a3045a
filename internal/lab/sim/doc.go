// Package sim is the simulated driver of the core: the same actors and the same protocol as in the live shell, on a heap
// of events with virtual time. A day passes in the time its steps take. It takes no scheduling decision and must not
// import the parts that do.
//
// Sim plays the whole protocol: gates and any number of zones and nodes, with models of the network, of faults, of clocks and of what
// running work truly does (its workload.Job). Make one with New, tell it what people do with At, and call Run (up to an instant) or RunOut
// (until the source is dry and its jobs are over). Package sim/rigid plays whole-cluster planners instead.
//
// Replay plays a tape of the live shell.
//
// Memory grows with the jobs that are alive, not with the length of the workload: there is one future arrival at a time,
// and a job's slot is used again. What the actors keep is theirs to forget: a gate keeps a finished job for its
// Config.Retain, and so does the zone, which forgets when the gate says so. For long workloads set it to a second.
//
// The same options and seed give the same events, byte for byte. Every random draw has a stream of its own, keyed by what
// it is for (a message's way and number, a job with phase and attempt, a fault with its number): none moves another.
package sim
