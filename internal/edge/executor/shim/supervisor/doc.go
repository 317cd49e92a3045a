// Package supervisor is the program that stands between the daemon and one subjob, so that the daemon can die and come
// back. It starts the command, holds it to its lease by the kernel's clock, its memory and its limits, and writes the
// result when the last process is gone. Its own death ends the command (docs/adr/0004-supervisor.md). Then it takes the next subjob
// (docs/adr/0032-warm-supervisors.md).
//
// It talks through the run directory alone (package shim). It must stay small: standard library and golang.org/x/sys
// only, no network, no configuration, and no knowledge of why a lease ends when it does.
package supervisor
