package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	"github.com/minio/minio-go/v7"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// mostExpires is the longest that S3 lets a URL live, leastExpires the shortest.
const (
	leastExpires = time.Second
	mostExpires  = 7 * 24 * time.Hour
)

func checkExpires(d time.Duration) error {
	if d < leastExpires || d > mostExpires {
		return errkind.Errorf(errkind.Invalid, "a URL that expires after %s: want %s to %s", d, leastExpires, mostExpires)
	}
	return nil
}

// LendGet implements store.Lender.
func (s *Store) LendGet(ctx context.Context, d store.Digest, expires time.Duration) (string, error) {
	if err := errors.Join(d.Check(), checkExpires(expires)); err != nil {
		return "", err
	}
	u, err := s.core.PresignedGetObject(ctx, s.o.Bucket, s.key(objects, string(d)), expires, nil)
	if err != nil {
		return "", s.explain("lend an object", err)
	}
	return u.String(), nil
}

// LendPut implements store.Lender.
func (s *Store) LendPut(ctx context.Context, place string, expires time.Duration) (string, error) {
	if err := errors.Join(store.CheckName(place), checkExpires(expires)); err != nil {
		return "", err
	}
	u, err := s.core.PresignedPutObject(ctx, s.o.Bucket, s.key(incoming, place), expires)
	if err != nil {
		return "", s.explain("lend a place", err)
	}
	return u.String(), nil
}

// LendRead implements store.Lender.
func (s *Store) LendRead(ctx context.Context, place string, expires time.Duration) (string, error) {
	if err := errors.Join(store.CheckName(place), checkExpires(expires)); err != nil {
		return "", err
	}
	u, err := s.core.PresignedGetObject(ctx, s.o.Bucket, s.key(incoming, place), expires, nil)
	if err != nil {
		return "", s.explain("lend a place", err)
	}
	return u.String(), nil
}

// Write implements store.Lender.
func (s *Store) Write(ctx context.Context, place string, data []byte) error {
	if err := store.CheckName(place); err != nil {
		return err
	}
	_, err := s.core.Client.PutObject(ctx, s.o.Bucket, s.key(incoming, place), bytes.NewReader(data), int64(len(data)),
		minio.PutObjectOptions{})
	return s.explain("write to a place", err)
}

// Peek implements store.Lender.
func (s *Store) Peek(ctx context.Context, place string, most int64) ([]byte, error) {
	if err := store.CheckName(place); err != nil {
		return nil, err
	}
	body, _, _, err := s.core.GetObject(ctx, s.o.Bucket, s.key(incoming, place), minio.GetObjectOptions{})
	if gone(err) {
		return nil, errkind.Errorf(errkind.NotFound, "store %s: nothing was written to %s", s, place)
	}
	if err != nil {
		return nil, s.explain("read what was written", err)
	}
	data, err := io.ReadAll(io.LimitReader(body, most+1))
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, s.explain("read what was written", err)
	}
	if int64(len(data)) > most {
		return nil, errkind.Errorf(errkind.Exhausted, "store %s: what was written to %s is longer than %d bytes", s, place, most)
	}
	return data, nil
}

// Written implements store.Lender.
func (s *Store) Written(ctx context.Context, place string) (int64, error) {
	if err := store.CheckName(place); err != nil {
		return 0, err
	}
	o, err := s.core.StatObject(ctx, s.o.Bucket, s.key(incoming, place), minio.StatObjectOptions{})
	if gone(err) {
		return 0, errkind.Errorf(errkind.NotFound, "store %s: nothing was written to %s", s, place)
	}
	if err != nil {
		return 0, s.explain("look at what was written", err)
	}
	return o.Size, nil
}

// Adopt implements store.Lender. The holder of the URL may write there again at any time: what is copied is the version that was read.
func (s *Store) Adopt(ctx context.Context, place string, want store.Digest) (o store.Object, err error) {
	if err = errors.Join(store.CheckName(place), want.Check()); err != nil {
		return o, err
	}
	from := s.key(incoming, place)
	err = s.Renew(ctx, want)
	if errkind.Of(err) == errkind.NotFound {
		err = s.adopt(ctx, from, want)
	}
	if err == nil {
		err = s.drop(ctx, from)
	}
	if err != nil {
		return o, err
	}
	return s.Stat(ctx, want)
}

func (s *Store) adopt(ctx context.Context, from string, want store.Digest) error {
	r := &reader{s: s, ctx: ctx, key: from}
	if err := r.open(); err != nil {
		if gone(err) {
			return errkind.Errorf(errkind.NotFound, "store %s: nothing was written to %s", s, from)
		}
		return s.explain("read what was written", err)
	}
	h := sha256.New()
	_, err := io.Copy(h, r)
	if err = errors.Join(err, r.Close()); err != nil {
		return s.explain("read what was written", err)
	}
	if got := store.DigestOf(h); got != want {
		return store.Mismatch(want, got)
	}
	_, err = s.core.Client.CopyObject(ctx, minio.CopyDestOptions{Bucket: s.o.Bucket, Object: s.key(objects, string(want))},
		minio.CopySrcOptions{Bucket: s.o.Bucket, Object: from, MatchETag: r.etag})
	if codeOf(err) == "PreconditionFailed" {
		return errkind.Errorf(errkind.Conflict, "store %s: %s was written once more while it was read: adopt it again", s, from)
	}
	return s.explain("adopt what was written", err)
}

// Drop implements store.Lender.
func (s *Store) Drop(ctx context.Context, place string) error {
	if err := store.CheckName(place); err != nil {
		return err
	}
	return s.drop(ctx, s.key(incoming, place))
}
