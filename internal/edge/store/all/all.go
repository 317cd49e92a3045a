// Package all is the table of the kinds of store, and how one is chosen. Only the command line and the programs import it.
package all

import (
	"context"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/local"
	"sluice.dev/sluice/internal/edge/store/path"
)

// Kinds lists every kind.
func Kinds() []Kind {
	return []Kind{
		inDirectory(local.Name, "a directory of this machine, such as local:/var/lib/sluice-store; made if it is missing",
			opened(local.Open), opened(local.Open)),
		inDirectory(path.Name, "a directory that several machines have mounted, such as path:/mnt/shared/sluice; `sluice store init` "+
			"makes one", opened(path.Open), func(dir string) (store.Store, error) { return as(path.Init(dir)) }),
		s3Kind(),
	}
}

func opened[S store.Store, B any](open func(string, ...B) (S, error)) func(string) (store.Store, error) {
	return func(dir string) (store.Store, error) { return as(open(dir)) }
}

func inDirectory(name, help string, open, create func(dir string) (store.Store, error)) Kind {
	in := func(f func(string) (store.Store, error)) func(context.Context, string) (store.Store, error) {
		return func(_ context.Context, spec string) (store.Store, error) {
			return f(strings.TrimPrefix(spec, name+":"))
		}
	}
	return Kind{Name: name, Help: help, Open: in(open), Init: in(create)}
}

// Open opens the store of a spec, KIND:WHERE.
func Open(ctx context.Context, spec string) (store.Store, error) {
	k, err := find(spec)
	if err != nil {
		return nil, err
	}
	return k.Open(ctx, spec)
}

// patience is how long OpenLater waits for an answer.
const patience = 10 * time.Second

// OpenLater opens the store of a spec for a caller that can go on without it: where it does not answer now and its kind allows that, it is
// opened all the same, and away says what is wrong.
func OpenLater(ctx context.Context, spec string) (s store.Store, away, err error) {
	k, err := find(spec)
	if err != nil {
		return nil, nil, err
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err = k.Open(asking, spec)
	if errkind.Of(err) != errkind.Unavailable || k.Later == nil || ctx.Err() != nil {
		return s, nil, err
	}
	away = err
	s, err = k.Later(spec)
	return s, away, err
}

// Init makes the store of a spec, if it is not there, and opens it.
func Init(ctx context.Context, spec string) (store.Store, error) {
	k, err := find(spec)
	if err != nil {
		return nil, err
	}
	return k.Init(ctx, spec)
}

func find(spec string) (Kind, error) {
	name, _, _ := strings.Cut(spec, ":")
	kinds := Kinds()
	help := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == name {
			return k, nil
		}
		help[i] = "\n  " + k.Name + ": " + k.Help
	}
	return Kind{}, errkind.Errorf(errkind.Invalid, "store %q is not known; want one of%s", spec, strings.Join(help, ""))
}
