package departure

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const now = quantity.Instant(1_000_000 * time.Second)

func TestWhatIsNoEnd(t *testing.T) {
	for _, c := range []struct {
		stay Stay
		want string
	}{
		{Stay{}, ""},
		{Stay{Ephemeral: true}, ""},
		{Stay{true, now.Add(11 * time.Second)}, ""},
		{Stay{true, now.Add(Longest)}, ""},
		{Stay{false, now.Add(time.Hour)}, "is not ephemeral"},
		{Stay{true, now.Add(-time.Minute)}, "is over, by 1m0s"},
		{Stay{true, now}, "is over, by 0s"},
		{Stay{true, now.Add(10 * time.Second)}, "nothing could be done before it"},
		{Stay{true, now.Add(Longest + 1)}, "more than 8784h0m0s from now"},
		{Stay{true, quantity.Never}, "from now"},
	} {
		err := c.stay.Check(now, 10*time.Second)
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", c.stay, err)
		case c.want != "" && (err == nil || errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", c.stay, err, c.want)
		}
	}
}

func TestWhenAMachineIsClosedAndLetGo(t *testing.T) {
	if at := Closes(now, 10*time.Second); at != now.Add(-10*time.Second) {
		t.Errorf("it is closed at %d", at)
	}
	if at := Closes(5, 10*time.Second); at <= 0 { // 0 is no instant
		t.Errorf("it is closed at %d", at)
	}
	heard, sold := now.Add(time.Second), now.Add(time.Minute)
	for _, c := range []struct {
		stay Stay
		seen Seen
		want quantity.Instant
	}{
		{Stay{}, Seen{Heard: heard}, quantity.Never},
		{Stay{Ephemeral: true}, Seen{Up: true, Heard: heard}, quantity.Never},
		{Stay{Ephemeral: true}, Seen{Heard: heard}, heard.Add(time.Hour)},
		{Stay{Ephemeral: true}, Seen{Heard: heard, Sold: sold}, sold.Add(time.Hour)},
		{Stay{Ephemeral: true}, Seen{Heard: sold, Sold: heard}, sold.Add(time.Hour)},
		{Stay{true, now}, Seen{Heard: heard, Sold: sold}, now.Add(Skew)},
		{Stay{true, now}, Seen{Up: true, Heard: heard}, now.Add(Skew)}, // its time is over, whatever it says
	} {
		if at := c.stay.LetGo(c.seen, time.Hour); at != c.want {
			t.Errorf("%+v, %+v: let go at %d, want %d", c.stay, c.seen, at, c.want)
		}
	}
}
