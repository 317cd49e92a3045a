package wire

import (
	"hash/maphash"

	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Decoder decodes many facts and shares what they have in common: short texts, which are mostly names that come again and
// again, and specs, since the gate and the home of a job have the same. The zero value is ready to use. It holds every spec
// that it has met an odd number of times, so it is for reading a journal and then let go.
type Decoder struct {
	seed  maphash.Seed
	check maphash.Seed
	texts []string
	specs map[specKey]*job.Spec
	coder coder
}

const (
	// maxShared is the longest text that is shared, in bytes, and sharedTexts how many are held: one for each remainder of
	// their hashes.
	maxShared   = 64
	sharedTexts = 1 << 13
)

// specKey is two hashes of a spec's encoding.
type specKey [2]uint64

// Facts appends to out what DecodeFacts would hand over.
func (d *Decoder) Facts(b []byte, out []protocol.Fact) ([]protocol.Fact, error) {
	for i := 1; len(b) > 0; i++ {
		one, n, err := nextFact(b, i)
		if err != nil {
			return out, err
		}
		out = append(out, protocol.Fact{})
		if err := d.Fact(one, &out[len(out)-1]); err != nil {
			return out[:len(out)-1], errkind.Errorf(errkind.Of(err), "fact %d of the list: %w", i, err)
		}
		b = b[n:]
	}
	return out, nil
}

// Fact is DecodeFact into f, which must be zero.
func (d *Decoder) Fact(b []byte, f *protocol.Fact) error {
	if d.texts == nil {
		d.seed, d.check = maphash.MakeSeed(), maphash.MakeSeed()
		d.texts, d.specs = make([]string, sharedTexts), map[specKey]*job.Spec{}
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

// sharedSpec is a spec that may be absent. One that was read before from the same bytes is that one: it is held until then.
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
	if *v = d.specs[key]; *v != nil {
		delete(d.specs, key)
		return
	}
	c.pos = begin
	*v = new(job.Spec)
	c.within(func() { specFields(c, *v) })
	if c.err == nil {
		d.specs[key] = *v
	}
}
