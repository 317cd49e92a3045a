package authority

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// idBytes of the root's key are enough to tell the few clusters apart that one user of a host may have.
const idBytes = 4

// ID tells this cluster from others, for as long as its root is the same: 8 lower-case hexadecimal digits.
func (a *Authority) ID() string {
	sum := sha256.Sum256(a.cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:idBytes])
}

// Withdraw makes tokens good for nothing that are for this machine alone and that nobody has used. A machine that has joined stays, and may
// still ask again for the answer by which it did. If there are none nothing changes, so it may be called again.
func (a *Authority) Withdraw(name job.NodeID) error {
	if name == "" {
		return nil // such tokens are for any machine
	}
	open := func(t token) bool { return t.For == name && t.Used == "" }
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.members.Tokens, open) {
		return nil
	}
	return a.change(func(m *members) error {
		m.Tokens = slices.DeleteFunc(m.Tokens, open)
		return nil
	})
}

// Latest is the last machine that has joined by a name, also one that was removed and is kept; false: none has.
func (a *Authority) Latest(name job.NodeID) (Machine, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range slices.Backward(a.members.Machines) {
		if m.Name == name {
			return m, true
		}
	}
	return Machine{}, false
}
