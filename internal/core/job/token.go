package job

import (
	"fmt"
	"strconv"
	"strings"
)

// NodeID names a node; ZoneID a zone.
type (
	// NodeID names a node.
	NodeID string
	// ZoneID names a zone.
	ZoneID string
	// GateID names a gate; empty where there is one.
	GateID string
	// SliceID names a slice, unique in a cluster: node/gpu/instance.
	SliceID string
)

// Generation numbers the lives of a job, over all jobs of a gate that had its name: each is higher than any before it. It is
// no count. 0, which is what was written before there were lives, is the first.
type Generation uint32

// Number is the generation with 0 read as 1.
func (g Generation) Number() Generation { return max(1, g) }

// Token is a node's single-use promise: it is minted with a grant, names the claim, and then the lease and the subjob.
// Epoch is the node's boot count, so a token of an earlier boot is never honoured.
type Token struct {
	Epoch uint32
	Seq   uint64
}

// Zero says whether the token is unset.
func (t Token) Zero() bool { return t == Token{} }

// String is the form used in paths and for people: epoch-seq.
func (t Token) String() string { return fmt.Sprintf("%d-%d", t.Epoch, t.Seq) }

// Compare orders tokens by epoch, then sequence.
func (t Token) Compare(u Token) int {
	switch {
	case t.Epoch != u.Epoch && t.Epoch < u.Epoch, t.Epoch == u.Epoch && t.Seq < u.Seq:
		return -1
	case t == u:
		return 0
	}
	return 1
}

// ParseToken reads what String wrote.
func ParseToken(s string) (Token, error) {
	e, q, ok := strings.Cut(s, "-")
	if ok {
		epoch, err1 := strconv.ParseUint(e, 10, 32)
		seq, err2 := strconv.ParseUint(q, 10, 64)
		if t := (Token{Epoch: uint32(epoch), Seq: seq}); err1 == nil && err2 == nil && t.String() == s {
			return t, nil
		}
	}
	return Token{}, fmt.Errorf("token %q: want EPOCH-SEQUENCE, two decimal numbers", s)
}
