//go:build kubernetes

package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/store"
)

// names are the names in the store of one OWNER:
//
//	work/OWNER/DIGEST                        a work directory that a job needs
//	jobs/OWNER/JOB/LIFE/SUBJOB               output and checkpoint of a subjob; after it is settled, its checkpoint if committed
//	outputs/OWNER/JOB/LIFE/FROM-TO.SUBJOB    the output of a committed range
//
// A Pod can write to its places pods/OWNER/SUBJOB/ROLE alone, which the store keeps below incoming/ until Adopt makes objects of them.
// OWNER is the operator and its journal, so that what another journal left, in this cluster or another one with the same store, is never
// taken for our own. The operator's own word to its Pods is at the place beats/OWNER (beat).
type names string

// Roles of what a subjob leaves, which also name its places.
const (
	outputRole     = "output"
	checkpointRole = "checkpoint"
	progressPlace  = "progress"
	workRole       = "work"
)

func (n names) work(id string) string   { return path.Join("work", string(n), id) }
func (n names) jobs(j job.ID) string    { return path.Join("jobs", string(n), store.Folder(j)) }
func (n names) outputs(j job.ID) string { return path.Join("outputs", string(n), store.Folder(j)) }
func (n names) result(rec *record) string {
	return path.Join(n.jobs(rec.Job), life(rec), rec.Token.String())
}

func (n names) output(rec *record, committed job.Range) string {
	return path.Join(n.outputs(rec.Job), life(rec), fmt.Sprintf("%012d-%012d.%s", committed.From, committed.To, rec.Token))
}

// beat is the place of the operator's word that it lives. It is as young as the operator's last word, so that no sweep removes it while
// Pods may wait for the next.
func (n names) beat() string { return path.Join("beats", string(n)) }

// place is where a Pod writes one of the things it leaves.
func (n names) place(rec *record, role string) string {
	return path.Join("pods", string(n), rec.Token.String(), role)
}

func life(rec *record) string { return strconv.FormatUint(uint64(rec.Generation.Number()), 10) }

// lifeOf is the life in a name below jobs or outputs.
func lifeOf(name string) job.Generation {
	n, _ := strconv.ParseUint(path.Base(path.Dir(name)), 10, 32)
	return job.Generation(n)
}

// parseOutput parses the last element of an output's name.
func parseOutput(name string) (r job.Range, t job.Token, ok bool) {
	span, token, _ := strings.Cut(path.Base(name), ".")
	from, to, _ := strings.Cut(span, "-")
	var err1, err2, err3 error
	r.From, err1 = strconv.ParseInt(from, 10, 64)
	r.To, err2 = strconv.ParseInt(to, 10, 64)
	t, err3 = job.ParseToken(token)
	return r, t, err1 == nil && err2 == nil && err3 == nil
}

const (
	// storeCalls bounds concurrent calls to the store: after a restart there may be tens of thousands of subjobs to examine.
	storeCalls = 64
	// tidying bounds a turn for names and places of one subjob; lengthy bounds one that reads all it left (5 GiB at 3 MiB/s) or removes
	// all names of a job. A call that hangs thus gives its turn back.
	tidying = time.Minute
	lengthy = 30 * time.Minute
	// peeking bounds one read of a subjob's word, mostWord that in bytes.
	peeking  = 10 * time.Second
	mostWord = 4 << 10
)

// shelf is what subjobs leave in the store. Invariant: a name stands only for what its own Pod said that it left, and every step can be
// repeated. At most storeCalls are at the store at once.
type shelf struct {
	o      *Options
	lender store.Lender
	turns  chan struct{}
	// naming excludes naming a work directory while unneeded names are pruned.
	naming sync.Mutex
}

// own are the names of this journal.
func (s *shelf) own() names { return names(cluster.Owner(s.o.Operator, s.o.Journal)) }

// of are the names of a subjob's journal.
func (s *shelf) of(rec *record) names { return names(cluster.Owner(s.o.Operator, rec.Journal)) }

