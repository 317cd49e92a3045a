// Package search carries the tickets of flow between actors (mechanism laminar): what a home knows of the tickets of its jobs (Home), and
// what a zone does with those that search in it (Ground). Both send messages of their own, and all decisions are flow's: here are places,
// messages and timers.
//
// Soft. A restarted home makes a ticket for every job that needs one; a lost ticket is missed by its home and made anew; one that its home
// has forgotten ends where it is.
//
// The package must not know what a job does, nor what a claim is: its home tells what it looks for (Demand), and takes what was found.
package search
