// Package digest hashes durable state in pieces: each entity is hashed alone and an actor's digest is the sum of the
// hashes, so that a change costs one entity and not the state. It guards against our own mistakes (a fold that differs,
// a replay that differs), not against an attacker.
package digest

// Hash is an FNV-1a 64-bit hash under construction. Start from New.
type Hash uint64

// New starts a hash.
func New() Hash { return 14695981039346656037 }

const prime = 1099511628211

// Int mixes in any number of integers.
func (h Hash) Int(vs ...int64) Hash {
	for _, v := range vs {
		for i := 0; i < 64; i += 8 {
			h = (h ^ Hash(byte(uint64(v)>>i))) * prime
		}
	}
	return h
}

// Text mixes in a string and its length, so that neighbours cannot be confused.
func (h Hash) Text(s string) Hash {
	for i := 0; i < len(s); i++ {
		h = (h ^ Hash(s[i])) * prime
	}
	return h.Int(int64(len(s)))
}

// Bool mixes in a truth value.
func (h Hash) Bool(b bool) Hash {
	if b {
		return h.Int(1)
	}
	return h.Int(0)
}

// Sum finishes the hash: the bits are mixed once more so that sums of hashes do not cancel in the low bits.
func (h Hash) Sum() uint64 {
	x := uint64(h)
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
