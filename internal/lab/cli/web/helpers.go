//go:build js

package main

import (
	"context"
	"errors"
	"syscall/js"

	"sluice.dev/sluice/internal/lab/cli/forecaster"
)

// helpers are workers that play runs for this one, each by itself; a helper is made when it gets its first run. A run goes there and comes
// back as text, in messages of worker.js.
type helpers []*helper

func newHelpers(n int) helpers { return make(helpers, n) }

// play is for a forecast's Options.Elsewhere. The error is the helper's: of the run, or of its end.
func (h helpers) play(ctx context.Context, worker int, run []byte) ([]byte, error) {
	if h[worker] == nil {
		h[worker] = hire()
	}
	return h[worker].play(ctx, run)
}

// helper is a worker that is asked for one run at a time.
type helper struct {
	port   js.Value
	booked chan string
	failed chan string
}

func hire() *helper {
	h := &helper{booked: make(chan string, 1), failed: make(chan string, 1)}
	heard := js.FuncOf(func(_ js.Value, args []js.Value) any { // may not wait: nothing else is heard meanwhile
		if text := args[0].Get("failed"); !text.IsUndefined() {
			select {
			case h.failed <- text.String():
			default: // what failed first is told
			}
			return nil
		}
		h.booked <- args[0].Get("booked").String() // it has room: one answer to each run
		return nil
	})
	h.port = js.Global().Call("hire", heard)
	return h
}

func (h *helper) play(ctx context.Context, run []byte) ([]byte, error) {
	h.port.Call("postMessage", string(run))
	select {
	case text := <-h.booked:
		return []byte(text), nil
	case text := <-h.failed:
		return nil, errors.New(text)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// help plays what comes through a helper's port, one run after the other, until the worker is ended.
func help(port js.Value) {
	runs := make(chan string, 1) // the next comes when the last is answered
	port.Set("onmessage", js.FuncOf(func(_ js.Value, args []js.Value) any {
		runs <- args[0].Get("data").String()
		return nil
	}))
	for run := range runs {
		message := map[string]any{}
		if booked, err := forecaster.Play(context.Background(), []byte(run)); err != nil {
			message["failed"] = err.Error()
		} else {
			message["booked"] = string(booked)
		}
		port.Call("postMessage", message)
	}
}
