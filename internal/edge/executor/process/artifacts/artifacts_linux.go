// Package artifacts keeps a node's artifacts in the store: work directories until no job needs them, and outputs and checkpoints of
// subjobs under the name of their token (docs/adr/0049-store.md).
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
	// Keep: output and checkpoint of a subjob are put into Store before its result is sent.
	Keep bool
	// Owner is the word of the jobs' owner in Store's names, on a machine that has joined the owner's cluster: Store is the owner's, who
	// lets the machine name what its own subjobs left, and nothing else. Empty: the data directory's own (see Owner).
	Owner string
	// TakesNothing: the owner goes by a result that says that its subjob left nothing, which then has no name in Store.
	TakesNothing bool
	// Limit bounds one unpacked work directory in bytes.
	Limit int64
	// Now is the node's clock.
	Now func() time.Time
	Log *slog.Logger
}

// Artifacts are those of one node. Safe for concurrent use. Make it with Open.
type Artifacts struct {
	o Options
	// own is the store of the data directory, if another one was given and this one may still have older work directories; nil: there is
	// none.
	own files.Store
	// ctx is cancelled by giveUp when it is closed, which ends its calls to the store. owner is this daemon's name there.
	ctx    context.Context //nolint:containedctx // it is its life
	giveUp context.CancelFunc
	owner  string
	// naming excludes naming work directories while unneeded ones are removed.
	naming sync.Mutex

	waiting sync.Mutex
	// unstored are subjobs whose results wait because the store does not take their output, each with the error.
	unstored map[job.Token]error
	// away: the store has not answered since it was opened.
	away bool
}

// Open opens the store of the data directory where it is needed, and reads or makes this daemon's name there.
func Open(o Options) (*Artifacts, error) {
	a := &Artifacts{o: o, owner: o.Owner, unstored: map[job.Token]error{}}
	if a.guest() {
		if err := checkOwner(a.owner); err != nil {
			return nil, errkind.Errorf(errkind.Invalid, "the owner of this machine's jobs in the store: %w", err)
		}
	} else if err := a.identify(); err != nil {
		return nil, err
	}
	a.ctx, a.giveUp = context.WithCancel(context.Background())
	if err := a.openOwn(); err != nil {
		return nil, fmt.Errorf("preparing the data directory: %w", err)
	}
	return a, nil
}

// Close cancels its calls to the store.
func (a *Artifacts) Close() { a.giveUp() }

// Context is cancelled by Close.
func (a *Artifacts) Context() context.Context { return a.ctx }

// openOwn opens the store of the data directory: as the store if none was given, else for older work directories.
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

// guest reports whether the store is that of the cluster which this machine has joined.
func (a *Artifacts) guest() bool { return a.o.Owner != "" }

// identify reads or makes the name of this daemon in the store, which several may share.
func (a *Artifacts) identify() (err error) {
	a.owner, err = Owner(string(a.o.Layout))
	return err
}

// Owner reads the word by which a data directory's jobs are named in the store, or makes one. Other machines put what subjobs of these jobs
// leave under the same word.
func Owner(dataDir string) (string, error) {
	path := folders.Layout(dataDir).In("store-owner")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		var salt [8]byte
		_, _ = rand.Read(salt[:]) // never fails (package crypto/rand)
		data = []byte(hex.EncodeToString(salt[:]))
		err = shim.WriteFile(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return "", fmt.Errorf("who this daemon is in its store: %w", err)
	}
	owner := strings.TrimSpace(string(data))
	if err = checkOwner(owner); err != nil {
		return "", errkind.Errorf(errkind.Corrupt, "%s holds %.40q, which is no name: put back what it held, or remove it if the store is "+
			"this daemon's alone", path, owner)
	}
	return owner, nil
}

// checkOwner says whether an owner's word may be one word of a name.
func checkOwner(owner string) error {
	if err := files.CheckName(owner); err != nil {
		return err
	}
	if strings.Contains(owner, "/") {
		return errkind.Errorf(errkind.Invalid, "%.40q is more than one word", owner)
	}
	return nil
}
