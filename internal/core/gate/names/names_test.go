package names

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestNextLifeIsAboveForgottenOnes, and a name is leaving until its home, the executor and the archive have each confirmed its last life.
func TestNextLifeIsAboveForgottenOnes(t *testing.T) {
	zone, executor, archive := protocol.Address{Role: protocol.Zone, ID: "z"}, protocol.Address{Role: protocol.Executor},
		protocol.Address{Role: protocol.Archive}
	rapid.Check(t, func(t *rapid.T) {
		n, now := New(protocol.Address{Role: protocol.Gate}, true, time.Second), quantity.Instant(1e9)
		said, highest := map[protocol.Role]bool{}, job.Generation(0)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(2 * time.Hour) // longer than any pause
			last := n.Last("j")
			switch what := rapid.IntRange(0, 3).Draw(t, "what"); what {
			case 0:
				highest = n.Next()
				n.Forget(&protocol.Fact{Job: "j", Generation: highest, Epoch: 1, Body: &protocol.Forgetting{Zone: "z"}})
				clear(said)
			default:
				from := []protocol.Address{zone, executor, archive}[what-1]
				of := max(0, last-job.Generation(rapid.IntRange(0, 1).Draw(t, "of an earlier life")))
				m := protocol.Message{Kind: protocol.Purged, From: from, Job: "j", Generation: of + 1}
				if from == zone {
					m.Kind, m.Generation = protocol.Forgotten, of
				}
				if of == last && last > 0 {
					said[from.Role] = true
				}
				var out protocol.Out
				if nothing := n.Left(&m, &out); (nothing > 0) != (last > 0 && len(said) == 3) {
					t.Fatalf("%v have confirmed life %d, and up to %d nobody has anything", said, last, nothing)
				} else if nothing > 0 {
					n.Purge(&protocol.Fact{Job: "j", Generation: nothing})
				}
			}
			if n.Next() <= highest {
				t.Fatalf("the next life is %d, and %d was forgotten", n.Next(), highest)
			}
			again := New(protocol.Address{Role: protocol.Gate}, true, time.Second)
			for _, f := range n.AppendFacts(nil) {
				again.Forget(&f)
			}
			if again.Sum() != n.Sum() || again.Leaves("j") != n.Leaves("j") {
				t.Fatal("its facts fold to something else")
			}
			var out protocol.Out
			n.Tell(now, func(job.ZoneID) bool { return false }, &out)
			for _, m := range out.Effects {
				if said[m.To.Role] || m.To.Role == protocol.Archive && !said[protocol.Zone] {
					t.Fatalf("%v have confirmed, and it says %+v", said, m)
				}
			}
			if n.Leaves("j") && len(out.Effects) == 0 {
				t.Fatal("nobody is told, and somebody has not confirmed")
			}
		}
	})
}