// at calls the store when it has a turn, and cancels the call after most. Within a turn do must not take another one, nor wait for the API
// server: turns would deadlock. The wait for the turn is bounded by ctx alone.
func (s *shelf) at(ctx context.Context, most time.Duration, do func(context.Context) error) error {
	select {
	case s.turns <- struct{}{}:
	case <-ctx.Done():
		return errkind.Errorf(errkind.Unavailable, "waiting for a turn at the store: %w", ctx.Err())
	}
	defer func() { <-s.turns }()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return do(ctx)
}

// lend fills in presigned URLs of the subjob's own objects. They expire when nothing of it can run any more, and after mostLent at the
// latest.
func (s *shelf) lend(ctx context.Context, f *pod.Run, rec *record, workdir string, now quantity.Instant) (err error) {
	ends := mostLent
	if until := latest(nil, rec.End, s.o); until != quantity.Never {
		ends = min(ends, until.Sub(now)+rec.Grace+s.o.Linger)
	}
	give := func(d store.Digest, most int64) (*pod.Source, error) {
		url, failed := s.lender.LendGet(ctx, d, ends)
		return &pod.Source{URL: url, Digest: d, Bytes: most}, failed
	}
	if workdir != "" {
		if f.Work, err = give(store.Digest(workdir), s.o.WorkdirLimit); err != nil {
			return err
		}
	}
	if t := rec.Resume; !t.Zero() {
		var d store.Digest
		if d, err = s.checkpoint(ctx, rec.Job, t); err != nil {
			return err
		}
		if f.Resume, err = give(d, f.OutputLimit); err != nil {
			return err
		}
	}
	for role, url := range map[string]*string{outputRole: &f.Output, checkpointRole: &f.Checkpoint, progressPlace: &f.Progress} {
		if *url, err = s.lender.LendPut(ctx, s.of(rec).place(rec, role), ends); err != nil {
			return err
		}
	}
	if s.o.Vigil.Ownerless == nil {
		return nil
	}
	if f.Ownerless, f.Notice = s.o.Vigil.Ownerless(rec.Slice); f.Ownerless > 0 {
		f.Beat, err = s.lender.LendRead(ctx, s.of(rec).beat(), ends)
	}
	return err
}

// checkpoint finds the one that a subjob of a job left. NotFound: none is in the store.
func (s *shelf) checkpoint(ctx context.Context, j job.ID, t job.Token) (d store.Digest, err error) {
	ctx, cancel := context.WithTimeout(ctx, tidying) // includes the wait for a turn, during which a stop would go unheard
	defer cancel()
	err = s.at(ctx, tidying, func(ctx context.Context) error {
		return s.o.Store.Names(ctx, s.own().jobs(j), func(n store.Named) error {
			if path.Base(n.Name) == t.String() {
				d = cmp.Or(n.Refs[checkpointRole], d)
			}
			return nil
		})
	})
	if err == nil && d == "" {
		err = errkind.Errorf(errkind.NotFound, "the checkpoint of subjob %v is not in the store", t)
	}
	return d, err
}

// peek reads a subjob's word; false: there is none.
func (s *shelf) peek(ctx context.Context, rec *record) (w pod.Word, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, peeking) // includes the wait for a turn: a stuck store delays an order by no more
	defer cancel()
	var data []byte
	err := s.at(ctx, peeking, func(ctx context.Context) (err error) {
		data, err = s.lender.Peek(ctx, s.of(rec).place(rec, progressPlace), mostWord)
		return err
	})
	if err != nil || json.Unmarshal(data, &w) != nil {
		return pod.Word{}, false
	}
	w.Progress = max(rec.Range.From, min(w.Progress, rec.Range.To))
	return w, true
}

// stow turns what the Pod wrote to its places into content-addressed objects and names them. A subjob that left nothing needs no store.
func (s *shelf) stow(ctx context.Context, rec *record, said *pod.Said) error {
	if said.Output == nil && said.Checkpoint == nil || rec.Journal != s.o.Journal {
		return nil
	}
	return s.at(ctx, lengthy, func(ctx context.Context) error {
		return s.adopt(ctx, rec, map[string]*pod.Left{outputRole: said.Output, checkpointRole: said.Checkpoint})
	})
}

