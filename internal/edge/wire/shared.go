package wire

import (
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// shared is what many facts have in common: short texts, which are mostly names that come again and again, and specs, since jobs that are
// alike have the same, and the gate and the home of a job in any case. It holds every spec that is like no other until it has come for the
// second time.
type shared struct {
	seed  maphash.Seed
	check maphash.Seed
	texts []string
	// recent are the latest specs, one for each remainder of their hashes; single those that came once.
	recent []recentSpec
	single map[specKey]*job.Spec
	pool   job.Pool // of profiles
}

const (
	// maxShared is the longest text that is shared, in bytes, and sharedTexts how many are held: one for each remainder of
	// their hashes.
	maxShared   = 64
	sharedTexts = 1 << 13
	// sharedSpecs is how many specs are held for jobs that are alike.
	sharedSpecs = 1 << 12
)

// specKey is two hashes of a spec's encoding.
type specKey [2]uint64

type recentSpec struct {
	key  specKey
	spec *job.Spec
}

func newShared() *shared {
	return &shared{
		seed: maphash.MakeSeed(), check: maphash.MakeSeed(), texts: make([]string, sharedTexts), single: map[specKey]*job.Spec{},
		recent: make([]recentSpec, sharedSpecs),
	}
}

// Text is b as a string: the one that it was before, where it came lately and is short.
func (d *shared) Text(b []byte) string {
	if len(b) > maxShared {
		return string(b)
	}
	at := &d.texts[maphash.Bytes(d.seed, b)%sharedTexts]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}

// spec is what b encodes. One that was read before from the same bytes is that one, if it came lately or once alone; else read reads it,
// and says whether it could.
func (d *shared) spec(b []byte, read func(*job.Spec) bool) *job.Spec {
	key := specKey{maphash.Bytes(d.seed, b), maphash.Bytes(d.check, b)}
	at := &d.recent[key[0]%sharedSpecs]
	known := d.single[key]
	if known != nil {
		delete(d.single, key)
	} else if at.key == key {
		known = at.spec
	}
	if known == nil {
		known = new(job.Spec)
		if !read(known) {
			return known
		}
		d.pool.Profile(known)
		d.single[key] = known
	}
	*at = recentSpec{key, known}
	return known
}

// sharedSpec is a spec that may be absent.
func sharedSpec(c *coder.Coder, n protowire.Number, v **job.Spec) {
	d, _ := c.Shared().(*shared)
	if c.Writing() || d == nil {
		coder.Pointer(c, n, v, specFields)
		return
	}
	if !c.Next(n, protowire.BytesType) {
		return
	}
	b := c.Bytes()
	if c.Err() != nil {
		return
	}
	*v = d.spec(b, func(s *job.Spec) bool { return c.Inside(b, func() { specFields(c, s) }) >= 0 })
}
