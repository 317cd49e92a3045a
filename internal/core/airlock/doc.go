// Package airlock decides what a node does when its memory runs out (Laminar, arXiv 2602.13789: node-local, bounded, deterministic, in
// order of what work is worth; adr 0046 has our definitions). It is a function of one snapshot: which subjobs are suspended, which go on,
// which are asked to leave a checkpoint and yield, which are ended. It acts on nothing and remembers nothing: what was done to a task so
// far is in the task.
//
// Decide is called by the node, and by the watcher of its host when the node is dead, with the same table. So a table has a fixed size and
// no pointers in it, and a decision allocates nothing.
//
// What it holds to (airlock_test.go has each as a property against brute force):
//   - Every survivor outranks all that a decision ends, except those whose end would free next to nothing. That holds if a timer is over
//     too: no task is ended for its time while one below it stays, except one that was asked to yield and has not in time.
//   - A task that is suspended or asked to yield is the lowest that can be: every survivor below it could give way only by its end.
//   - These tasks are the shortest prefix, of those that can give way, whose relief covers the deficit; those that are ended, of the whole
//     order.
//   - Nothing is killed while a cheaper step is open, except at the emergency line or when its timer is over.
//   - An entry ends within its timer: the task goes on, or it is gone. One that is suspended with one below it goes on at any level.
//   - The same snapshot gives the same decision, in whatever order its tasks are listed.
package airlock
