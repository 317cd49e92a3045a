package s3

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// changed returns an object whose Changed is when it was last renewed, or written if it was not renewed since.
func (s *Store) changed(ctx context.Context, d store.Digest) (o store.Object, err error) {
	if err = d.Check(); err != nil {
		return o, err
	}
	info, err := s.head(ctx, s.key(objects, string(d)))
	if gone(err) {
		return o, store.Missing(d, s.String())
	}
	if err != nil {
		return o, err
	}
	o = store.Object{Digest: d, Size: info.Size, Changed: info.LastModified}
	mark, err := s.head(ctx, s.key(renewed, string(d)))
	if err == nil && mark.LastModified.After(o.Changed) {
		o.Changed = mark.LastModified
	}
	if gone(err) {
		err = nil
	}
	return o, err
}

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, d store.Digest) (store.Object, error) {
	return s.changed(ctx, d)
}

const (
	// young objects need no renewal: they stay for three quarters of an hour anyway.
	young = store.LeastAge / 4
	// hurry is how long a removal may take from its word to its deed, stale when a word without a deed is that of somebody who died.
	hurry = 20 * time.Second
	stale = time.Minute
	// look is how often a removal that is under way is looked at.
	look = 100 * time.Millisecond
)

// Renew implements store.Store. The word that an object is wanted is there before it is looked whether somebody removes it, and in Remove
// it is the other way round: one of the two sees the other.
func (s *Store) Renew(ctx context.Context, d store.Digest) error {
	o, err := s.changed(ctx, d)
	if err != nil && errkind.Of(err) != errkind.NotFound {
		return err
	}
	missing := err != nil
	var now time.Time
	if !missing {
		key := s.key(renewed, string(d))
		if now, err = s.Now(ctx); err != nil {
			return err
		}
		if now.Sub(o.Changed) < young {
			return nil
		}
		if err = s.write(ctx, key, []byte("wanted\n")); err != nil {
			return err
		}
	}
	for { // nobody who had begun to remove it may still do it
		first, since, failed := s.underRemoval(ctx, d)
		if failed != nil {
			return failed
		}
		if first == "" {
			break
		}
		if now, err = s.Now(ctx); err != nil {
			return err
		}
		if now.Sub(since) > stale {
			if err = s.drop(ctx, first); err != nil {
				return err
			}
			continue
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return s.explain("wait for a removal", ctx.Err())
		}
	}
	if missing {
		return store.Missing(d, s.String())
	}
	_, err = s.changed(ctx, d)
	if errkind.Of(err) == errkind.NotFound {
		err = errors.Join(err, s.drop(ctx, s.key(renewed, string(d))))
	}
	return err
}

// underRemoval is the word of a process that is about to remove an object, with its time; empty: nobody is.
func (s *Store) underRemoval(ctx context.Context, d store.Digest) (key string, since time.Time, err error) {
	err = s.list(ctx, removing+string(d)+"/", func(_ string, o *minio.ObjectInfo) error {
		key, since = o.Key, o.LastModified
		return nil
	})
	return key, since, err
}

// Remove implements store.Store.
func (s *Store) Remove(ctx context.Context, d store.Digest, before time.Time) (removed bool, failed error) {
	old := func() (bool, error) {
		o, err := s.changed(ctx, d)
		if errkind.Of(err) == errkind.NotFound {
			return false, nil
		}
		return err == nil && o.Changed.Before(before), err
	}
	if is, err := old(); !is || err != nil {
		return false, err
	}
	word := s.key(removing, string(d), "/", rand.Text())
	began := time.Now()
	if err := s.write(ctx, word, []byte("removing\n")); err != nil {
		return false, err
	}
	defer func() { failed = errors.Join(failed, s.drop(context.WithoutCancel(ctx), word)) }() // else the next upload waits for this one
	is, err := old()
	if !is || err != nil || time.Since(began) > hurry {
		return false, err
	}
	deed, cancel := context.WithDeadline(ctx, began.Add(hurry))
	defer cancel()
	if err = s.drop(deed, s.key(objects, string(d))); err != nil {
		return false, err
	}
	return true, s.drop(deed, s.key(renewed, string(d)))
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, each func(store.Object) error) error {
	marks := map[store.Digest]time.Time{}
	err := s.list(ctx, renewed, func(rest string, o *minio.ObjectInfo) error {
		marks[store.Digest(rest)] = o.LastModified
		return nil
	})
	if err != nil {
		return err
	}
	return s.list(ctx, objects, func(rest string, o *minio.ObjectInfo) error {
		d := store.Digest(rest)
		if d.Check() != nil {
			return nil // not ours
		}
		at := o.LastModified
		if m := marks[d]; m.After(at) {
			at = m
		}
		return each(store.Object{Digest: d, Size: o.Size, Changed: at})
	})
}

