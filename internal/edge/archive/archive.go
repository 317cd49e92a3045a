// Package archive is the contract of the store that keeps finished jobs after they have left the actors' memory: the facts that each actor
// files of a job, and an index by when jobs were submitted and when they ended. Kinds live in folders below; every kind passes archivetest.
// It must not decide anything about a job: which may leave memory, and which are forgotten, is the gate's business.
package archive

import (
	"cmp"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Part is what one actor has filed of one job.
type Part struct {
	// Role is Gate or Zone.
	Role protocol.Role
	Job  job.ID
	// Generation is the last life that the part tells of; at least 1.
	Generation job.Generation
	// Entry is in the index under the gate's part; nil for the zone's.
	Entry *Entry
	// Data is what Facts reads: one part of at most MaxPart bytes.
	Data []byte
}

// Entry is what the index says of a job, so that a list need not read what is filed of it.
type Entry struct {
	Job        job.ID
	Generation job.Generation
	Queue      string
	// Owner is who has submitted it; empty: not known. Only a page tells it, and of jobs that were filed before there was one it is empty.
	Owner string
	State job.State
	// Workdir is the id of the stored work directory that another life of the job needs; empty for none.
	Workdir string
	// Submitted is when its last life was asked for, Ended when that was over.
	Submitted, Ended quantity.Instant
}

// Cursor is a place in the list of jobs, which is ordered by when they were submitted and then by name.
type Cursor struct {
	Submitted quantity.Instant
	Job       job.ID
}

// Compare orders cursors as the list is.
func (c Cursor) Compare(o Cursor) int {
	return cmp.Or(cmp.Compare(c.Submitted, o.Submitted), cmp.Compare(c.Job, o.Job))
}

// Cursor is the entry's own place.
func (e *Entry) Cursor() Cursor { return Cursor{Submitted: e.Submitted, Job: e.Job} }

// End is behind the newest job.
func End() Cursor { return Cursor{Submitted: quantity.Never} }

// Page is a piece of the list, newest first.
type Page struct {
	Entries []Entry
	// Next is where the list goes on: before it. Done: it does not.
	Next Cursor
	Done bool
	// Damaged are the places of the list that can't be read, each an error of kind Corrupt that names its job: what stands there is in no
	// list.
	Damaged []error
}

// Size is how much there is.
type Size struct {
	// Jobs are those with a part of the gate, Homes those with one of the zone.
	Jobs, Homes int64
	// GivenUp are lost jobs that a person has allowed to be left out.
	GivenUp int64
	// Changes counts the calls of File and Discard that changed something, since the archive was made. An archive that counts
	// fewer than it once did is an older copy.
	Changes uint64
	// Bytes on disk, and how many of them are free for what comes.
	Bytes, Free int64
}

// Archive is one open archive. It is safe for concurrent use; one call of File or Discard works at a time.
//
// Errors are of kind Exhausted where room must be made (disk, descriptors): nothing of the call counts, and it may be made
// again. Corrupt names what is damaged and what to do; after one of File or Discard nothing more is taken until the archive is
// opened anew. Any other kind of theirs is as final.
type Archive interface {
	// File stores parts durably, all or none, in place of those of the same actor and job that are of the same generation or an
	// earlier one; where a later one is stored that stays. Parts are at most MaxParts and MaxFiling bytes (Invalid otherwise).
	File(parts []Part) error
	// Recall finds what an actor has filed of a job; ok is false if that is nothing. A damaged part is an error of kind Corrupt,
	// never nothing.
	Recall(role protocol.Role, name job.ID) (p Part, ok bool, err error)
	// Discard durably removes parts of all actors up to a generation; what is not there is no error. At most MaxParts.
	Discard(list []Discarded) error
	// Page lists jobs of some states before a cursor, newest first, at most n of those that keep accepts (nil: all). It reads at most
	// MaxLooked of them in one call, none of another state, and returns where to continue. A damaged job hides no other. keep must not call
	// the archive.
	Page(before Cursor, n int, states status.JobStates, keep func(*Entry) bool) (Page, error)
	// Outdated lists the jobs that ended before a time, and the oldest beyond the number most to keep, oldest end first and then
	// by name, at most n.
	Outdated(before quantity.Instant, most int64, n int) ([]Ended, error)
	// NeedsWorkdir says whether a job in the archive has that stored work directory.
	NeedsWorkdir(id string) (bool, error)
	// Size costs as much as a Recall.
	Size() (Size, error)
	// Close closes the archive. What was filed is durable without it.
	Close() error
}

// Ended is a job by when it ended.
type Ended struct {
	At         quantity.Instant
	Job        job.ID
	Generation job.Generation
}

// Discarded names the lives of a job that are to go.
type Discarded struct {
	Job job.ID
	// UpTo is the last of them.
	UpTo job.Generation
}

const (
	// MaxPart is the largest part, in bytes.
	MaxPart = 16 << 20
	// MaxFiling is the largest sum of the parts of one call, in bytes.
	MaxFiling = 64 << 20
	// MaxParts is how many parts one call takes.
	MaxParts = 4096
	// MaxLooked is how many jobs of its states one call of Page looks at.
	MaxLooked = 20_000
)
