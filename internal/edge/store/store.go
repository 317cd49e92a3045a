// Package store is the contract of where work directories, outputs and checkpoints lie once they leave a machine: whole objects,
// each under the digest of its bytes, and names that say which of them are needed. Kinds live in folders below; every kind passes
// storetest. A store must not know what a job is.
//
// An object is there or it is not: what an upload has left half done is never seen, and what is read was checked against its digest
// by the time the reader says io.EOF. Uploads that broke off go on where they were. What no name names is garbage; Collect
// removes it, safely beside uploads (see Renew).
package store

import (
	"context"
	"fmt"
	"io"
	"time"
)

// Object is a stored object.
type Object struct {
	Digest Digest
	// Size in bytes.
	Size int64
	// Changed is when it was put or renewed last, by the store's own clock; whole seconds where the store has no finer ones.
	Changed time.Time
}

// Store keeps objects and names. Its methods are safe for concurrent use, also by several processes, and on several machines
// where the kind is for several.
//
// Errors are of kind NotFound (no such object or name), Invalid (a digest that the bytes do not have, a name that is none), Corrupt (what
// is stored does not have its digest), Exhausted (full), Denied (no permission), Conflict (the source changed while it was read),
// Unavailable (not to be reached now; the call may be repeated as it was). Where the operating system said why, errors.Is finds that.
type Store interface {
	// Put stores src durably before it returns. want is the digest that src must have; if it is empty the kind finds it out. An object
	// that is there already is renewed instead. A Put that is repeated under the same want goes on where the last one ended.
	Put(ctx context.Context, want Digest, src Source) (Object, error)
	// Open reads an object. Its Read says io.EOF only if all bytes together had the digest, else an error of kind Corrupt.
	Open(ctx context.Context, d Digest) (io.ReadCloser, error)
	Stat(ctx context.Context, d Digest) (Object, error)
	// Renew makes an object young, so that it is not removed before it is named. When it returns nil, no Remove that was asked for what is
	// older than this call will remove it. NotFound: put it.
	Renew(ctx context.Context, d Digest) error
	// Remove removes an object that was neither put nor renewed since before, and says whether it did. One that is not there is no error.
	Remove(ctx context.Context, d Digest, before time.Time) (bool, error)
	// List calls each for all objects, in no order; each may call Remove. It stops at the first error.
	List(ctx context.Context, each func(Object) error) error
	// SetName replaces what a name stands for, durably and whole. Use Name, which keeps what is named from being removed meanwhile.
	SetName(ctx context.Context, name string, refs Refs) error
	ReadName(ctx context.Context, name string) (Named, error)
	// Names calls each for the names in a folder and the folders below it, all if it is empty, in no order. It stops at the first error.
	Names(ctx context.Context, folder string, each func(Named) error) error
	// Unname removes a name. One that is not there is no error.
	Unname(ctx context.Context, name string) error
	// Sweep removes the rest of uploads without activity since before, and what was written to places Unadopted ahead of before or earlier,
	// and reports how much it found.
	Sweep(ctx context.Context, before time.Time) (int, error)
	// Now is the store's own clock, which Changed uses.
	Now(ctx context.Context) (time.Time, error)
	// String is the store for people: what `sluice store --store` takes.
	String() string
	Close() error
}

// MaxLent is the largest object that can be written by one URL, in bytes: S3 takes no more in one request.
const MaxLent = 5 << 30

// Lender is a store that can let others, who hold none of its keys, read or write one object each for a while.
type Lender interface {
	Store
	// LendGet is a URL by which an object can be read (GET, Range too) until it expires.
	LendGet(ctx context.Context, d Digest, expires time.Duration) (string, error)
	// LendPut is a URL by which one object can be written (PUT) to a place of its own, named place, until it expires. What is written there
	// is no object before Adopt has checked it.
	LendPut(ctx context.Context, place string, expires time.Duration) (string, error)
	// LendRead is a URL by which what lies at a place can be read (GET), whatever that is then, until it expires.
	LendRead(ctx context.Context, place string, expires time.Duration) (string, error)
	// Write replaces what lies at a place, whole. It is for small words to those who may read them.
	Write(ctx context.Context, place string, data []byte) error
	// Peek reads what lies at a place now, for what nothing that counts hangs on: nobody vouches for it. NotFound: nothing was written
	// there, Exhausted: it is longer than most bytes.
	Peek(ctx context.Context, place string, most int64) ([]byte, error)
	// Written is how many bytes lie at a place now. NotFound: nothing was written there.
	Written(ctx context.Context, place string) (int64, error)
	// Adopt makes what lies at a place an object, if it has that digest, and clears the place. It may be repeated. Invalid: it has another
	// one.
	Adopt(ctx context.Context, place string, want Digest) (Object, error)
	// Drop clears a place.
	Drop(ctx context.Context, place string) error
}

// Name makes a name refer to objects that are there, instead of those before. NotFound: one of them is not there; nothing was changed.
func Name(ctx context.Context, s Store, name string, refs Refs) error {
	if err := CheckName(name); err != nil {
		return err
	}
	if err := refs.check(); err != nil {
		return err
	}
	for role, d := range refs { // young first, so that nobody removes them before they are named
		if err := s.Renew(ctx, d); err != nil {
			return fmt.Errorf("name %s, %s: %w", name, role, err)
		}
	}
	return s.SetName(ctx, name, refs)
}
