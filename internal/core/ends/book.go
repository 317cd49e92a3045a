package ends

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// MostKinds bounds the kinds that curves are kept of; those that were taught last stay.
const MostKinds = 256

// book is curves by kind.
type book struct {
	curves map[string]*kind
	// taught are the kinds with the one taught last behind.
	taught []*kind
}

type kind struct {
	key string
	Curve
}

func newBook() book { return book{curves: map[string]*kind{}} }

// each does something to every kind of keys once, from the special to the general.
func (b *book) each(keys *Keys, do func(*kind)) {
	for i, key := range keys {
		if i > 0 && key == keys[i-1] {
			continue
		}
		k := b.curves[key]
		if k == nil {
			k = &kind{key: key}
			b.curves[key] = k
			b.taught = append(b.taught, k)
		}
		do(k)
	}
	if len(b.taught) > MostKinds {
		for _, k := range b.taught[:len(b.taught)-MostKinds] {
			delete(b.curves, k.key)
		}
		b.taught = slices.Delete(b.taught, 0, len(b.taught)-MostKinds)
	}
}

// open says that a span of these kinds has begun.
func (b *book) open(keys *Keys, since quantity.Instant) {
	b.each(keys, func(k *kind) { k.Open(since) })
}

// shut says that one which began then is over: after length if it ended, longer if it was cut off from sight.
func (b *book) shut(keys *Keys, since quantity.Instant, length time.Duration, cut bool) {
	b.each(keys, func(k *kind) {
		k.Close(since)
		k.Add(length, cut)
		at := slices.Index(b.taught, k)
		b.taught = append(slices.Delete(b.taught, at, at+1), k)
	})
}

// residual is the remaining length by the curve of the most specific key that has enough data. If none has, it is that of the most general
// key at the greatest age for which that one has.
func (b *book) residual(keys *Keys, now quantity.Instant, age time.Duration, alpha int64) (time.Duration, bool) {
	for _, key := range keys {
		if k := b.curves[key]; k != nil {
			if left, ok := k.Residual(now, age, alpha); ok {
				return left, true
			}
		}
	}
	// It has lasted longer than anything that is known well: as one that has lasted as long as that is known.
	if k := b.curves[keys[len(keys)-1]]; k != nil {
		if younger, ok := k.Oldest(now, age, alpha); ok {
			return k.Residual(now, younger, alpha)
		}
	}
	return None, false
}
