// Package digest hashes durable state in pieces: each entity is hashed alone and an actor's digest is the sum of the
// hashes, so that a change costs one entity and not the state. It guards against our own mistakes (a fold that differs,
// a replay that differs), not against an attacker.
//
// Types whose values are durable have a method Mix that mixes in every one of their fields; digesttest finds one that
// was left out.
package digest

// Hash is a 64-bit hash under construction: each word is mixed in with the finalizer of splitmix64 (Steele, Lea and
// Flood, 2014). Start from New.
type Hash uint64

// New starts a hash.
func New() Hash { return 14695981039346656037 }

// Int mixes in any number of integers. Their order counts.
func (h Hash) Int(vs ...int64) Hash {
	for _, v := range vs {
		z := uint64(h) + uint64(v) + 0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		h = Hash(z ^ z>>31)
	}
	return h
}

// Text mixes in a string and its length, so that neighbours cannot be confused.
func (h Hash) Text(s string) Hash {
	f := uint64(14695981039346656037) // FNV-1a
	for i := range len(s) {
		f = (f ^ uint64(s[i])) * 1099511628211
	}
	return h.Int(int64(len(s)), int64(f))
}

// Texts mixes in strings and how many there are.
func (h Hash) Texts(list []string) Hash {
	h = h.Int(int64(len(list)))
	for _, s := range list {
		h = h.Text(s)
	}
	return h
}

// Bool mixes in truth values.
func (h Hash) Bool(bs ...bool) Hash {
	for _, b := range bs {
		if b {
			h = h.Int(1)
		} else {
			h = h.Int(0)
		}
	}
	return h
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
