package process

import (
	"slices"
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestWhatAMemberIsTold of the others; what its job says to its framework stays.
func TestWhatAMemberIsTold(t *testing.T) {
	gang := protocol.Plan{Member: 1, Members: 2, Addresses: []string{"fd00::7", "gpu8.example"}, Port: 29417}
	for _, c := range []struct {
		plan protocol.Plan
		own  []string
		want []string
	}{
		{protocol.Plan{}, nil, nil},
		{protocol.Plan{Member: 1, Members: 2}, nil, nil}, // by a build that says no addresses
		{gang, []string{"MASTER_ADDRESS=x"}, []string{"SLUICE_MEMBER_ADDRESSES=fd00::7,gpu8.example", "SLUICE_RENDEZVOUS=[fd00::7]:29417",
			"MASTER_ADDR=fd00::7", "MASTER_PORT=29417"}},
		{gang, []string{"MASTER_PORT=5000"}, []string{"SLUICE_MEMBER_ADDRESSES=fd00::7,gpu8.example", "SLUICE_RENDEZVOUS=[fd00::7]:29417",
			"MASTER_ADDR=fd00::7"}},
	} {
		if got := rendezvous(c.own, &c.plan); !slices.Equal(got, c.want) {
			t.Errorf("beside %q: %q, want %q", c.own, got, c.want)
		}
	}
}
