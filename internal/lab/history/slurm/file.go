package slurm

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

// What is odd of more than one command's output, and what is done about it.
const (
	leftOut    = "left out"
	badDevices = "devices that can't be read"
	asNone     = "taken as not given"
	shares     = "a run with shares of a device (gres/shard, gres/mps)"
	sharesDone = "only the whole devices of its gres/gpu count"
)

// part reads the lines of one command's output, one after another.
type part interface {
	// line takes a line.
	line(text []byte, at history.At)
	// done is called behind the last.
	done()
}

// file is one file while it is read. It may hold the output of several commands.
type file struct {
	book    *history.Book
	clock   clock
	hosts   map[string][]int32
	loads   map[string]load
	current part
	// What is read was so in [from, until); until is 0 where that is not known.
	from, until quantity.Instant
}

// load is what a text of trackable resources says of devices.
type load struct {
	// number of the book; 0: no device.
	number int32
	// wrong: it is no such text. shares: it names shares of devices (gres/shard, gres/mps), which are no devices of their own.
	wrong, shares bool
}
