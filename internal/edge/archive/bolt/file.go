package bolt

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"go.etcd.io/bbolt"

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

// formatOf is what the file says that it is; false if it does not say.
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
