package job

import (
	"time"

	"sluice.dev/sluice/internal/core/digest"
)

// Array runs the command once for each index of a list: unit k is its k-th.
type Array struct {
	// Indices is the list, such as 1,3,5-9:2; empty: this is not the adapter.
	Indices string
	// Name is what its owner calls the job; empty: as it is called here.
	Name string
	// Output and Error are patterns of the files that take what a task says; empty: the usual one, and where Output goes.
	Output, Error string
	// Limit is how long a task may run; 0: as long as it likes.
	Limit time.Duration
}

// Trials runs the command once for each row of a table of parameters, which are put into its arguments.
type Trials struct {
	// Table is its file below the work directory; empty: this is not the adapter.
	Table string
	// Stop is when a trial is hopeless.
	Stop Stop
}

// Tasks reports whether the adapter runs the command once for each unit.
func (a *Adapter) Tasks() bool { return a.Array.Indices != "" || a.Trials.Table != "" }

// mixTasks mixes what is given of both into a digest.
func (a *Adapter) mixTasks(h digest.Hash) digest.Hash {
	if t := &a.Array; t.Indices != "" {
		h = h.Text("array").Text(t.Indices).Text(t.Name).Text(t.Output).Text(t.Error).Int(int64(t.Limit))
	}
	if t := &a.Trials; t.Table != "" {
		h = h.Text("trials").Text(t.Table)
		if t.Stop.Reduction != 0 { // as it was before trials were stopped
			h = h.Int(t.Stop.Reduction, t.Stop.From).Bool(t.Stop.Maximize)
		}
	}
	if a.Keep {
		h = h.Text("keep")
	}
	return h
}
