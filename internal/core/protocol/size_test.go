package protocol

import (
	"testing"
	"unsafe"
)

// TestAMessageIsSmall: it is copied into every inbox, outbox and step. What only some kinds say goes into their bodies.
func TestAMessageIsSmall(t *testing.T) {
	if size := unsafe.Sizeof(Message{}); size > 144 {
		t.Errorf("a message has %d bytes, want at most 144", size)
	}
}
