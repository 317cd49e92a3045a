// Package faults classifies errors as the node's, its store's, or a subjob's own.
package faults

import (
	"errors"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// Store is an error of the store, of whatever kind: the operation is tried again until it succeeds.
type Store struct{ error }

func (s Store) Unwrap() error { return s.error }

// OfStore marks an error of the store.
func OfStore(err error) error {
	if err == nil {
		return nil
	}
	return Store{err}
}

// Unstorable is the error that a subjob's output can't be stored, now or later.
type Unstorable struct{ error }

// OfSubjob marks an error of reading a subjob's output, unless it is the node's.
func OfSubjob(err error) error {
	if ofKernel(err) {
		return err
	}
	return Unstorable{err}
}

// ofKernel reports whether an error of the kernel is the node's.
func ofKernel(err error) bool {
	for _, e := range []error{
		unix.ENOSPC, unix.EDQUOT, unix.EMFILE, unix.ENFILE, unix.EIO, unix.EROFS, unix.ENOMEM, unix.EAGAIN, // EAGAIN: no more processes
	} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// OfNode reports whether an error is the node's, or its store's.
func OfNode(err error) bool {
	return ofKernel(err) || errors.As(err, new(Store)) || errkind.Of(err) == errkind.Unavailable
}
