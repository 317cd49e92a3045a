// Package search carries the tickets of flow between actors (mechanism laminar): what a home knows of the tickets of its jobs (Home), and
// what a zone does with those that search in it (Ground). Both say what they have to in messages of their own, and neither decides anything
// that flow does not: here are places, messages and timers.
//
// All of it is soft. A home that starts again makes a ticket for every job that needs one; a ticket that is lost on its way is missed by
// its home and made anew; one that its home does not know any more ends where it is.
//
// The package must not know what a job does, nor what a claim is: its home says what it looks for (Demand), and takes what was found.
package search
