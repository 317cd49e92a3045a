// Package faults says whose an error is: the node's, its store's, or a subjob's own.
package faults

import (
	"errors"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// Store is that the store can't take or give something now, whatever is wrong with it: it is tried again until it can.
type Store struct{ error }

func (s Store) Unwrap() error { return s.error }

// OfStore marks an error of the store.
func OfStore(err error) error {
	if err == nil {
		return nil
	}
	return Store{err}
}

// Unstorable is that what a subjob has left can't be stored, and will not be the next time.
type Unstorable struct{ error }

// OfSubjob marks an error of reading what a subjob has left, unless it is the node's.
func OfSubjob(err error) error {
	if ofKernel(err) {
		return err
	}
	return Unstorable{err}
}

// ofKernel says whether an error of the kernel is a node's trouble.
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

// OfNode says whether an error is the node's trouble, or its store's.
func OfNode(err error) bool {
	return ofKernel(err) || errors.As(err, new(Store)) || errkind.Of(err) == errkind.Unavailable
}
