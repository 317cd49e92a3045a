// Package volume reads how much room a file system has, and holds a reserve file on it. It must not know what is stored there.
package volume

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"sluice.dev/sluice/internal/core/quantity"
)

// Least is the least number of free bytes with which a file system does not count as full: enough for a result, or for a start without a
// work directory.
const Least = 64 << 10

// Ample is how many bytes of a file system of this size must be free for it not to be short of room: 256 MiB, or a twentieth if that is
// less.
func Ample(size int64) int64 { return min(256<<20, size/20) }

// Limit is what bounds how much can be written to a file system.
type Limit int

const (
	// Whole is the size of the file system itself.
	Whole Limit = iota
	// UserQuota is how much one user may have there, and the kernel says how much of it is left.
	UserQuota
	// GroupQuota is the same of a group.
	GroupQuota
	// HiddenQuota is a quota that is known only by the writes that it refuses, as over NFS or on btrfs.
	HiddenQuota
)

// State is what a file system says of itself, or of a quota. It is a hint: one that compresses or shares blocks may take more, and what is
// left of a hidden quota nobody says.
type State struct {
	// Limit that the rest is about; ID is the user or group of a quota. A quota has no Kept, and of a hidden one nothing is known.
	Limit Limit
	ID    uint32

	// Size in bytes; 0: it does not count them. Free bytes are left for every user, Kept bytes besides for root alone.
	Size, Free, Kept int64
	// Files is how many it can hold; 0: it does not count them. FreeFiles is how many more.
	Files, FreeFiles int64
}

// Left is how many bytes are free to root, or to anybody else.
func (s State) Left(root bool) int64 {
	if root {
		return s.Free + s.Kept
	}
	return s.Free
}

// Full says whether there is no room for a small file more.
func (s State) Full(root bool) bool { return s.bytesFull(root) || s.Files > 0 && s.FreeFiles == 0 }

// OutOfFiles says whether it is full for want of files alone.
func (s State) OutOfFiles(root bool) bool { return s.Full(root) && !s.bytesFull(root) }

func (s State) bytesFull(root bool) bool { return s.Size > 0 && s.Left(root) < Least }

// Text says for people how many bytes of the volume are free, and that no file is left if none is.
func (s State) Text(root bool) string {
	if s.Limit == HiddenQuota {
		return "a write was refused: " + syscall.EDQUOT.Error()
	}
	text := fmt.Sprintf("%s of %s are free", Bytes(s.Left(root)), Bytes(s.Size))
	if s.Files > 0 && s.FreeFiles == 0 {
		text += fmt.Sprintf(", and none of %d files", s.Files)
	}
	return text
}

// NoRoom says whether an error means that a disk is full or a quota is used up.
func NoRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Bytes is a size for people.
func Bytes(n int64) string { return quantity.FormatBytes(quantity.Amount(n)) }

// write fills a file with random bytes, which no file system can compress.
func write(f *os.File, size int64) error {
	_, err := io.CopyN(f, rand.Reader, size)
	if err == nil {
		err = f.Sync() // a file system may find only now that there is no room
	}
	return err
}
