//go:build !linux

package process

import (
	"context"
	"runtime"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
)

// Executor does not exist here: New says so.
type Executor struct{}

// New returns an error of kind Unsupported.
func New(Options) (*Executor, error) {
	return nil, unsupported()
}

// StoreOwner returns an error of kind Unsupported.
func StoreOwner(string) (string, error) { return "", unsupported() }

func unsupported() error {
	return errkind.Errorf(errkind.Unsupported, "subjobs run on Linux only, this is %s: run the node on Linux, and submit to it from here",
		runtime.GOOS)
}

// Find returns an error of kind Unsupported.
func (*Executor) Find(context.Context) ([]executor.Found, error) { return nil, unsupported() }

// Do does nothing.
func (*Executor) Do(protocol.Message, journal.Position) {}

// Isolation says that there is none.
func (*Executor) Isolation() string { return "none: not Linux" }

// Close does nothing.
func (*Executor) Close() error { return nil }
