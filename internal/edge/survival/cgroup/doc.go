// Package cgroup is the kind of survival that rests on control groups of version 2: the kernel freezes a whole group at once, however it
// forks, counts what it has, and moves that out to swap when it is asked to.
package cgroup
