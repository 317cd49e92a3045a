// Package scenario is the small language for simulated worlds, and what runs them: a cluster, its queues, the work that is
// offered, models of network, memory and time, faults, and what is expected of the outcome. One file serves tests, bug
// reports and users. docs/scenarios.md is the reference.
//
// It puts worlds together out of the drivers, workloads and mechanisms that it is given, and takes no decision of its own.
// Which mechanisms there are it is told by its caller.
package scenario
