package stream

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// TestAMachineOfOneUserIsRefused by a head of several, and the head says so too; one that maps users is not, nor is either by another head.
func TestAMachineOfOneUserIsRefused(t *testing.T) {
	a := newAuthority(t)
	for _, several := range []bool{true, false} {
		h := serveTo(t, a, "", HeadOptions{Caller: caller, SeveralUsers: several})
		for _, maps := range []bool{true, false} {
			name := map[bool]string{true: "maps", false: "one"}[maps]
			m := Join(MemberOptions{Machine: job.NodeID(name), Head: h.addr, MapsUsers: maps,
				TLS: func() (*tls.Config, error) { return a.config(name), nil }})
			t.Cleanup(func() { _ = m.Close() })
			if maps || !several {
				linkedUp(t, h, m)
				continue
			}
			until(t, "both know why there is no link", func() bool {
				at, known := h.Machine(job.NodeID(name))
				_, err := m.State()
				return known && !at.Up && errors.Is(at.Why, ErrOneUser) && err != nil &&
					strings.Contains(err.Error(), "single-user mode")
			})
		}
	}
}
