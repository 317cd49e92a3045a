package queue

// Lists are many queues, such as one for each node, in one arena.
type Lists[T any] struct {
	heads, tails []int32 // place in the arena plus 1; 0: empty
	lengths      []int32
	arena        []link[T]
	spare        int32 // first free link plus 1
}

type link[T any] struct {
	of   T
	next int32
}

// NewLists makes n empty lists.
func NewLists[T any](n int) Lists[T] {
	return Lists[T]{heads: make([]int32, n), tails: make([]int32, n), lengths: make([]int32, n)}
}

// Len is how many a list has.
func (l *Lists[T]) Len(list int32) int { return int(l.lengths[list]) }

// Put adds one at the end of a list.
func (l *Lists[T]) Put(list int32, x T) {
	i := l.spare
	if i == 0 {
		l.arena = append(l.arena, link[T]{})
		i = int32(len(l.arena))
	} else {
		l.spare = l.arena[i-1].next
	}
	l.arena[i-1] = link[T]{of: x}
	if l.heads[list] == 0 {
		l.heads[list] = i
	} else {
		l.arena[l.tails[list]-1].next = i
	}
	l.tails[list] = i
	l.lengths[list]++
}

// Sift asks in order what to do with each, at most most of them: it is dropped if drop says so, and more says whether to go on.
func (l *Lists[T]) Sift(list int32, most int, ask func(T) (drop, more bool)) {
	before := int32(0)
	for i := l.heads[list]; i != 0 && most > 0; most-- {
		next := l.arena[i-1].next
		drop, more := ask(l.arena[i-1].of)
		if drop {
			l.remove(list, before, i)
		} else {
			before = i
		}
		if !more {
			return
		}
		i = next
	}
}

// Clear empties a list.
func (l *Lists[T]) Clear(list int32) {
	for l.heads[list] != 0 {
		l.remove(list, 0, l.heads[list])
	}
}

// remove takes out link i, which stands behind link before.
func (l *Lists[T]) remove(list, before, i int32) {
	next := l.arena[i-1].next
	if before == 0 {
		l.heads[list] = next
	} else {
		l.arena[before-1].next = next
	}
	if l.tails[list] == i {
		l.tails[list] = before
	}
	l.arena[i-1] = link[T]{next: l.spare}
	l.spare = i
	l.lengths[list]--
}
