// Package world drives one mechanism of swarm through virtual time: lean nodes, rigid work that comes and goes, streams of short
// tasks, a network, faults. It alone knows the truth. It knows no mechanism.
package world
