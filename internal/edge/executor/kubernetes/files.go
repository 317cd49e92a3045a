//go:build kubernetes

package kubernetes

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// Files gives access to what is kept of jobs. It implements host.Files. All of it is in the store, except logs, which the cluster keeps as
// long as the Pod exists.
type Files struct{ e *Executor }

// Files may be used before Find, and until Close.
func (e *Executor) Files() *Files { return &Files{e} }

// maxEntries bounds the files of one work directory.
const maxEntries = 200_000

func (f *Files) limits() tree.Limits {
	return tree.Limits{Bytes: f.e.o.WorkdirLimit, Entries: maxEntries, Writable: true}
}

// PutWorkdir stores a work directory (tar.gz), which PruneWorkdirs may remove. Errors are of kind Invalid or Exhausted, or the store's.
func (f *Files) PutWorkdir(tarGz []byte) (s executor.Workdir, err error) {
	if s.Files, s.Bytes, err = tree.Unpack(bytes.NewReader(tarGz), nil, f.limits(), nil); err != nil {
		return executor.Workdir{}, err
	}
	o, err := f.e.o.Store.Put(f.e.ctx, "", bytes.NewReader(tarGz))
	if err != nil {
		return executor.Workdir{}, err
	}
	s.ID = string(o.Digest)
	return s, f.need(o.Digest)
}

// TakeWorkdir is PutWorkdir for one that is in the store already. NotFound: it is not.
func (f *Files) TakeWorkdir(id string) (s executor.Workdir, err error) {
	if err = f.need(store.Digest(id)); err != nil { // named first, so that it is not removed while it is read
		return s, err
	}
	r, err := f.e.o.Store.Open(f.e.ctx, store.Digest(id))
	if err != nil {
		return s, err
	}
	s.ID = id
	s.Files, s.Bytes, err = tree.Unpack(r, nil, f.limits(), nil)
	return s, errors.Join(err, r.Close())
}

func (f *Files) need(id store.Digest) error {
	f.e.shelf.naming.Lock()
	defer f.e.shelf.naming.Unlock()
	return store.Name(f.e.ctx, f.e.o.Store, f.e.shelf.own().work(string(id)), store.Refs{workRole: id})
}

// HasWorkdir reports whether a work directory is stored.
func (f *Files) HasWorkdir(id string) (bool, error) {
	_, err := f.e.o.Store.Stat(f.e.ctx, store.Digest(id))
	if k := errkind.Of(err); err != nil && (k == errkind.NotFound || k == errkind.Invalid) {
		return false, nil
	}
	return err == nil, err
}

// OpenLogs reads the first Options.LogLimit bytes of an unsettled subjob's output from its Pod, where stdout and stderr are one stream.
// NotFound: there is no such subjob, or the cluster gave no log, for whatever reason.
func (f *Files) OpenLogs(name job.ID, token job.Token) ([]io.ReadSeekCloser, error) {
	f.e.mu.Lock()
	r := f.e.runs[token]
	f.e.mu.Unlock()
	if r == nil || r.rec.Job != name {
		return nil, errkind.Errorf(errkind.NotFound, "the Pod of subjob %v is gone, and its logs with it: read them while it runs, or "+
			"have the cluster collect them", token)
	}
	data, err := call(&f.e.api, "get pod log", func() ([]byte, error) {
		most := f.e.o.LogLimit
		return f.e.o.Client.CoreV1().Pods(r.pod.ns).GetLogs(r.pod.name,
			&corev1.PodLogOptions{Container: container, LimitBytes: &most}).DoRaw(f.e.ctx)
	})
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "the cluster has no logs of subjob %v: %w", token, err)
	}
	return []io.ReadSeekCloser{log{bytes.NewReader(data)}}, nil
}

// log is a log that was read whole.
type log struct{ *bytes.Reader }

func (log) Close() error { return nil }

// LogsSince is now: no logs of ended subjobs are kept.
func (f *Files) LogsSince() time.Time { return f.e.o.Clock() }

// Outputs lists a job's committed outputs, with paths store://DIGEST.
func (f *Files) Outputs(name job.ID) (list []status.Output, err error) {
	err = f.e.o.Store.Names(f.e.ctx, f.e.shelf.own().outputs(name), func(n store.Named) error {
		r, t, ok := parseOutput(n.Name)
		d := n.Refs[outputRole]
		if !ok || d == "" {
			return nil
		}
		o, failed := f.e.o.Store.Stat(f.e.ctx, d)
		if failed != nil {
			return failed
		}
		list = append(list, status.Output{Token: t, Range: r, Path: store.Scheme + string(d), Bytes: o.Size})
		return nil
	})
	return list, err
}

// Stored calls each for every job that has any files, possibly several times for one. It stops at the first error.
func (f *Files) Stored(each func(job.ID) error) error {
	for _, root := range []string{"jobs/", "outputs/"} {
		root += string(f.e.shelf.own())
		err := f.e.o.Store.Names(f.e.ctx, root, func(n store.Named) error {
			word, _, _ := strings.Cut(strings.TrimPrefix(n.Name, root+"/"), "/")
			if j, ok := store.JobOf(word); ok {
				return each(j)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// PruneWorkdirs removes work directories that keep says are not needed, and unnamed objects. Those younger than an hour stay, since their
// job may be about to be accepted.
func (f *Files) PruneWorkdirs(keep func(id string) bool) error {
	e := f.e
	now, err := e.o.Store.Now(e.ctx)
	if err != nil {
		return err
	}
	var old []string
	err = e.o.Store.Names(e.ctx, e.shelf.own().work(""), func(n store.Named) error {
		if !keep(string(n.Refs[workRole])) && now.Sub(n.Changed) > time.Hour {
			old = append(old, n.Name)
		}
		return nil
	})
	for _, name := range old {
		err = errors.Join(err, f.forgo(name, now))
	}
	if err == nil {
		_, err = store.Collect(e.ctx, e.o.Store, store.LeastAge, false)
	}
	return err
}

// forgo removes a work directory's name, unless it was named again just now.
func (f *Files) forgo(name string, now time.Time) error {
	f.e.shelf.naming.Lock()
	defer f.e.shelf.naming.Unlock()
	n, err := f.e.o.Store.ReadName(f.e.ctx, name)
	if errkind.Of(err) == errkind.NotFound || err == nil && now.Sub(n.Changed) <= time.Hour {
		return nil
	}
	if err != nil {
		return err
	}
	return f.e.o.Store.Unname(f.e.ctx, name)
}

// PruneUnpacked does nothing: what a Pod unpacks is removed with it.
func (f *Files) PruneUnpacked(func(id string) bool) error { return nil }
