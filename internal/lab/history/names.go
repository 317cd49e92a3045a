package history

import (
	"cmp"
	"encoding/binary"
	"strings"
)

// table numbers texts.
type table struct {
	known map[string]uint32
	texts []string
}

func (t *table) add(text []byte) uint32 {
	if n, ok := t.known[string(text)]; ok {
		return n
	}
	if t.known == nil {
		t.known = map[string]uint32{}
	}
	s := string(text)
	n := uint32(len(t.texts))
	t.texts = append(t.texts, s)
	t.known[s] = n
	return n
}

// compare orders numbers by their texts.
func (t *table) compare(x, y int32) int {
	if x == y {
		return 0
	}
	return cmp.Compare(t.texts[x], t.texts[y])
}

// arena keeps texts without an allocation for each.
type arena struct{ room strings.Builder }

func (a *arena) keep(text []byte) string {
	const chunk = 1 << 16
	if a.room.Cap()-a.room.Len() < len(text) {
		a.room = strings.Builder{} // the strings cut from the old one keep it
		a.room.Grow(max(chunk, len(text)))
	}
	from := a.room.Len()
	a.room.Write(text)
	return a.room.String()[from:]
}

// lists numbers short lists of numbers.
type lists[T any] struct {
	known map[string]int32
	all   [][]T
	// bytes appends what tells a value from others.
	bytes func([]byte, T) []byte
	key   []byte
}

func (l *lists[T]) add(list []T) int32 {
	l.key = l.key[:0]
	for _, x := range list {
		l.key = l.bytes(l.key, x)
	}
	if n, ok := l.known[string(l.key)]; ok {
		return n
	}
	if l.known == nil {
		l.known = map[string]int32{}
	}
	n := int32(len(l.all))
	l.all = append(l.all, append([]T(nil), list...))
	l.known[string(l.key)] = n
	return n
}

func partBytes(key []byte, p Part) []byte {
	return numberBytes(numberBytes(numberBytes(key, p.Kind), p.Count), p.Milli)
}

func numberBytes(key []byte, n int32) []byte { return binary.LittleEndian.AppendUint32(key, uint32(n)) }