// Open implements store.Store. A stream that breaks off goes on where it was.
func (s *Store) Open(ctx context.Context, d store.Digest) (io.ReadCloser, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	r := &reader{s: s, ctx: ctx, key: s.key(objects, string(d))}
	if err := r.open(); err != nil {
		if gone(err) {
			err = store.Missing(d, s.String())
		}
		return nil, s.explain("read an object", err)
	}
	return store.Verified(r, d, s.String()), nil
}

// reader reads what lies under a key, and opens it again where it was when the connection breaks.
type reader struct {
	s    *Store
	ctx  context.Context //nolint:containedctx // a Read has none
	key  string
	etag string
	body io.ReadCloser
	at   int64
	size int64
	// breaks counts those since the last byte came.
	breaks int
}

const mostBreaks = 5

func (r *reader) open() error {
	o := minio.GetObjectOptions{}
	if r.at > 0 {
		if err := errors.Join(o.SetRange(r.at, 0), o.SetMatchETag(r.etag)); err != nil {
			return err
		}
	}
	body, info, _, err := r.s.core.GetObject(r.ctx, r.s.o.Bucket, r.key, o)
	if err != nil {
		return err
	}
	if r.at == 0 {
		r.size, r.etag = info.Size, info.ETag
	}
	r.body = body
	return nil
}

func (r *reader) Read(p []byte) (int, error) {
	for {
		var err error
		if r.body == nil {
			err = r.open()
		}
		if err == nil {
			var n int
			n, err = r.body.Read(p)
			r.at += int64(n)
			if n > 0 {
				r.breaks = 0
				return n, nil
			}
			if err == nil {
				continue
			}
			if errors.Is(err, io.EOF) && r.at >= r.size {
				return 0, io.EOF
			}
			_ = r.body.Close() // it is broken
			r.body = nil
		}
		if r.breaks++; r.breaks > mostBreaks || r.ctx.Err() != nil {
			return 0, r.s.explain("read "+r.key, errors.Join(err, io.ErrUnexpectedEOF))
		}
		select {
		case <-time.After(look << r.breaks):
		case <-r.ctx.Done():
		}
	}
}

func (r *reader) Close() error {
	if r.body == nil {
		return nil
	}
	return r.body.Close()
}

const suffix = ".json"

// SetName implements store.Store.
func (s *Store) SetName(ctx context.Context, name string, refs store.Refs) error {
	data, err := refs.Encode()
	if err == nil {
		err = store.CheckName(name)
	}
	if err != nil {
		return err
	}
	return s.write(ctx, s.key(names, name, suffix), data)
}

// ReadName implements store.Store.
func (s *Store) ReadName(ctx context.Context, name string) (n store.Named, err error) {
	if err = store.CheckName(name); err != nil {
		return n, err
	}
	body, info, _, err := s.core.GetObject(ctx, s.o.Bucket, s.key(names, name, suffix), minio.GetObjectOptions{})
	if gone(err) {
		return n, store.NoName(name, s.String())
	}
	if err != nil {
		return n, s.explain("read the name "+name, err)
	}
	data, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return n, s.explain("read the name "+name, err)
	}
	n = store.Named{Name: name, Changed: info.LastModified}
	n.Refs, err = store.DecodeRefs(name, data)
	return n, err
}

// Names implements store.Store.
func (s *Store) Names(ctx context.Context, folder string, each func(store.Named) error) error {
	prefix := names
	if folder != "" {
		if err := store.CheckName(folder); err != nil {
			return err
		}
		prefix += folder + "/"
	}
	return s.list(ctx, prefix, func(rest string, _ *minio.ObjectInfo) error {
		name, ok := strings.CutSuffix(strings.TrimPrefix(prefix, names)+rest, suffix)
		if !ok || store.CheckName(name) != nil {
			return nil
		}
		n, err := s.ReadName(ctx, name)
		if errkind.Of(err) == errkind.NotFound {
			return nil // just removed
		}
		if err != nil {
			return err
		}
		return each(n)
	})
}

// Unname implements store.Store.
func (s *Store) Unname(ctx context.Context, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	return s.drop(ctx, s.key(names, name, suffix))
}
