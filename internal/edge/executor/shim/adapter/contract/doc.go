// Package contract is what all adapters say to the supervisor: how far they are, by the progress file, and how their subjob ends, by their
// exit status. It must not know what an adapter runs.
package contract

// Unready is the exit status when it is no unit that is to blame: the input can't be read, the command can't be started, or ended without
// having read anything. The supervisor takes it for a start that failed.
const Unready = 86

// NoRoom is the exit status when the disk had no room for what the adapter keeps of what the command says. That is no unit's fault either:
// the supervisor takes it for a failure of the node.
const NoRoom = 87
