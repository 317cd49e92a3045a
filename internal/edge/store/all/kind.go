package all

import (
	"context"

	"sluice.dev/sluice/internal/edge/store"
)

// Kind is one kind of store.
type Kind struct {
	// Name is the first word of its spec, before the colon.
	Name string
	// Help is one line on how its spec is written.
	Help string
	// Open opens one by its whole spec, Init makes one first where that has to be asked for.
	Open, Init func(ctx context.Context, spec string) (store.Store, error)
	// Later opens one that does not answer now; nil: nobody can tell it then from one that is not there.
	Later func(spec string) (store.Store, error)
}

// as is what a kind has opened, or nothing.
func as[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}
