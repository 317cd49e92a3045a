package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// roles of a subjob's artifacts, part of their names.
const (
	outputRole     = "output"
	checkpointRole = "checkpoint"
	logsRole       = "logs"
)

// jobNames is the folder of a job's names in the store, resultName the name of one subjob's artifact.
func (a *Artifacts) jobNames(j job.ID) string { return "jobs/" + a.owner + "/" + files.Folder(j) }
func (a *Artifacts) resultName(j job.ID, t job.Token) string {
	return a.jobNames(j) + "/" + t.String()
}

// resumable is the size from which it pays to compute the digest first, so that an interrupted upload can go on.
const resumable = 64 << 20

// putOne puts a directory into the store, unless it is empty.
func (a *Artifacts) putOne(ctx context.Context, l *shim.Lease, refs files.Refs, role, dir string) error {
	any, err := folders.Filled(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !any {
		return nil
	}
	if err != nil {
		return faults.OfSubjob(err)
	}
	t, err := tree.Scan(dir)
	if err != nil {
		return faults.OfSubjob(err)
	}
	defer func() { _ = t.Close() }()
	for _, left := range t.Left {
		a.o.Log.Warn("a subjob's "+role+" is not stored whole", "subjob", l.Token.String(), "left", left)
	}
	src := &reading{Source: t}
	var sum files.Digest
	if t.Size() >= resumable {
		if sum, err = files.Sum(ctx, src); err != nil && src.err == nil {
			return faults.OfStore(err) // given up
		}
	}
	var o files.Object
	if src.err == nil {
		o, err = a.o.Store.Put(ctx, sum, src)
	}
	if src.err != nil {
		return faults.OfSubjob(fmt.Errorf("the %s: %w", role, src.err))
	}
	refs[role] = o.Digest
	return faults.OfStore(err)
}

// reading is a source that remembers its own first error, which tells whether a failed put is the subjob's fault.
type reading struct {
	files.Source
	err error
}

func (s *reading) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Source.ReadAt(p, off)
	if err != nil && n < len(p) && off+int64(n) < s.Size() && s.err == nil {
		s.err = err
	}
	return n, err
}

// unpack unpacks a tree of the store into a new folder, for a user, at most limit bytes of it, and syncs it.
func (a *Artifacts) unpack(ctx context.Context, d files.Digest, into string, user *shim.User, limit int64) error {
	in, err := a.o.Store.Open(ctx, d)
	if err != nil {
		return faults.OfStore(err)
	}
	defer func() { _ = in.Close() }()
	if err = errors.Join(foreign.Remove(into), os.Mkdir(into, 0o700), shim.Give(into, user)); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	_, _, err = tree.Unpack(cancellable{ctx, in}, root, tree.Limits{Bytes: limit, Entries: tree.MaxEntries}, owner(user))
	if err = errors.Join(err, root.Close()); err == nil {
		_, _, err = foreign.Sync(into) // a checkpoint in its place is whole after a power cut
	}
	return err
}

// cancellable is a reader that ends with a context: an object may be many GiB.
type cancellable struct {
	ctx context.Context //nolint:containedctx // it is the reader's life
	in  io.Reader
}

func (c cancellable) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, errkind.Errorf(errkind.Unavailable, "given up: %w", err)
	}
	return c.in.Read(p)
}

// owner returns a user as the owner of unpacked files.
func owner(u *shim.User) *tree.Owner {
	if u == nil {
		return nil
	}
	return &tree.Owner{UID: int(u.UID), GID: int(u.GID)}
}
