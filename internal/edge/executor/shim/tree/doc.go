// Package tree looks at the processes of one subjob through /proc: who belongs to it, how much memory it uses, which of
// its processes wait for a signal, and whether all of them are gone. It must not know about leases.
package tree
