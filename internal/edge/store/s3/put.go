package s3

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // what S3 calls a part's ETag
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// mostParts is a little below what S3 takes (10,000).
const mostParts = 9_000

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, want store.Digest, src store.Source) (o store.Object, err error) {
	if want == "" {
		if want, err = store.Sum(ctx, src); err != nil {
			return o, err
		}
	}
	if err = s.Renew(ctx, want); err == nil {
		return s.Stat(ctx, want)
	}
	if errkind.Of(err) != errkind.NotFound {
		return o, err
	}
	key := s.key(objects, string(want))
	if src.Size() <= s.o.PartSize {
		data := make([]byte, 0, src.Size())
		b := bytes.NewBuffer(data)
		if err = store.Copy(ctx, b, src, 0, src.Size()); err != nil {
			return o, err
		}
		if got := sha256.Sum256(b.Bytes()); hex.EncodeToString(got[:]) != string(want) {
			return o, store.Mismatch(want, store.Digest(hex.EncodeToString(got[:])))
		}
		err = s.write(ctx, key, b.Bytes())
	} else {
		err = s.putParts(ctx, key, want, src)
	}
	if err != nil {
		return o, err
	}
	return s.Stat(ctx, want)
}

// upload is one multipart upload.
type upload struct {
	s    *Store
	key  string
	id   string
	part int64
	// there are the parts that the server has, by number.
	there map[int]minio.ObjectPart

	mu    sync.Mutex
	done  []minio.CompletePart
	first error
}

// together is how often an upload is begun anew that another writer of the same object has ended, or that left no object.
const together = 5

// putParts uploads in parts, or what is missing of those of an earlier upload of the same object. Others may be at the same upload: the
// first completes it, and then the object is there for all.
func (s *Store) putParts(ctx context.Context, key string, want store.Digest, src store.Source) (err error) {
	for range together {
		if err = s.putOnce(ctx, key, want, src); err == nil {
			return nil
		}
		if _, failed := s.changed(ctx, want); failed == nil {
			return nil // another was faster, or only the answer was lost
		}
		if code := codeOf(err); code != "NoSuchUpload" && code != "InvalidPart" && !errors.Is(err, errUnseen) {
			break
		}
	}
	return s.explain("upload", err)
}

// errUnseen is of an upload that the server called complete, and no object came of it.
var errUnseen = errkind.Errorf(errkind.Unavailable, "the server called the upload complete, but has no such object: try again")

// slowest is how many bytes a second a server puts together at least from parts, grace what it may take besides.
const (
	slowest = 100 << 20
	grace   = 10 * time.Second
)

// appears waits until an object of a completed upload is there. A server over a file system answers who completes an upload as the second
// while it still works for the first (versitygw v1.8.0), and may yet fail.
func (s *Store) appears(ctx context.Context, want store.Digest, size int64) error {
	patience, cancel := context.WithTimeout(ctx, grace+time.Duration(size/slowest)*time.Second)
	defer cancel()
	for {
		_, err := s.changed(ctx, want)
		if errkind.Of(err) != errkind.NotFound {
			return err
		}
		select {
		case <-time.After(look):
		case <-patience.Done():
			return errors.Join(errUnseen, ctx.Err())
		}
	}
}

// putOnce does one upload. It is completed only when all bytes had the digest.
func (s *Store) putOnce(ctx context.Context, key string, want store.Digest, src store.Source) error {
	u := &upload{s: s, key: key, part: s.partSize(src.Size()), there: map[int]minio.ObjectPart{}}
	if err := u.begin(ctx); err != nil {
		return err
	}
	got, err := u.send(ctx, src)
	if err != nil {
		// some servers hang up on who sends to an upload that is over
		if _, ended := s.core.ListObjectParts(ctx, s.o.Bucket, key, u.id, 0, 1); gone(ended) {
			return ended
		}
		return err
	}
	if got != want {
		return errors.Join(store.Mismatch(want, got),
			s.explain("give up an upload", s.core.AbortMultipartUpload(ctx, s.o.Bucket, key, u.id)))
	}
	_, err = s.core.CompleteMultipartUpload(ctx, s.o.Bucket, key, u.id, u.done, minio.PutObjectOptions{})
	if codeOf(err) == "InvalidPart" { // somebody else has sent others under the same digest: they, or we, are wrong
		err = errors.Join(err, s.core.AbortMultipartUpload(ctx, s.o.Bucket, key, u.id))
	}
	if err == nil {
		err = s.appears(ctx, want, src.Size())
	}
	return err
}

// partSize is the least that an object of a size can be sent in.
func (s *Store) partSize(size int64) int64 {
	part := s.o.PartSize
	for part*mostParts < size {
		part *= 2
	}
	return part
}

