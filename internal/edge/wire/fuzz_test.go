package wire

import (
	"bytes"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// FuzzDecodeFact: arbitrary bytes are refused or are exactly the encoding of what was read.
func FuzzDecodeFact(f *testing.F) {
	fact := protocol.Fact{Kind: protocol.JobAccepted, Body: &protocol.Acceptance{}}
	leaves(&fact, func(string) { f.Add(AppendFact(nil, &fact)) })
	f.Fuzz(func(t *testing.T, b []byte) {
		fact, err := DecodeFact(b)
		if err == nil && !bytes.Equal(AppendFact(nil, &fact), b) {
			t.Fatalf("%x was read as %+v, whose encoding is %x", b, fact, AppendFact(nil, &fact))
		}
	})
}

// FuzzDecodeMessage: the same for messages.
func FuzzDecodeMessage(f *testing.F) {
	everyLeaf(func(_ string, m *protocol.Message) { f.Add(AppendMessage(nil, m)) })
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := DecodeMessage(b)
		if err == nil && !bytes.Equal(AppendMessage(nil, &m), b) {
			t.Fatalf("%x was read as %+v, whose encoding is %x", b, m, AppendMessage(nil, &m))
		}
	})
}
