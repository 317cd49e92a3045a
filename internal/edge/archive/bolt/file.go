package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"go.etcd.io/bbolt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/archive"
)

// Names of the tree's buckets, and of the keys of info.
const (
	partsBucket = "parts" // role and name: what was filed
	listsBucket = "lists" // state, submitted and name: the list of each state
	endedBucket = "ended" // ended and name: retention
	usesBucket  = "uses"  // id of a stored work directory: how many jobs have it
	infoBucket  = "info"
	formatKey   = "format"
	totalsKey   = "totals"
)

func buckets() []string {
	return []string{partsBucket, listsBucket, endedBucket, usesBucket, infoBucket}
}

// format names what is in the file. A change of a value raises its own version; a change of the buckets raises this.
const format = "sluice archive 2"

// Archive is one open file.
type Archive struct {
	path string
	db   *bbolt.DB
	file *os.File // of db
	// write guards File and Discard; ended is why they take nothing more.
	write sync.Mutex
	ended atomic.Pointer[error]
}

var _ archive.Archive = (*Archive)(nil)

// formatOf is the format that the file names; false if it names none.
func formatOf(tx *bbolt.Tx) (string, bool) {
	b := tx.Bucket([]byte(infoBucket))
	if b == nil {
		return "", false
	}
	return string(b.Get([]byte(formatKey))), true
}

func (a *Archive) totals(tx *bbolt.Tx) (totals, error) {
	key := []byte(totalsKey)
	t, err := openTotals(key, tx.Bucket([]byte(infoBucket)).Get(key))
	if err != nil {
		return t, a.corrupt(fmt.Errorf("its totals: %w", err))
	}
	return t, nil
}

// repair is what can be done about an archive that is damaged.
const repair = "restore the archive's directory from a backup; or stop the daemon, and `sluice archive repair` writes it anew with all " +
	"that is whole"

// damage is what the store says of a tree that is none: it panics, or reads where the file has no memory.
type damage struct{ what string }

func (d *damage) Error() string { return d.what }

// guard turns a panic or a memory fault of the store into an error.
func guard(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &damage{what: fmt.Sprintf("its pages are damaged: %v", p)}
		}
	}()
	return f()
}

// corrupt is the one error of damage.
func (a *Archive) corrupt(cause error) error {
	return errkind.Errorf(errkind.Corrupt, "archive %s is damaged: %w; %s", a.path, cause, repair)
}

// damagedJob is damage that hides one job.
func (a *Archive) damagedJob(name string, cause error) error {
	return errkind.Errorf(errkind.Corrupt, "archive %s: what was filed of job %.80q is damaged: %w; %s", a.path, name, cause, repair)
}

// kinded gives errors of the machine the kind that they have for everybody.
func kinded(err error) error {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, full) {
			return errkind.Errorf(errkind.Exhausted, "%w", err)
		}
	}
	return err
}

// retriable says whether a commit failed before anything was to be durable: a write found no room. After a sync that failed nobody
// knows what is on the disk, and after the store lost its memory it can't be asked.
func retriable(err error) bool {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Op == "write" && errkind.Of(kinded(err)) == errkind.Exhausted
	}
	return strings.HasPrefix(err.Error(), "file resize error:") // the store keeps no more of it than its words
}