// begin looks for an upload of the same object that broke off, the youngest, or begins one.
func (u *upload) begin(ctx context.Context) error {
	var youngest time.Time
	for m := range u.s.uploads(ctx, u.key) {
		if m.Err != nil {
			return m.Err
		}
		if m.Key == u.key && m.Initiated.After(youngest) {
			u.id, youngest = m.UploadID, m.Initiated
		}
	}
	if u.id == "" {
		var err error
		u.id, err = u.s.core.NewMultipartUpload(ctx, u.s.o.Bucket, u.key, minio.PutObjectOptions{})
		return err
	}
	for marker := 0; ; {
		list, err := u.s.core.ListObjectParts(ctx, u.s.o.Bucket, u.key, u.id, marker, 1000)
		if err != nil {
			return err
		}
		for _, p := range list.ObjectParts {
			u.there[p.PartNumber] = p
		}
		if marker = list.NextPartNumberMarker; !list.IsTruncated {
			return nil
		}
	}
}

// send reads all of the source and sends what the server does not have. It returns the digest of all bytes.
func (u *upload) send(ctx context.Context, src store.Source) (store.Digest, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	h := sha256.New()
	room := make(chan []byte, u.s.o.AtOnce)
	for range u.s.o.AtOnce {
		room <- nil
	}
	var group sync.WaitGroup
	var failed error
	parts := int((src.Size() + u.part - 1) / u.part)
	u.done = make([]minio.CompletePart, parts)
	for i := range parts {
		buf := <-room
		if failed = u.failure(); failed != nil {
			break
		}
		if buf == nil {
			buf = make([]byte, 0, u.part)
		}
		b := bytes.NewBuffer(buf[:0])
		from := int64(i) * u.part
		if failed = store.Copy(ctx, b, src, from, min(src.Size(), from+u.part)); failed != nil {
			break
		}
		data := b.Bytes()
		h.Write(data)
		group.Go(func() {
			if err := u.sendOne(ctx, i, data); err != nil {
				u.fail(err)
				cancel()
			}
			room <- data
		})
	}
	group.Wait() // what can be read was sent, so that the next attempt need not
	if failed == nil || errors.Is(failed, context.Canceled) && u.failure() != nil {
		failed = u.failure()
	}
	return store.DigestOf(h), failed
}

func (u *upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.first
}

func (u *upload) fail(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.first == nil {
		u.first = err
	}
}

func (u *upload) sendOne(ctx context.Context, i int, data []byte) error {
	md := md5.Sum(data) //nolint:gosec // as above
	etag := hex.EncodeToString(md[:])
	if p, ok := u.there[i+1]; !ok || p.Size != int64(len(data)) || trimmed(p.ETag) != etag {
		sum := sha256.Sum256(data)
		sent, err := u.s.core.PutObjectPart(ctx, u.s.o.Bucket, u.key, u.id, i+1, bytes.NewReader(data), int64(len(data)),
			minio.PutObjectPartOptions{Md5Base64: base64.StdEncoding.EncodeToString(md[:]), Sha256Hex: hex.EncodeToString(sum[:])})
		if err != nil {
			return err
		}
		etag = trimmed(sent.ETag)
	}
	u.done[i] = minio.CompletePart{PartNumber: i + 1, ETag: etag} // each goroutine has an element of its own
	return nil
}

// trimmed is an ETag without the quotes that some servers leave.
func trimmed(etag string) string {
	if len(etag) > 1 && etag[0] == '"' {
		return etag[1 : len(etag)-1]
	}
	return etag
}

// uploads are the multipart uploads under way below a key.
func (s *Store) uploads(ctx context.Context, prefix string) <-chan minio.ObjectMultipartInfo {
	return s.core.ListIncompleteUploads(ctx, s.o.Bucket, prefix, true)
}

// Sweep implements store.Store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (n int, failed error) {
	for m := range s.uploads(ctx, s.key(objects)) {
		if m.Err != nil {
			return n, s.explain("list uploads", m.Err)
		}
		last, err := s.lastPart(ctx, m)
		if gone(err) || err == nil && !last.Before(before) {
			continue
		}
		if err == nil {
			err = s.core.AbortMultipartUpload(ctx, s.o.Bucket, m.Key, m.UploadID)
		}
		if err != nil && !gone(err) {
			return n, s.explain("give up an upload", err)
		}
		n++
	}
	err := s.list(ctx, incoming, func(_ string, o *minio.ObjectInfo) error {
		if !o.LastModified.Before(before.Add(-store.Unadopted)) {
			return nil
		}
		n++
		return s.drop(ctx, o.Key)
	})
	return n, err
}

// lastPart is when an upload last received a part.
func (s *Store) lastPart(ctx context.Context, m minio.ObjectMultipartInfo) (time.Time, error) {
	last := m.Initiated
	for marker := 0; ; {
		list, err := s.core.ListObjectParts(ctx, s.o.Bucket, m.Key, m.UploadID, marker, 1000)
		if err != nil {
			return last, err
		}
		for _, p := range list.ObjectParts {
			if p.LastModified.After(last) {
				last = p.LastModified
			}
		}
		if marker = list.NextPartNumberMarker; !list.IsTruncated {
			return last, nil
		}
	}
}
