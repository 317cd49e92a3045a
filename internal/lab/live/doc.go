// Package live watches a cluster whose scheduler is another's, and keeps what it sees in a directory (Dir) that a forecast is made of. It
// asks and changes nothing: Slurm by the commands that print what it knows, Kubernetes in a package of its own. What is kept is in the form
// of package record.
//
// One goroutine looks (Watch.Run), and one at a time makes an answer beside it.
package live

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/lab/history/record"
)

// Source is what is watched.
type Source interface {
	// Name is what Line.Begin says.
	Name() string
	// Look asks what is so now, and returns what is new since the last look that was kept: all states if anew. The lines have no instant
	// yet. keep says that they are written.
	Look(ctx context.Context, now time.Time, anew bool) (lines []record.Line, keep func(), err error)
}
