package list

// Set is things in no order. Invariant: each keeps 1 + its place there in a slot of its own, 0 if it is not in, so that it goes in and
// out in O(1).
type Set[J any] []J

// Add puts one in, if it is not. slot names the slot that things have for this set.
func (s *Set[J]) Add(j J, slot func(J) *int) {
	if at := slot(j); *at == 0 {
		*s = append(*s, j)
		*at = len(*s)
	}
}

// Drop takes one out, if it is in.
func (s *Set[J]) Drop(j J, slot func(J) *int) {
	at := *slot(j)
	if at == 0 {
		return
	}
	end := len(*s) - 1
	last := (*s)[end]
	(*s)[at-1], *slot(last) = last, at
	clear((*s)[end:])
	*s, *slot(j) = (*s)[:end], 0
}
