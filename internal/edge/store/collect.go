package store

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	// LeastAge is how long an object must have been left alone before it may be collected: its uploader has to name it within that time.
	LeastAge = time.Hour
	// Abandoned is how long an upload may be inactive until its parts are removed: it can be resumed until then.
	Abandoned = 24 * time.Hour
	// Unadopted is how much longer than an upload what was written to a place stays (see Lender): as long as the URL by which it was
	// written may live, which S3 limits to seven days, and a day more. Its owner may be away meanwhile and adopts it when it is back, and
	// others who share the store can't know that it will.
	Unadopted = 8 * 24 * time.Hour
)

// Collected is what a collection has found and done.
type Collected struct {
	// Objects and Names were there; Removed of the objects, with Bytes, are gone. Uploads were given up.
	Objects, Names, Removed, Uploads int
	Bytes                            int64
}

// Collect removes the objects that no name needs and that were left alone for age, and what uploads have left that nothing was heard of
// for Abandoned. dry only counts them. Any number of uploads and collections may be under way meanwhile, anywhere.
//
// Why that is safe: who names an object renews it first, so it is young, or it is not there and is put again. The names are read after
// the store's clock: one that is set later names something that is younger than what is removed here.
func Collect(ctx context.Context, s Store, age time.Duration, dry bool) (c Collected, err error) {
	if age < LeastAge {
		return c, errkind.Errorf(errkind.Invalid, "an age of %s is too short: an upload may need %s to be named", age, LeastAge)
	}
	now, err := s.Now(ctx)
	if err != nil {
		return c, fmt.Errorf("the clock of %s: %w", s, err)
	}
	return CollectBefore(ctx, s, now.Add(-age), dry)
}

// CollectBefore is Collect of objects unused since an instant of the store's clock. Tests, which can't wait, call it.
func CollectBefore(ctx context.Context, s Store, before time.Time, dry bool) (c Collected, err error) {
	needed := map[Digest]bool{}
	err = s.Names(ctx, "", func(n Named) error {
		c.Names++
		for _, d := range n.Refs {
			needed[d] = true
		}
		return nil
	})
	if err != nil { // what is named by what can't be read must stay
		return c, fmt.Errorf("the names in %s: %w", s, err)
	}
	err = s.List(ctx, func(o Object) error {
		c.Objects++
		if needed[o.Digest] || !o.Changed.Before(before) {
			return nil
		}
		removed := dry
		if !dry {
			var failed error
			if removed, failed = s.Remove(ctx, o.Digest, before); failed != nil {
				return failed
			}
		}
		if removed {
			c.Removed++
			c.Bytes += o.Size
		}
		return nil
	})
	if err != nil {
		return c, fmt.Errorf("the objects in %s: %w", s, err)
	}
	if !dry {
		c.Uploads, err = s.Sweep(ctx, before.Add(-Abandoned))
	}
	return c, err
}
