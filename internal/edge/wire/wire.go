package wire

import (
	"google.golang.org/protobuf/encoding/protowire"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// Version is the first byte of every encoded fact, MessageVersion that of every message. Messages are on tapes alone: one of another
// version is refused. 1 was one flat list of fields for every kind.
const (
	Version        = 1
	MessageVersion = 2
)

// AppendFact appends the encoding of f to dst. A fact of a kind this build does not know is a bug and stops the
// process (package invariant): it would be unreadable later.
func AppendFact(dst []byte, f *protocol.Fact) []byte {
	invariant.Check(knownFact(f.Kind), "fact of unknown kind %d: add it to package wire", f.Kind)
	c := coder.Writer(append(dst, Version))
	factFields(&c, f)
	return c.Written()
}

// DecodeFact reads what AppendFact wrote. Every byte of b must belong to the fact. The result shares no memory with b.
// Errors are of kind Corrupt (damaged or not ours) or Unsupported (written by a newer build).
func DecodeFact(b []byte) (protocol.Fact, error) {
	var f protocol.Fact
	if err := decodeFact(b, &f, &coder.Coder{}); err != nil {
		return protocol.Fact{}, err
	}
	return f, nil
}

func decodeFact(b []byte, f *protocol.Fact, c *coder.Coder) error {
	if err := c.Read("fact", Version, b); err != nil {
		return err
	}
	factFields(c, f)
	c.Finish()
	return c.Err()
}

// Decoder decodes many facts and shares what they have in common. The zero value is ready to use. It is for reading a journal and then let
// go.
type Decoder struct {
	shared *shared // nil: nothing was read yet
	coder  coder.Coder
}

// Fact is DecodeFact into f, which must be zero.
func (d *Decoder) Fact(b []byte, f *protocol.Fact) error {
	if d.shared == nil {
		d.shared = newShared()
		d.coder = coder.Reader(d.shared)
	}
	return decodeFact(b, f, &d.coder)
}

// AppendMessage appends the encoding of m to dst. An error travels as its kind and text. A message of a kind this build
// does not know is a bug and stops the process.
func AppendMessage(dst []byte, m *protocol.Message) []byte {
	invariant.Check(knownMessage(m.Kind), "message of unknown kind %d: add it to package wire", m.Kind)
	c := coder.Writer(append(dst, MessageVersion))
	messageFields(&c, m)
	return c.Written()
}

// DecodeMessage reads what AppendMessage wrote, under the same terms as DecodeFact.
func DecodeMessage(b []byte) (protocol.Message, error) {
	var m protocol.Message
	c := &coder.Coder{}
	if err := c.Read("message", MessageVersion, b); err != nil {
		return m, err
	}
	messageFields(c, &m)
	if c.Finish(); c.Err() != nil {
		return protocol.Message{}, c.Err()
	}
	return m, nil
}

// AppendContent appends the bytes by which what a person submitted is told from other content. Digests of them are stored with jobs, so
// they are what they were when these were first stored: a message of format 1 with the spec alone.
func AppendContent(dst []byte, spec *job.Spec) []byte {
	c := coder.Writer(append(dst, 1))
	c.Varint(1, 1, 1)
	coder.Pointer(&c, 23, &spec, specFields)
	return c.Written()
}

// AppendFacts appends a list of facts to dst, each preceded by its length: the form of a journal record (the facts of one step) and of a
// snapshot.
func AppendFacts(dst []byte, facts []protocol.Fact) []byte {
	var one []byte
	for i := range facts {
		one = AppendFact(one[:0], &facts[i])
		dst = protowire.AppendBytes(dst, one)
	}
	return dst
}

// DecodeFacts reads what AppendFacts wrote and hands each fact to f in order. An error of f ends it and is returned as
// it is; errors of the bytes are those of DecodeFact, with the number of the fact (from 1).
func DecodeFacts(b []byte, f func(protocol.Fact) error) error {
	i := 0
	return EachFact(b, func(encoded []byte) error {
		i++
		fact, err := DecodeFact(encoded)
		if err != nil {
			return errkind.Errorf(errkind.Of(err), "fact %d of the list: %w", i, err)
		}
		return f(fact)
	})
}

// EachFact hands over the encodings in what AppendFacts wrote, in order; they are parts of b. An error of f ends it and is returned
// as it is; those of the bytes are of kind Corrupt.
func EachFact(b []byte, f func(encoded []byte) error) error {
	for i := 1; len(b) > 0; i++ {
		one, n, err := nextFact(b, i)
		if err != nil {
			return err
		}
		if err := f(one); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// nextFact is the encoding of the first fact of a list, which is number i of the whole one, and how much of b it takes.
func nextFact(b []byte, i int) (one []byte, n int, err error) {
	one, n = protowire.ConsumeBytes(b)
	if n < 0 || n != protowire.SizeBytes(len(one)) {
		return nil, 0, errkind.Errorf(errkind.Corrupt, "fact %d of the list: its length is damaged, %d bytes before the end", i, len(b))
	}
	return one, n, nil
}
