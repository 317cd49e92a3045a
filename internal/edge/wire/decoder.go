package wire

import (
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Decoder decodes many facts and shares what they have in common: short texts, which are mostly names that come again and
// again, and specs, since jobs that are alike have the same, and the gate and the home of a job in any case. The zero value is
// ready to use. It holds every spec that is like no other until it has come for the second time, so it is for reading a journal
// and then let go.
type Decoder struct {
	seed  maphash.Seed
	check maphash.Seed
	texts []string
	// recent are the specs that came last, one for each remainder of their hashes; single those that came once.
	recent []recentSpec
	single map[specKey]*job.Spec
	pool   job.Pool // of profiles
	coder  coder
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

// Fact is DecodeFact into f, which must be zero.
func (d *Decoder) Fact(b []byte, f *protocol.Fact) error {
	if d.texts == nil {
		d.seed, d.check = maphash.MakeSeed(), maphash.MakeSeed()
		d.texts, d.single = make([]string, sharedTexts), map[specKey]*job.Spec{}
		d.recent = make([]recentSpec, sharedSpecs)
	}
	d.coder.shared = d
	return decodeFact(b, f, &d.coder)
}

// text is b as a string.
func (d *Decoder) text(b []byte) string {
	if d == nil || len(b) > maxShared {
		return string(b)
	}
	at := &d.texts[maphash.Bytes(d.seed, b)%sharedTexts]
	if *at != string(b) {
		*at = string(b)
	}
	return *at
}

// sharedSpec is a spec that may be absent. One that was read before from the same bytes is that one, if it came lately or once
// alone.
func sharedSpec(c *coder, n protowire.Number, v **job.Spec) {
	if c.writing || c.shared == nil {
		pointer(c, n, v, specFields)
		return
	}
	if !c.next(n, protowire.BytesType) {
		return
	}
	begin := c.pos
	b := c.readBytes()
	if c.err != nil {
		return
	}
	d := c.shared
	key := specKey{maphash.Bytes(d.seed, b), maphash.Bytes(d.check, b)}
	at := &d.recent[key[0]%sharedSpecs]
	known := d.single[key]
	if known != nil {
		delete(d.single, key)
	} else if at.key == key {
		known = at.spec
	}
	if *v = known; known == nil {
		c.pos = begin
		*v = new(job.Spec)
		c.within(func() { specFields(c, *v) })
		if c.err != nil {
			return
		}
		d.pool.Profile(*v)
		d.single[key] = *v
	}
	*at = recentSpec{key, *v}
}
