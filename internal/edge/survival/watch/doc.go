// Package watch has Airlock's fast path: a small process beside the daemon that senses a machine's memory, decides with core/airlock, and
// suspends, resumes or ends subjobs. It needs neither the daemon nor a disk nor the network: what it must know lies in shared
// memory, in a table that the daemon writes, and what it does in a board and a ring that the daemon reads.
//
// Who decides (docs/adr/0047-watcher.md): as long as a watcher lives, the watcher, about all that the table lists; the node follows what
// the board says. A life of a watcher begins with everything running, and ends so: it thaws what it finds when it starts, what it
// froze when it ends in order, and the one that follows a killed one thaws before all else.
//
// What is in shared memory may be written by somebody who is killed in the middle, and by programs of the same user. It is read as what
// strangers wrote: checked, bounded, and never believed in part.
package watch
