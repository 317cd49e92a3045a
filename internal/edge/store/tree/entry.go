package tree

import (
	"io/fs"
	"time"
)

const (
	// MaxEntries is how many files, directories and links one tree may have.
	MaxEntries = 1_000_000
	// MaxDepth is how deep directories may be nested.
	MaxDepth = 255
	// blockSize is tar's unit; an archive ends with two empty ones.
	blockSize = 512
	// leastHole is how long a hole must be to be left out, in bytes; mostParts bounds the map of one file: of more the shorter holes count
	// as written.
	leastHole = 64 << 10
	mostParts = 1000
)

// part of a file that was written.
type part struct{ at, size int64 }

// entry is one file, directory or link of a tree.
type entry struct {
	name, link string
	mode       fs.FileMode
	size       int64
	// changed is when it was changed last, in whole seconds: fractions would cost a block more for each file.
	changed time.Time
	// stored is how much of it the archive has, parts are which parts of a file with holes; nil: all.
	stored int64
	parts  []part
}

func padded(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }
