// Package shelf keeps the newest entries of a folder, bounded by number and by size, and removes older ones.
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

// Shelf lists its folder once, at the first use, and tracks additions from then on: there may be too many entries to list them for every
// subjob. Safe for concurrent use.
type Shelf struct {
	// Root holds the entries, Depth levels below it.
	Root  string
	Depth int
	// Most is how many entries are kept, Bytes how large they are together at most.
	Most  int
	Bytes int64
	// Warn is called for entries that can't be removed.
	Warn func(path string, err error)

	mu     sync.Mutex
	listed bool
	// all[first:] are the entries, oldest first; held is their size together, in bytes.
	all   []kept
	first int
	held  int64
	// gone is the time of the youngest removed entry, as far as is known.
	gone time.Time
}

// Since returns the time since which all entries are kept, as far as is known.
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

// Empty removes all entries.
func (s *Shelf) Empty() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.list()
	}
	s.trim(0)
}

// DropBefore removes the entries that were put there before a time.
func (s *Shelf) DropBefore(then time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.listed {
		s.list()
	}
	young := slices.IndexFunc(s.all[s.first:], func(k kept) bool { return !k.at.Before(then) })
	if young < 0 {
		young = len(s.all) - s.first
	}
	s.trim(len(s.all) - s.first - young)
}

// Add adds entries that were just put there, and removes the oldest beyond the bounds.
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

// trim removes the oldest entries until both bounds hold.
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

// list reads the folder.
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
		s.gone = s.all[0].at // older ones may have been removed
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
		if os.Remove(path) != nil { // it has other entries
			return
		}
	}
}
