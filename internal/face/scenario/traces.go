package scenario

import (
	"sync"

	"sluice.dev/sluice/internal/drive/workload/compose"
)

// Traces are the published traces below a folder, read once and only if they are asked for. It is safe for concurrent use.
type Traces struct {
	// Dir is the folder; empty for none.
	Dir  string
	once sync.Once
	in   compose.Inputs
	err  error
}

// inputs reads them.
func (t *Traces) inputs() (compose.Inputs, error) {
	t.once.Do(func() { t.in, t.err = compose.Published(t.Dir) })
	return t.in, t.err
}
