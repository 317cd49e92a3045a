package protocol

import (
	"testing"
	"unsafe"
)

// TestMessagesAndFactsAreSmall: one is copied into every inbox, outbox and step. What only some kinds say goes into their bodies.
func TestMessagesAndFactsAreSmall(t *testing.T) {
	if size := unsafe.Sizeof(Message{}); size > 144 {
		t.Errorf("a message has %d bytes, want at most 144", size)
	}
	if size := unsafe.Sizeof(Fact{}); size > 112 {
		t.Errorf("a fact has %d bytes, want at most 112", size)
	}
}
