// Package artifacts has what lies in the store for a node's jobs: work directories until no job needs them, and what subjobs have left,
// output and checkpoint, under the name of their token (docs/adr/0049-store.md).
package artifacts

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/local"
)

// Options of Open. Store may be nil: then it is one in the data directory.
type Options struct {
	Layout folders.Layout
	Store  files.Store
	// Keep: output and checkpoint of a subjob are put into Store before its result is told.
	Keep bool
	// Limit bounds one unpacked work directory in bytes.
	Limit int64
	// Now is the node's clock.
	Now func() time.Time
	Log *slog.Logger
}

// Artifacts of one node. It is safe for concurrent use. Make it with Open.
type Artifacts struct {
	o Options
	// own is the store of the data directory where another was given and work directories may lie in it from before that; nil: there is
	// none.
	own files.Store
	// ctx is over when it is closed, by giveUp: what it asks of the store ends then. owner is who this daemon is there.
	ctx    context.Context //nolint:containedctx // it is its life
	giveUp context.CancelFunc
	owner  string
	// naming keeps those apart that name work directories and those that look which are needed no more.
	naming sync.Mutex

	waiting sync.Mutex
	// unstored are subjobs whose results wait because the store does not take what they have left, each with why.
	unstored map[job.Token]error
	// away: the store has not answered since it was opened.
	away bool
}

// Open opens the store of the data directory where it is needed, and finds out who this daemon is there.
func Open(o Options) (*Artifacts, error) {
	a := &Artifacts{o: o, unstored: map[job.Token]error{}}
	if err := a.identify(); err != nil {
		return nil, err
	}
	a.ctx, a.giveUp = context.WithCancel(context.Background())
	if err := a.openOwn(); err != nil {
		return nil, fmt.Errorf("preparing the data directory: %w", err)
	}
	return a, nil
}

// Close ends what it has asked of the store.
func (a *Artifacts) Close() { a.giveUp() }

// Context is over once it is closed.
func (a *Artifacts) Context() context.Context { return a.ctx }

// openOwn opens the store of the data directory: as the store where none was given, else for what was put there before.
func (a *Artifacts) openOwn() error {
	path := a.o.Layout.In("store")
	if a.o.Store != nil {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	own, err := local.Open(path)
	switch {
	case err != nil:
		return err
	case a.o.Store == nil:
		a.o.Store = own
	default:
		a.own = own
	}
	return nil
}

// identify finds out under which name this daemon is known in the store: several may share one.
func (a *Artifacts) identify() error {
	path := a.o.Layout.In("store-owner")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var salt [8]byte
		_, _ = rand.Read(salt[:]) // never fails (package crypto/rand)
		data = []byte(hex.EncodeToString(salt[:]))
		err = shim.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("who this daemon is in its store: %w", err)
	}
	a.owner = strings.TrimSpace(string(data))
	if err = files.CheckName(a.owner); err != nil || strings.Contains(a.owner, "/") {
		return errkind.Errorf(errkind.Corrupt, "%s holds %.40q, which is no name: put back what it held, or remove it if the store is "+
			"this daemon's alone", path, a.owner)
	}
	return nil
}
