// Package dirty is sets of things whose derived values are to be made again. It must not know what the things are, nor what is
// derived from them.
package dirty

import "slices"

// Set is the things that are marked, in the order in which they were. Each of them keeps a Mark of its own for each set that it may
// be in, so that marking costs O(1) and nothing is in twice. The zero value is empty.
type Set[T any] struct {
	list  []T
	marks []*Mark
}

// Mark says whether a thing is in a set.
type Mark bool

// Add marks a thing, unless it is marked already.
func (s *Set[T]) Add(m *Mark, of T) {
	if !*m {
		*m = true
		s.list, s.marks = append(s.list, of), append(s.marks, m)
	}
}

// Len is how many things are marked.
func (s *Set[T]) Len() int { return len(s.list) }

// List is what is marked; good until the set changes.
func (s *Set[T]) List() []T { return s.list }

// Drain remakes each marked thing, which is unmarked first: those marked meanwhile, itself included, come last. The set is empty
// afterwards.
func (s *Set[T]) Drain(remake func(T)) {
	for i := 0; i < len(s.list); i++ {
		*s.marks[i] = false
		remake(s.list[i])
	}
	s.empty()
}

// Oldest has the thing that was marked first made again, which is not marked any more by then.
func (s *Set[T]) Oldest(remake func(T)) {
	if len(s.list) > 0 {
		of := s.list[0]
		*s.marks[0] = false
		s.list, s.marks = slices.Delete(s.list, 0, 1), slices.Delete(s.marks, 0, 1)
		remake(of)
	}
}

// Clear takes all things out.
func (s *Set[T]) Clear() {
	for _, m := range s.marks {
		*m = false
	}
	s.empty()
}

// keepRoom is for how many things a set keeps room when it is empty: everything is marked at once when an actor comes up, and hardly
// ever again.
const keepRoom = 1 << 14

func (s *Set[T]) empty() {
	if len(s.list) > keepRoom {
		s.list, s.marks = nil, nil
		return
	}
	clear(s.list)
	clear(s.marks)
	s.list, s.marks = s.list[:0], s.marks[:0]
}
