package lend

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/federation/loan"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// zone is one without slices, which notes what it says to homes.
type zone struct{ said []*protocol.Lending }

func (*zone) Asking(job.ID) bool { return false }

func (z *zone) Lent(_ quantity.Instant, _ job.ID, l *protocol.Lending, _ *protocol.Out) {
	z.said = append(z.said, l)
}

func (z *zone) Send(_ *protocol.Out, m protocol.Message) {
	z.said = append(z.said, m.Body.(*protocol.Lending))
}

// TestTheLatestWordOfAHomeCounts, and counts no longer than it is said again.
func TestTheLatestWordOfAHomeCounts(t *testing.T) {
	self, home := protocol.Address{Role: protocol.Zone, ID: "z"}, protocol.Address{Role: protocol.Zone, ID: "y"}
	floor := market.NewFloor(market.FloorConfig{Self: self, Policy: fifo.Policy{}, Horizon: time.Hour, MinWindow: time.Second}, nil)
	z := &zone{}
	g := New(self, z, backfill.New(backfill.Config{Retry: time.Second, AskTTL: time.Second}, floor, nil))
	spec := &job.Spec{Name: "j", Kind: job.Rigid, Total: 1, Slices: 4, Safe: trp.Table{Bounds: []int64{1}, Least: [][]quantity.Amount{{1}}}}
	lend := func(now quantity.Instant, from protocol.Address, epoch uint32, seq uint64, slices int) {
		g.Lend(now, from, "j", epoch, &protocol.Loan{Seq: seq, Slices: slices, Spec: spec, Length: time.Minute})
	}
	owes := func(now quantity.Instant) int {
		z.said = nil
		g.Answer(now, &protocol.Out{})
		return len(z.said)
	}
	now := quantity.Instant(1e9)
	for _, c := range []struct {
		name   string
		from   protocol.Address
		epoch  uint32
		seq    uint64
		slices int
		answer int
		kept   bool
	}{
		{"the first word", home, 1, 5, 2, 1, true},
		{"an older one", home, 1, 4, 3, 0, true},
		{"the same again", home, 1, 5, 2, 0, true},
		{"somebody else's", self, 1, 9, 2, 0, true},
		{"a later one", home, 1, 6, 2, 1, true},
		{"that of a later home", self, 2, 1, 2, 1, true},
		{"it needs none", self, 2, 2, 0, 0, false},
		{"it needs some again", self, 2, 3, 2, 1, true},
	} {
		lend(now, c.from, c.epoch, c.seq, c.slices)
		if n := owes(now); n != c.answer || (g.Find("j") != nil) != c.kept {
			t.Errorf("%s: %d answers, want %d; it is a guest: %v", c.name, n, c.answer, g.Find("j") != nil)
		}
	}
	if g.Expire(now.Add(loan.Stands - 1)); g.Find("j") == nil {
		t.Error("its time is not over")
	}
	if g.Expire(now.Add(loan.Stands)); g.Find("j") != nil || !g.Owes() {
		t.Error("its home is silent, and it stays")
	}
	var none *Guests
	if none.Expire(now); none.Owes() || none.Find("j") != nil || none.Next() != quantity.Never {
		t.Error("a zone alone has guests")
	}
}
