package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAZoneSaysOnlyWhatIsNews: its node says something else in every period. Who draws zones hears of a little difference only since the
// zone has to say that it lives, and at once of a large one.
func TestAZoneSaysOnlyWhatIsNews(t *testing.T) {
	x := newTouring(t)
	version := uint64(1)
	period := func(free uint8) (said int) {
		version++
		x.mail = nil
		x.step(protocol.Message{Kind: protocol.Room, From: node("m"), Body: &flow.Summary{Version: version, Usable: true,
			Free: flow.Fragments{free}}})
		for range 10 {
			x.now = x.now.Add(10 * time.Millisecond)
			x.step(protocol.Message{Kind: protocol.Tick})
		}
		return len(of(protocol.ZoneDigest, x.mail))
	}
	period(20)
	period(20)
	said := 0
	for i := range 40 { // 4 s, and it counts as dead after one
		said += period(20 + uint8(i%2))
	}
	if said < 8 || said > 12 {
		t.Errorf("%d digests in 4 s in which a fragment of 20 came and went; want three a second", said)
	}
	if period(14) != 1 {
		t.Error("a third of the room is gone, and the zone says nothing")
	}
}
