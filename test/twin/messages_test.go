package twin_test

import (
	"math"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/lab/sim"
)

// ending are the messages about a task once it runs. The others about it are what its placing takes.
var ending = []protocol.Kind{protocol.Running, protocol.Result, protocol.ResultAck, protocol.Published, protocol.Closed, protocol.ClosedAck}

// TestATaskTakesBoundedMessages (adr 0036): to be placed a task takes at most 7, two for each hop, and B_r, which is 3; three more for
// each lease that is lost, and two for each message that is, since it is said again and answered again. Its end takes one of each of six
// kinds, and up to three for each that is lost: without a ResultAck the node says the Result again, and the home, which waits for
// Published, the ResultAck.
func TestATaskTakesBoundedMessages(t *testing.T) {
	for _, loss := range []int64{0, 20_000} {
		for _, load := range []int64{900_000, 1_050_000} {
			o, did, _ := leanWorld(t, 6, load, 8*time.Second)
			c := playLean(t, o, did, sim.Link{Delay: o.Network.Delay, Loss: loss})
			losses, drawn := 0, 0
			for id, said := range c.tasks {
				placing, end := 0, 0
				for _, n := range said {
					placing += n
				}
				for _, k := range ending {
					end += said[k]
				}
				placing -= end
				lost := c.lost[id]
				losses, drawn = losses+lost, drawn+said[protocol.Redraw]
				most := 7 + 2*said[protocol.Probe] + 3 + 3*(said[protocol.RedeemRefused]+said[protocol.LetGo])
				if lost < 0 || placing > most+2*lost || end > len(ending)+3*lost {
					t.Errorf("loss %d, load %d: %s took %d messages to be placed, of %d that it may, and %d to end, with %d lost: %v", loss,
						load, id, placing, most, end, lost, said)
				}
			}
			t.Logf("loss %d, load %d: %d of %d tasks placed, %d messages lost, %d draws", loss, load, c.placed, len(did.tasks), losses,
				drawn)
			// What is lost is said again before patience is over.
			if lost := loss > 0; load == 900_000 && float64(c.placed) < map[bool]float64{false: .995, true: .985}[lost]*float64(
				len(did.tasks)) {
				t.Errorf("loss %d: of %d tasks %d are placed", loss, len(did.tasks), c.placed)
			}
			if len(c.tasks) < 1000 || drawn < 20 || (losses > 100) != (loss > 0) {
				t.Errorf("loss %d, load %d: %d tasks, %d messages lost, %d draws after the first: it shows nothing", loss, load,
					len(c.tasks), losses, drawn)
			}
		}
	}
}

// TestMessagesOfATaskAreFlat (adr 0036): all that gates, zones and nodes say, by tasks placed, is the same in a cluster eight times as
// large under the same load.
func TestMessagesOfATaskAreFlat(t *testing.T) {
	for _, loss := range []int64{0, 20_000} {
		var per []float64
		for _, zones := range []int{4, 32} {
			o, did, _ := leanWorld(t, zones, 900_000, 5*time.Second)
			c := playLean(t, o, did, sim.Link{Delay: o.Network.Delay, Loss: loss})
			per = append(per, float64(c.sent)/float64(c.placed))
			t.Logf("loss %d: %d zones, %d tasks placed: %.2f messages for each", loss, zones, c.placed, per[len(per)-1])
		}
		if math.Abs(per[1]-per[0]) > .05*per[0] {
			t.Errorf("loss %d: %.2f messages for each task with 4 zones, %.2f with 32", loss, per[0], per[1])
		}
	}
}
