// Package digest hashes durable state in pieces: each entity is hashed alone and an actor's digest is the sum of the
// hashes, so that a change costs one entity and not the state. It guards against our own mistakes (a fold that differs,
// a replay that differs), not against an attacker.
//
// Types whose values are durable have a method Mix that mixes in every one of their fields; digesttest finds one that
// was left out.
package digest

import "math/bits"

// Hash is a 64-bit hash under construction: each word is mixed in by a multiplication whose two halves are folded together (as wyhash does,
// Wang Yi, 2019). Start from New. It may become another from build to build, so nothing that lasts or decides hangs on it: see Key.
type Hash uint64

// The words of wyhash that a hash is kept away from 0 with, and multiplied by.
const (
	away   = 0xa0761d6478bd642f
	factor = 0xe7037ed1a0b428db
)

// New starts a hash.
func New() Hash { return 14695981039346656037 }

// word mixes in one word.
func (h Hash) word(v uint64) Hash {
	high, low := bits.Mul64(uint64(h)^v^away, factor)
	return Hash(high ^ low)
}

// Int mixes in any number of integers. Their order counts.
func (h Hash) Int(vs ...int64) Hash {
	for _, v := range vs {
		h = h.word(uint64(v))
	}
	return h
}

// Text mixes in a string and its length, so that neighbours cannot be confused.
func (h Hash) Text(s string) Hash {
	h = h.word(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		h = h.word(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(
			s[6])<<48 | uint64(s[7])<<56)
	}
	if len(s) > 0 {
		rest := uint64(0)
		for i := range len(s) {
			rest = rest<<8 | uint64(s[i])
		}
		h = h.word(rest)
	}
	return h
}

// Key is a number for what a text and integers name. Random streams begin from it and decisions hang on it, so it stays what it is: each
// word goes through the finalizer of splitmix64 (Steele, Lea and Flood, 2014).
func Key(s string, vs ...int64) uint64 {
	f := uint64(14695981039346656037) // FNV-1a
	for i := range len(s) {
		f = (f ^ uint64(s[i])) * 1099511628211
	}
	key := split(split(uint64(New()), int64(len(s))), int64(f))
	for _, v := range vs {
		key = split(key, v)
	}
	return key
}

func split(key uint64, v int64) uint64 {
	z := key + uint64(v) + 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Texts mixes in strings and how many there are.
func (h Hash) Texts(list []string) Hash {
	h = h.Int(int64(len(list)))
	for _, s := range list {
		h = h.Text(s)
	}
	return h
}

// Bool mixes in truth values, at most 63.
func (h Hash) Bool(bs ...bool) Hash {
	word := uint64(1) // so that their number counts
	for _, b := range bs {
		if word <<= 1; b {
			word |= 1
		}
	}
	return h.word(word)
}

// Sum finishes the hash.
func (h Hash) Sum() uint64 { return uint64(h) }

// Mixer is a value that mixes all of itself into a hash.
type Mixer interface{ Mix(h Hash) Hash }

// Optional mixes in what a pointer points to, and whether it is there at all.
func Optional[T any, P interface {
	*T
	Mixer
}](h Hash, p P) Hash {
	if p == nil {
		return h.Int(0)
	}
	return p.Mix(h.Int(1))
}

// List mixes in the elements of a list and how many there are.
func List[T any, P interface {
	*T
	Mixer
}](h Hash, list []T) Hash {
	h = h.Int(int64(len(list)))
	for i := range list {
		h = P(&list[i]).Mix(h)
	}
	return h
}

// Numbers mixes in integers of any kind and how many there are.
func Numbers[T ~int | ~int32 | ~int64](h Hash, list []T) Hash {
	h = h.Int(int64(len(list)))
	for _, v := range list {
		h = h.Int(int64(v))
	}
	return h
}
