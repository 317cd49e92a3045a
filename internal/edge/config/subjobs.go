package config

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
)

// Subjobs are bounds of every subjob of a daemon; 0 stands for the daemon's own.
type Subjobs struct {
	// Processes with their threads. Files are those it makes in its work directory and TMPDIR, Scratch the bytes of disk they take.
	Processes, Files int64
	Scratch          quantity.Amount
	// SharedTmp: /tmp and /dev/shm are the machine's.
	SharedTmp bool
}

// subjobsOf reads the bounds of subjobs: {processes, scratch, files, tmp: own|shared}.
func subjobsOf(v strict.Value) Subjobs {
	o := v.Object("processes", "scratch", "files", "tmp")
	return Subjobs{
		Processes: o.Get("processes").Integer(8, 4_000_000, 0),
		Scratch:   o.Get("scratch").Bytes(1<<20, 0),
		Files:     o.Get("files").Integer(100, 1_000_000_000, 0),
		SharedTmp: o.Get("tmp").Choice("own", "shared") == 1,
	}
}
