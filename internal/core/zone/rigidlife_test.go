package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// BenchmarkRigidLife is BenchmarkLife where rigid jobs wait too, whose head is planned anew whenever something changes: it
// needs more time than the windows that are open have.
func BenchmarkRigidLife(b *testing.B) {
	for _, c := range []struct{ rigid, slices int }{{1, 256}, {1000, 16}, {1000, 256}, {1000, 4096}} {
		b.Run(fmt.Sprintf("rigid=%d/slices=%d", c.rigid, c.slices), func(b *testing.B) {
			takesLong(b, c.slices > 256)
			l := newLives(b, fifo.Policy{}, 1000, c.slices)
			l.later = 2 * time.Hour
			for i := range c.rigid {
				s := rigid(b, fmt.Sprintf("r%06d", i), time.Hour, 1000, 1)
				l.tell(protocol.Message{Kind: protocol.Adopt, Job: s.Name, Epoch: 1,
					Body: &protocol.Adoption{Spec: s, At: quantity.Instant(i)}})
			}
			for range c.slices {
				l.life()
			}
			l.steps = 0
			b.ReportAllocs()
			for b.Loop() {
				l.life()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(l.steps), "ns/step")
		})
	}
}
