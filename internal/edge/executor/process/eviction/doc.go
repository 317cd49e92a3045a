// Package eviction removes from a machine that has joined a cluster what its head has as well, or what nobody needs any more. What subjobs
// left is in the head's store before its result is told, so that all a machine keeps of jobs is a cache: the checkpoint that the next
// subjob may begin from, and work directories that are unpacked.
package eviction
