package artifacts

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/faults"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
)

// Counts reports whether any of a result can count, and so belongs into the store. How far a gang that saves came its first member says:
// what the others wrote may count with that.
func Counts(res *job.Result, l *shim.Lease) bool {
	return res.Progress > l.Range.From || res.Checkpoint || l.Saves && l.Member > 0
}

// Put puts output and checkpoint, if any of the result can count, into the store and names them, and a guest's logs. It may be repeated:
// what is there is not put again. Where there is nothing to put the result says so, if its head goes by that (Options.TakesNothing).
func (a *Artifacts) Put(ctx context.Context, dir shim.Dir, l *shim.Lease, res *job.Result) error {
	counts, logs := Counts(res, l), a.guest() && l.Job != "" // a damaged run directory names no job
	if !counts && !logs {
		return nil
	}
	if a.o.TakesNothing && logs && nothing(dir, l, res) {
		res.LeftNothing = true
		return nil
	}
	name := a.resultName(l.Job, l.Token)
	_, err := a.o.Store.ReadName(ctx, name)
	if k := errkind.Of(err); err == nil || k != errkind.NotFound && k != errkind.Corrupt {
		return faults.OfStore(err)
	}
	refs := files.Refs{}
	if err = nil; counts {
		err = a.putOne(ctx, l, refs, outputRole, dir.Output())
	}
	if err == nil && counts && res.Checkpoint && l.Member == 0 {
		err = a.putOne(ctx, l, refs, checkpointRole, dir.Checkpoint())
	}
	if err == nil && logs {
		err = a.putLogs(ctx, dir, l, refs)
	}
	if err == nil && len(refs) > 0 {
		err = faults.OfStore(files.Name(ctx, a.o.Store, name, refs))
	}
	return err
}

// Forget removes the names of a subjob's artifacts that do not count. Their objects go with the next collection; a name that stays because
// the store can't be reached goes with its job.
func (a *Artifacts) Forget(j job.ID, t job.Token) {
	if !a.o.Keep {
		return
	}
	var err error
	if a.guest() {
		err = a.Drop(a.ctx, j, t, outputRole, checkpointRole) // people may want to read its logs
	} else {
		err = a.o.Store.Unname(a.ctx, a.resultName(j, t))
	}
	if err != nil {
		a.o.Log.Warn("what a subjob left that does not count stays in the store until its job is forgotten", "subjob", t.String(), "err",
			err)
	}
}

// ForgetCheckpoint removes the name of a checkpoint that counts, once there is a newer one. A guest leaves that to the owner, who knows
// which checkpoint counts and whether another machine still needs an older one.
func (a *Artifacts) ForgetCheckpoint(j job.ID, t job.Token) error {
	if !a.o.Keep || a.guest() {
		return nil
	}
	return a.Drop(a.ctx, j, t, checkpointRole)
}

// Drop removes roles from the name of what a subjob left, and the name with its last role. One that is not there is no error.
func (a *Artifacts) Drop(ctx context.Context, j job.ID, t job.Token, roles ...string) error {
	name := a.resultName(j, t)
	n, err := a.o.Store.ReadName(ctx, name)
	if errkind.Of(err) == errkind.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	had := len(n.Refs)
	for _, role := range roles {
		delete(n.Refs, role)
	}
	switch len(n.Refs) {
	case had:
		return nil
	case 0:
		return a.o.Store.Unname(ctx, name)
	}
	return files.Name(ctx, a.o.Store, name, n.Refs)
}

// Settled removes the logs of a subjob of another machine, and everything else if nothing of it counts.
func (a *Artifacts) Settled(ctx context.Context, j job.ID, t job.Token, counts bool) error {
	if counts {
		return a.Drop(ctx, j, t, logsRole)
	}
	return a.Drop(ctx, j, t, logsRole, outputRole, checkpointRole)
}

// ForgetJob removes all of a job's names. They are the owner's to remove: a guest's files of the job go, and the names stay.
func (a *Artifacts) ForgetJob(j job.ID) error {
	if !a.o.Keep || a.guest() {
		return nil
	}
	var all []string
	err := a.o.Store.Names(a.ctx, a.jobNames(j), func(n files.Named) error {
		all = append(all, n.Name)
		return nil
	})
	for _, name := range all {
		if err == nil {
			err = a.o.Store.Unname(a.ctx, name)
		}
	}
	return err
}

// Fetch gets the checkpoint of a subjob into a new folder, for a user, at most limit bytes of it, and syncs it. NotFound: there is none.
func (a *Artifacts) Fetch(j job.ID, t job.Token, into string, user *shim.User, limit int64) error {
	n, err := a.o.Store.ReadName(a.ctx, a.resultName(j, t))
	if err == nil && n.Refs[checkpointRole] == "" {
		return errkind.Errorf(errkind.NotFound, "%s has no checkpoint", n.Name)
	}
	if errkind.Of(err) == errkind.NotFound {
		return err
	}
	if err != nil {
		return faults.OfStore(err)
	}
	return a.unpack(a.ctx, n.Refs[checkpointRole], into, user, limit)
}

// FetchOutput gets the output of a committed subjob of another machine into a new folder, at most limit bytes of it, and syncs it. wrote:
// there is one. NotFound: the store knows nothing of the subjob.
func (a *Artifacts) FetchOutput(ctx context.Context, j job.ID, t job.Token, into string, limit int64) (wrote bool, err error) {
	n, err := a.o.Store.ReadName(ctx, a.resultName(j, t))
	if err != nil || n.Refs[outputRole] == "" {
		return false, err
	}
	return true, a.unpack(ctx, n.Refs[outputRole], into, nil, limit)
}

// HasCheckpoint reports whether the store has the checkpoint of a subjob.
func (a *Artifacts) HasCheckpoint(ctx context.Context, j job.ID, t job.Token) (bool, error) {
	n, err := a.o.Store.ReadName(ctx, a.resultName(j, t))
	if errkind.Of(err) == errkind.NotFound {
		return false, nil
	}
	return n.Refs[checkpointRole] != "", err
}

// Where says where the store is, for people.
func (a *Artifacts) Where() string { return a.o.Store.String() }

// Away notes that the store did not answer when it was opened.
func (a *Artifacts) Away() {
	a.waiting.Lock()
	defer a.waiting.Unlock()
	a.away = true
}

// Reachable reports whether the store takes everything that is to be stored: the node starts nothing while it does not.
func (a *Artifacts) Reachable() error {
	a.waiting.Lock()
	away, waits := a.away, slices.SortedFunc(maps.Keys(a.unstored), job.Token.Compare)
	var err error
	if len(waits) > 0 {
		err = fmt.Errorf("what subjob %v has left can't be stored: %w", waits[0], a.unstored[waits[0]])
	}
	a.waiting.Unlock()
	if err != nil || !away {
		return err
	}
	ctx, cancel := context.WithTimeout(a.ctx, answers)
	defer cancel()
	if _, err := a.o.Store.Now(ctx); err != nil {
		return fmt.Errorf("the store is away: %w", err)
	}
	a.waiting.Lock()
	defer a.waiting.Unlock()
	a.away = false
	return nil
}

// answers is how long a store may take to answer a probe.
const answers = 10 * time.Second

// Waits notes why a subjob's output can't be stored; nil: it is stored.
func (a *Artifacts) Waits(t job.Token, why error) {
	a.waiting.Lock()
	defer a.waiting.Unlock()
	if delete(a.unstored, t); why != nil {
		a.unstored[t] = why
	}
}
