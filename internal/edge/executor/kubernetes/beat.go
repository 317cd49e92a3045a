//go:build kubernetes

package kubernetes

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"time"

	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// beatAgain is how soon a beat is tried again that could not be written.
const beatAgain = time.Second

// beat lets Pods hear that the operator lives, until the executor is closed: one place in the store is for all of them. No two beats are
// the same, also of two lives of the operator.
func (e *Executor) beat() {
	life, failing := rand.Text(), false
	for n := int64(1); e.ctx.Err() == nil; n++ {
		data, err := json.Marshal(pod.Pulse{Life: life, Sequence: n, At: e.o.now()})
		if err == nil {
			ctx, cancel := context.WithTimeout(e.ctx, min(asking, max(beatAgain, e.o.Vigil.Beat())))
			err = e.shelf.lender.Write(ctx, e.shelf.own().beat(), data)
			cancel()
		}
		if e.ctx.Err() != nil {
			return
		}
		if away := err != nil; away != failing {
			if failing = away; failing {
				e.o.Log.Warn("Pods can't hear that this operator lives, and yield if that lasts (ownerless of their SlicePool)",
					"error", err)
			} else {
				e.o.Log.Info("Pods hear of this operator again")
			}
		}
		for next := time.Now(); e.ctx.Err() == nil; { // in steps, since the pools and with them Beat may change meanwhile
			executor.Pause(e.ctx.Done(), min(e.o.Vigil.Beat(), beatAgain))
			if failing || time.Since(next) >= e.o.Vigil.Beat() {
				break
			}
		}
	}
}
