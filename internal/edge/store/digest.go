package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
)

// Digest names an object: the SHA-256 of its bytes in lower-case hex, 64 characters.
type Digest string

// Scheme is how a digest is written where it stands beside paths: store://DIGEST.
const Scheme = "store://"

// ParseDigest reads a digest, with or without Scheme. Errors are of kind Invalid.
func ParseDigest(text string) (Digest, error) {
	d := Digest(strings.TrimPrefix(text, Scheme))
	return d, d.Check()
}

// Check says what is wrong with a digest that somebody has written.
func (d Digest) Check() error {
	raw, err := hex.DecodeString(string(d))
	if err != nil || len(raw) != sha256.Size || strings.ToLower(string(d)) != string(d) {
		return errkind.Errorf(errkind.Invalid, "%.80q is no digest: want 64 of 0-9 and a-f, as `sluice store put` prints them", string(d))
	}
	return nil
}

// DigestOf is the digest of what was written to a hash.
func DigestOf(h hash.Hash) Digest { return Digest(hex.EncodeToString(h.Sum(nil))) }

// Sum reads all of a source and returns its digest.
func Sum(ctx context.Context, src Source) (Digest, error) {
	h := sha256.New()
	if err := Copy(ctx, h, src, 0, src.Size()); err != nil {
		return "", err
	}
	return DigestOf(h), nil
}

// chunk is how much is read at once, in bytes.
const chunk = 1 << 20

// Copy writes the bytes [from, to) of a source, a piece at a time so that ctx ends it. A source that is shorter is of kind Conflict.
func Copy(ctx context.Context, into io.Writer, src io.ReaderAt, from, to int64) error {
	buf := make([]byte, min(chunk, max(0, to-from)))
	for at := from; at < to; {
		if err := ctx.Err(); err != nil {
			return errkind.Errorf(errkind.Unavailable, "stopped at byte %d of %d: %w", at, to, err)
		}
		n, err := src.ReadAt(buf[:min(int64(len(buf)), to-at)], at)
		if n > 0 {
			if _, werr := into.Write(buf[:n]); werr != nil {
				return werr
			}
			at += int64(n)
		}
		switch {
		case at == to, n > 0 && err == nil:
		case err == nil || errors.Is(err, io.EOF):
			return errkind.Errorf(errkind.Conflict, "it ended at byte %d of %d: it was changed while it was read", at, to)
		default:
			return err
		}
	}
	return nil
}

// Verified reads an object and holds its bytes against its digest: it says io.EOF only if they have it. where is for the message.
func Verified(r io.ReadCloser, d Digest, where string) io.ReadCloser {
	return &verified{r: r, h: sha256.New(), want: d, where: where}
}

type verified struct {
	r     io.ReadCloser
	h     hash.Hash
	want  Digest
	where string
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.h.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if got := DigestOf(v.h); got != v.want {
			return 0, errkind.Errorf(errkind.Corrupt, "object %s in %s is damaged, its bytes have the digest %s: `sluice store rm "+
				"--object %s` removes it; put it again from where it came from", v.want, v.where, got, v.want)
		}
	}
	return n, err
}

func (v *verified) Close() error { return v.r.Close() }

// Mismatch is the error of a put whose bytes do not have the declared digest.
func Mismatch(want, got Digest) error {
	return errkind.Errorf(errkind.Invalid, "the bytes have the digest %s and not %s: nothing was stored; put what that is the digest of",
		got, want)
}

// Missing is the error of an object that is not there.
func Missing(d Digest, where string) error {
	return errkind.Errorf(errkind.NotFound, "there is no object %s in %s: put it there, or name one of `sluice store ls`", d, where)
}

// Source is what is put: Size bytes that can be read again, so that an upload can go on where it broke off and be checked from its
// beginning. ReadAt gives the same bytes each time, or an error.
type Source interface {
	io.ReaderAt
	Size() int64
}
