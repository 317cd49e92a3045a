package loop

import (
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/host/watches"
)

// TestNewsOfAStartWaitsWithItsFact for others to share the sync, for so long at most; a message that somebody elsewhere waits for has the
// facts of the turn synced at once, those that waited too.
func TestNewsOfAStartWaitsWithItsFact(t *testing.T) {
	own, home := protocol.Address{Role: protocol.Node, ID: "m"}, protocol.Address{Role: protocol.Zone, ID: "z"}
	synctest.Test(t, func(t *testing.T) {
		l := New(Parts{Watches: &watches.Watches{}})
		l.index[own] = 0
		produce := func(k protocol.FactKind, effects ...protocol.Message) {
			from := l.turn.mark()
			l.turn.out.Facts = append(l.turn.out.Facts, protocol.Fact{Kind: k, Job: "j", Token: job.Token{Epoch: 1, Seq: 1}})
			l.turn.out.Effects = append(l.turn.out.Effects, effects...)
			l.turn.sign(own, 1, from)
			l.relay()
		}
		for _, k := range []protocol.Kind{protocol.Leased, protocol.Result, protocol.Published, protocol.RedeemRefused} {
			produce(protocol.SubjobStarted, protocol.Message{Kind: protocol.Running, To: home})
			if more := l.gather(); more != gatherFor {
				t.Errorf("what tells of a start waits for %v, want %v", more, gatherFor)
			}
			time.Sleep(gatherFor / 5)
			produce(protocol.SubjobVacated)
			if more := l.gather(); more != gatherFor-gatherFor/5 {
				t.Errorf("with more news it waits for %v more, want what is left of %v", more, gatherFor)
			}
			produce(protocol.SubjobEnded, protocol.Message{Kind: k, To: home})
			if more := l.gather(); more != 0 {
				t.Errorf("a message of kind %d waits for %v, want not at all", k, more)
			}
			if n := len(l.turn.out.Effects); n != 2 {
				t.Errorf("%d messages leave, want both", n)
			}
			l.turn.reset()
		}
		produce(protocol.SubjobStarted, protocol.Message{Kind: protocol.Running, To: home})
		l.gather()
		time.Sleep(gatherFor)
		if more := l.gather(); more != 0 {
			t.Errorf("after %v it waits for %v more", gatherFor, more)
		}
	})
}
