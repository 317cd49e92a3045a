package stream

import (
	"crypto/tls"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Two sides whose clocks differ, over a network whose ways take long and differ: the offset is right within half of the shortest round trip
// (RFC 5905), and the round trip leaves out what the other side waited.
func TestOffset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := func(name string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Millisecond
		}
		ahead := ms("ahead", -60_000, 60_000)
		here, there := &pulse{}, &pulse{}
		now := time.Unix(1_000_000, 0)
		shortest := time.Duration(-1)
		took, measured := time.Duration(0), 0
		here.measured = func(other time.Time, round time.Duration) {
			if wrong := other.Sub(now.Add(ahead)).Abs(); round != took || wrong > round/2 {
				t.Fatalf("measured %v, wrong by %v; the way took %v", round, wrong, took)
			}
			measured++
		}
		beats := rapid.IntRange(2, 20).Draw(t, "beats")
		for range beats {
			out, stay, back := ms("out", 1, 200), ms("stay", 0, 900), ms("back", 1, 200)
			b := here.next(now)
			now = now.Add(out)
			there.hear(now.Add(ahead), b)
			now = now.Add(stay)
			b = there.next(now.Add(ahead))
			now = now.Add(back)
			took = out + back
			here.hear(now, b)
			if shortest < 0 || out+back < shortest {
				shortest = out + back
			}
			now = now.Add(ms("pause", 0, 1000))
		}
		if measured != beats {
			t.Fatalf("%d measurements are told of %d", measured, beats)
		}
		best, _ := here.best()
		if len(here.trips) < looks && best.round != shortest {
			t.Fatalf("the round trip is %v, want %v", best.round, shortest)
		}
		if wrong := (best.offset - ahead).Abs(); wrong > best.round/2+time.Microsecond {
			t.Fatalf("the offset is %v, want %v within %v", best.offset, ahead, best.round/2)
		}
	})
}

// A clock that is set back between a beat and its answer gives no measurement.
func TestAClockThatIsSetBack(t *testing.T) {
	here, there := &pulse{}, &pulse{}
	here.measured = func(time.Time, time.Duration) { t.Error("a measurement is told") }
	now := time.Unix(1_000_000, 0)
	there.hear(now, here.next(now))
	here.hear(now.Add(-time.Hour), there.next(now))
	if len(here.trips) != 0 {
		t.Errorf("measured %v", here.trips)
	}
	if best, _ := here.best(); best != (trip{}) {
		t.Errorf("best is %v", best)
	}
}

// TestAMachineMeasuresItsHeadsClock, not the wall clock of the machine that the head is on, whatever its own says.
func TestAMachineMeasuresItsHeadsClock(t *testing.T) {
	const ahead, behind = time.Hour, 30 * time.Minute
	a := newAuthority(t)
	h := serveTo(t, a, "", HeadOptions{Caller: caller, Build: "head", Timing: brisk,
		Now: func() time.Time { return time.Now().Add(ahead) }})
	config, offs := a.config("n"), make(chan time.Duration, 1)
	m := Join(MemberOptions{Machine: "n", Head: h.addr, TLS: func() (*tls.Config, error) { return config, nil }, Timing: brisk,
		Now: func() time.Time { return time.Now().Add(-behind) },
		Measured: func(head time.Time, _ time.Duration) {
			select {
			case offs <- time.Until(head):
			default:
			}
		}})
	defer m.Close()
	select {
	case off := <-offs:
		if (off - ahead).Abs() > patience {
			t.Errorf("the head's clock is said to be %v ahead, want %v", off, ahead)
		}
	case <-time.After(patience):
		t.Fatal("nothing is measured")
	}
	until(t, "the head sees how wrong the machine's clock is", func() bool {
		l, ok := h.Machine("n")
		return ok && l.RoundTrip > 0 && (l.Offset+ahead+behind).Abs() < patience
	})
}
