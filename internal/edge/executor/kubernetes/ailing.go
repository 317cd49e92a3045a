//go:build kubernetes

package kubernetes

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
)

const (
	// asks is how often the store is asked whether it takes anything, and asksAgain while it does not; asking is how long it may take for an answer.
	asks      = 30 * time.Second
	asksAgain = 5 * time.Second
	asking    = 10 * time.Second
)

// tend asks the store now and then whether it takes anything, and says so where it does not: every subjob leaves something there, and what can't be stored is done again. So
// nothing is started meanwhile. first is closed once it was asked.
func (e *Executor) tend(first chan<- struct{}) {
	ails := false
	for {
		ctx, cancel := context.WithTimeout(e.ctx, asking)
		_, err := e.o.Store.Now(ctx)
		cancel()
		if e.ctx.Err() != nil {
			return
		}
		if away := err != nil; away != ails {
			ails = away
			a := &protocol.Ailment{Ails: ails}
			if ails {
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
		if ails {
			pause = asksAgain
		}
		select {
		case <-e.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
