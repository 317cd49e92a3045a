// Package shelf keeps the newest of what is put aside in a folder, by number and by size, and removes what is older.
package shelf

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Shelf lists its folder once, at the first use, and knows from then on what is added: what is kept may be a lot, and nothing is worth
// looking at all of it for every subjob. It is safe for concurrent use.
type Shelf struct {
	// Root holds the entries, Depth levels below it.
	Root  string
	Depth int
	// Most entries are kept, and no more than Bytes of them together.
	Most  int
	Bytes int64
	// Warn is told of what can't be removed.
	Warn func(path string, err error)

	mu     sync.Mutex
	listed bool
	// all is what is there, the oldest first, from first on; held is what it has together, in bytes.
	all   []kept
	first int
	held  int64
	// gone is as old as the youngest that was removed, as far as is known.
	gone time.Time
}

// Since returns the time since which all that was put there is kept, as far as is known.
func (s *Shelf) Since() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.list()
	}
	return s.gone
}

type kept struct {
	path string
	at   time.Time
	size int64
}

// Empty removes all that is kept.
func (s *Shelf) Empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.list()
	}
	s.trim(0)
}

// Add takes in what has just been put there, and removes what is too old to keep.
func (s *Shelf) Add(paths ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listed {
		for _, p := range paths {
			s.take(p)
		}
	} else {
		s.list()
	}
	s.trim(s.Most)
}

// trim removes the oldest entries until no more than most, and no more bytes than may be, are left.
func (s *Shelf) trim(most int) {
	for s.first < len(s.all) && (len(s.all)-s.first > most || s.held > s.Bytes) {
		oldest := s.all[s.first]
		s.all[s.first] = kept{}
		s.first++
		s.gone = oldest.at
		s.held -= oldest.size
		s.remove(oldest)
	}
	if s.first > len(s.all)/2 {
		s.all = slices.Delete(s.all, 0, s.first)
		s.first = 0
	}
}

func (s *Shelf) take(path string) {
	if info, err := os.Lstat(path); err == nil {
		k := kept{path: path, at: info.ModTime(), size: foreign.Size(path, s.Bytes)}
		s.all, s.held = append(s.all, k), s.held+k.size
	}
}

// list finds what is there.
func (s *Shelf) list() {
	pattern := s.Root
	for range s.Depth {
		pattern = filepath.Join(pattern, "*")
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return
	}
	for _, p := range paths {
		s.take(p)
	}
	slices.SortFunc(s.all, func(a, b kept) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.path, b.path)) })
	s.listed = true
	if len(s.all) >= s.Most && s.Most > 0 {
		s.gone = s.all[0].at // what was older may have been removed
	}
}

// remove removes an entry, and the folders between it and the root that have nothing else in them. A file that was replaced since
// is a younger entry too.
func (s *Shelf) remove(k kept) {
	path := k.path
	if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && !info.ModTime().Equal(k.at) {
		return
	}
	if err := foreign.Remove(path); err != nil {
		s.Warn(path, err)
		return
	}
	for range s.Depth - 1 {
		path = filepath.Dir(path)
		if os.Remove(path) != nil { // others are in it
			return
		}
	}
}
