// Package swarm is the contract of mechanisms that place short tasks on a very large cluster: Laminar and its peers, one folder
// each, with package all as the table and package world as the simulator that drives them. Nodes are lean there: two bytes of
// state and no actors (docs/adr/0037-lean-nodes.md).
//
// A mechanism plays every party of its protocol at every place: gates, zones, nodes, and a center if it has one. It decides at a
// place with what was told there, and no more: the world alone knows the truth, shows a node's own slices only to a call that is
// made at that node, counts every message, and refuses a placement that does not fit. A mechanism is a deterministic state
// machine without clock or map order; its randomness comes from the seed in its Setup.
package swarm
