package settle

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhoSaysThatNothingIsLeft is believed, but not beside a checkpoint that the next subjob starts from, and not
// of one member of a gang for all.
func TestWhoSaysThatNothingIsLeft(t *testing.T) {
	const now = quantity.Instant(1_000_000_000_000)
	d := &Settler{cfg: Config{Skew: time.Second}}
	gang := []protocol.Member{{Node: "a"}, {Node: "b"}}
	for _, c := range []struct {
		says, checkpoint bool
		members          []protocol.Member
		want             bool
	}{
		{says: true, want: true},
		{says: true, checkpoint: true},
		{says: true, members: gang},
		{says: true, members: gang, checkpoint: true},
		{},
		{checkpoint: true},
		{members: gang},
	} {
		said := &job.Result{Start: now, End: now, LeftNothing: c.says, Checkpoint: c.checkpoint}
		of := protocol.Claim{Asked: now.Add(-time.Second)}
		of.Members = c.members
		is := d.plausible(now, &of, said)
		if is.LeftNothing != c.want || is.Checkpoint != c.checkpoint || said.LeftNothing != c.says {
			t.Errorf("%+v: it is taken for %+v, and the result that came is now %+v", c, is, said)
		}
	}
}