func (s *shelf) adopt(ctx context.Context, rec *record, all map[string]*pod.Left) error {
	name := s.own().result(rec)
	there, err := s.o.Store.ReadName(ctx, name)
	for role, d := range there.Refs {
		if left := all[role]; err == nil && (left == nil || left.Digest != d) {
			return errkind.Errorf(errkind.Invalid, "%s is in the store already, and names %s %s, which its Pod has not left", name, role, d)
		}
	}
	if k := errkind.Of(err); err == nil || k != errkind.NotFound && k != errkind.Corrupt {
		return unavailable(err)
	}
	refs := store.Refs{}
	for role, left := range all {
		if left == nil {
			continue
		}
		if _, err := s.lender.Adopt(ctx, s.own().place(rec, role), left.Digest); err != nil {
			return err
		}
		refs[role] = left.Digest
	}
	return unavailable(store.Name(ctx, s.o.Store, name, refs))
}

// unavailable marks an error as the store's, not the output's.
func unavailable(err error) error {
	if k := errkind.Of(err); err != nil && (k == errkind.NotFound || k == errkind.Invalid) {
		return errkind.Errorf(errkind.Unavailable, "%w", err)
	}
	return err
}

// settle names what was committed of a subjob, and drops the rest. needed are the checkpoints of subjobs that stay.
func (s *shelf) settle(ctx context.Context, rec *record, m *protocol.Settlement, needed func(job.Token) bool) error {
	return s.at(ctx, tidying, func(ctx context.Context) (err error) {
		if m.Committed && !m.Range.Empty() {
			err = s.publish(ctx, rec, m.Range, needed)
		} else {
			err = s.o.Store.Unname(ctx, s.own().result(rec))
		}
		for _, role := range []string{outputRole, checkpointRole, progressPlace} {
			if err == nil {
				err = s.lender.Drop(ctx, s.own().place(rec, role))
			}
		}
		return err
	})
}

// publish names the output of a committed range. The checkpoint keeps its name until a later one is committed.
func (s *shelf) publish(ctx context.Context, rec *record, committed job.Range, needed func(job.Token) bool) error {
	name := s.own().result(rec)
	n, err := s.o.Store.ReadName(ctx, name)
	if errkind.Of(err) == errkind.NotFound {
		return nil // nothing was left, or this is a repetition
	}
	if err != nil {
		return err
	}
	if d := n.Refs[outputRole]; d != "" {
		if err = store.Name(ctx, s.o.Store, s.own().output(rec, committed), store.Refs{outputRole: d}); err != nil {
			return err
		}
	}
	d := n.Refs[checkpointRole]
	if d == "" {
		return s.o.Store.Unname(ctx, name)
	}
	if n.Refs[outputRole] != "" {
		if err = store.Name(ctx, s.o.Store, name, store.Refs{checkpointRole: d}); err != nil {
			return err
		}
	}
	return s.unname(ctx, func(n store.Named) bool {
		t, bad := job.ParseToken(path.Base(n.Name))
		return bad == nil && n.Name != name && !needed(t)
	}, s.own().jobs(rec.Job))
}

// forget removes all names of a job's lives before a generation, 0: of all lives, if all could be listed. It stops at the first error: a
// job may have thousands of names, and the caller tries again.
func (s *shelf) forget(ctx context.Context, j job.ID, before job.Generation) error {
	all, err := s.list(ctx, func(n store.Named) bool { return before == 0 || lifeOf(n.Name) < before.Number() },
		s.own().jobs(j), s.own().outputs(j))
	for _, name := range all {
		if err == nil {
			err = s.o.Store.Unname(ctx, name)
		}
	}
	return err
}

// unname removes the names in folders that are old. What can't be listed or removed doesn't stop the rest; all errors come back.
func (s *shelf) unname(ctx context.Context, old func(store.Named) bool, folders ...string) error {
	all, err := s.list(ctx, old, folders...)
	for _, name := range all {
		err = errors.Join(err, s.o.Store.Unname(ctx, name))
	}
	return err
}

// list returns the names in folders that are old. A folder that can't be listed doesn't stop the rest.
func (s *shelf) list(ctx context.Context, old func(store.Named) bool, folders ...string) (all []string, err error) {
	for _, folder := range folders {
		err = errors.Join(err, s.o.Store.Names(ctx, folder, func(n store.Named) error {
			if old(n) {
				all = append(all, n.Name)
			}
			return nil
		}))
	}
	return all, err
}
