// Package airlock decides what a node does when its memory runs out (Laminar, arXiv 2602.13789: node-local, bounded, deterministic, in order of
// what work is worth; SYSTEMS 3.3 has our definitions). It is a function of one snapshot: which subjobs are suspended, which go on, which are asked to
// leave a checkpoint and yield, which are ended. It acts on nothing and remembers nothing: what was done to a task so far is in the task.
//
// Decide is called by the node, and by whoever watches a host when the node is dead, with the same table. So a table has a fixed size and no
// pointers in it, and a decision allocates nothing.
//
// What it holds to (airlock_test.go has each as a property against brute force):
//   - Every survivor outranks every victim of a decision, those apart whose end would free next to nothing. No rule may make an exception of that:
//     where no step short of killing is open for the lowest, those above it are not touched in its place.
//   - The victims are the shortest prefix of that order whose relief covers the deficit.
//   - Nothing is killed while a cheaper step is open, but at the emergency line or when its timer is over.
//   - An entry ends within its timer: the task goes on, or it is gone.
//   - The same snapshot gives the same decision, in whatever order its tasks stand.
package airlock
