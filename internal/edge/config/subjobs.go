package config

import "sluice.dev/sluice/internal/core/quantity"

// Subjobs are bounds of every subjob of a daemon; 0 stands for the daemon's own.
type Subjobs struct {
	// Processes with their threads. Files are those it makes in its work directory and TMPDIR, Scratch the bytes of disk they take.
	Processes, Files int64
	Scratch          quantity.Amount
	// SharedTmp: /tmp and /dev/shm are the machine's.
	SharedTmp bool
}

// Subjobs reads the bounds of subjobs: {processes, scratch, files, tmp: own|shared}.
func (v value) Subjobs() Subjobs {
	o := v.object("processes", "scratch", "files", "tmp")
	return Subjobs{
		Processes: o.get("processes").integer(8, 4_000_000, 0),
		Scratch:   o.get("scratch").bytes(1<<20, 0),
		Files:     o.get("files").integer(100, 1_000_000_000, 0),
		SharedTmp: o.get("tmp").choice("own", "shared") == 1,
	}
}
