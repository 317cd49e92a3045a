package protocol

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// Member is one node's part of a gang over several nodes: the next slices of the claim's list, behind those of the members before it.
type Member struct {
	Node   job.NodeID
	Token  job.Token
	Slices int
}

// Part is what member i of a list has of the slices of all of them: its first one, and the others.
func Part(first job.SliceID, also []job.SliceID, members []Member, i int) (own job.SliceID, others []job.SliceID) {
	at := 0
	for _, m := range members[:i] {
		at += m.Slices
	}
	n := members[i].Slices
	if at == 0 {
		return first, also[: n-1 : n-1]
	}
	return also[at-1], also[at : at+n-1 : at+n-1]
}

// NodeOf is the node that a slice of the claim is of.
func (c *Claim) NodeOf(s job.SliceID) job.NodeID {
	for i := range c.Members {
		if own, others := Part(c.Slice, c.Also, c.Members, i); own == s || slices.Contains(others, s) {
			return c.Members[i].Node
		}
	}
	return c.Node
}

// MemberOf is the member that a token is of; -1 if it is of none.
func MemberOf(members []Member, t job.Token) int {
	for i := range members {
		if members[i].Token == t {
			return i
		}
	}
	return -1
}

// SoundAddress reports whether text may be the address of a machine, a host's name or an IP: it goes into environments of subjobs on other
// machines, in lists that commas separate.
func SoundAddress(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == ':', c == '.':
		case (c == '-' || c == '_') && i > 0:
		default:
			return false
		}
	}
	return text != "" && len(text) <= 253
}
