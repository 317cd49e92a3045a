//go:build kubernetes

package kubernetes

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
)

const (
	// asks is how often the store is probed with a write, asksAgain the interval while that fails, asking the probe's timeout.
	asks      = 30 * time.Second
	asksAgain = 5 * time.Second
	asking    = 10 * time.Second
)

// tend probes the store and reports the node unhealthy while it takes no writes; nothing is started meanwhile: every subjob leaves
// something in the store, and work that can't be stored is done again. first is closed after the first probe.
func (e *Executor) tend(first chan<- struct{}) {
	failing := false
	for {
		ctx, cancel := context.WithTimeout(e.ctx, asking)
		_, err := e.o.Store.Now(ctx)
		cancel()
		if e.ctx.Err() != nil {
			return
		}
		if away := err != nil; away != failing {
			failing = away
			a := &protocol.Ailment{Ails: failing}
			if failing {
				a.Text = "the store is away: " + err.Error()
				e.o.Log.Error("the store is away; nothing is started until it answers", "error", err)
			} else {
				e.o.Log.Info("the store answers again")
			}
			e.box.Post(protocol.Message{Kind: protocol.Ailing, Body: a})
		}
		if first != nil {
			close(first)
			first = nil
		}
		pause := asks
		if failing {
			pause = asksAgain
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
