package membership

import (
	"errors"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/authority"
)

// staying joins a machine that says how long it is there.
func (c *cluster) staying(dir string, by Invited, s *Stay) *Membership {
	c.t.Helper()
	m, err := Join(within(c.t), Options{Dir: dir, Now: c.clock.now, Stay: s}, by)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func (c *cluster) settings(m *Membership) departure.Stay {
	c.t.Helper()
	s, err := m.Settings(within(c.t))
	if err != nil {
		c.t.Fatal(err)
	}
	return s.Stay
}

// TestAMachineSaysHowLongItIsThere: with the call by which it joins and with each start; who says nothing is as before, also while the head
// is away. A length of time counts by the head's clock, which is an hour ahead.
func TestAMachineSaysHowLongItIsThere(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	at := time.Now().Add(5 * time.Hour).Round(0)
	until := departure.Stay{Ephemeral: true, Until: quantity.At(at)}
	m := c.staying(dir, c.invite("a"), &Stay{Ephemeral: true, Until: at})
	if got := c.Stay("a"); got != until {
		t.Errorf("once it has joined it stays %+v", got)
	}
	if got := c.settings(m); got != until {
		t.Errorf("it hears %+v", got)
	}
	again, err := Open(Options{Dir: dir, Now: c.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.settings(again); got != until || c.Stay("a") != until {
		t.Errorf("a start that says nothing has %+v", got)
	}
	c.clock.advance(time.Hour)
	if err = again.SetStay(within(t), Stay{Ephemeral: true, Until: time.Now().Add(time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if off := c.Stay("a").Until.Sub(quantity.At(c.clock.now().Add(time.Minute))); off > 0 || off < -patience {
		t.Errorf("a minute from now is off by %v", off)
	}
	if err = again.SetStay(within(t), Stay{Ephemeral: true}); err != nil {
		t.Fatal(err)
	}
	ephemeral := departure.Stay{Ephemeral: true}
	if got := c.settings(again); got != ephemeral {
		t.Errorf("it hears %+v", got)
	}
	c.shut()
	away, err := Open(Options{Dir: dir, Now: c.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.settings(away); got != ephemeral {
		t.Errorf("while the head is away it has %+v", got)
	}
	said, err := Open(Options{Dir: dir, Now: c.clock.now, Stay: &Stay{Ephemeral: true, Until: at}})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.settings(said); got != until {
		t.Errorf("while the head is away it says %+v", got)
	}
	c.serve(nil)
	if _, err = said.Start(within(t)); err != nil || c.Stay("a") != until {
		t.Errorf("once the head is back it knows %+v, %v", c.Stay("a"), err)
	}
}

// TestAnEndThatIsNone is refused before the token is used up.
func TestAnEndThatIsNone(t *testing.T) {
	c := newCluster(t, nil)
	by := c.invite("a")
	for what, until := range map[string]time.Time{
		"is over, by": time.Now().Add(-time.Hour).Round(0), "from now": time.Now().Add(2 * departure.Longest),
	} {
		_, err := Join(within(t), Options{Dir: t.TempDir(), Now: c.clock.now, Stay: &Stay{Ephemeral: true, Until: until}}, by)
		refuses(t, err, errkind.Invalid, what)
	}
	if m := c.staying(t.TempDir(), by, &Stay{Ephemeral: true}); m.Number() != authority.FirstNumber {
		t.Errorf("it has joined as number %d", m.Number())
	}
}

// TestAMachineLeavesForGood: its certificate is worth nothing from then on, and to leave once more is to have left. By a new token it joins
// again, under another number.
func TestAMachineLeavesForGood(t *testing.T) {
	var left []job.NodeID
	c := newCluster(t, func(o *HeadOptions) {
		remove := o.filled().Left
		o.Left = func(name job.NodeID) error { left = append(left, name); return remove(name) }
	})
	dir := t.TempDir()
	m := c.staying(dir, c.invite("a"), &Stay{Ephemeral: true})
	for range 2 {
		if err := m.Leave(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	if len(left) != 1 || left[0] != "a" || c.Has("a") {
		t.Errorf("%v have left, machines: %+v", left, c.Machines())
	}
	if _, err := m.Settings(within(t)); !errors.Is(err, authority.ErrRemoved) {
		t.Errorf("it goes on: %v", err)
	}
	again := c.staying(dir, c.invite("a"), nil)
	if again.Number() != authority.FirstNumber+1 || c.settings(again) != (departure.Stay{}) {
		t.Errorf("it joins again as number %d, and stays %+v", again.Number(), c.Stay("a"))
	}
	c.shut()
	refuses(t, again.Leave(within(t)), errkind.Unavailable, "can't be reached")
}

// TestAnEndThatIsOver: a machine that has joined starts again, since it has what it did to hand over.
func TestAnEndThatIsOver(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	c.staying(dir, c.invite("a"), &Stay{Ephemeral: true})
	for _, until := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(-time.Hour).Round(0)} {
		m, err := Open(Options{Dir: dir, Now: c.clock.now, Stay: &Stay{Ephemeral: true, Until: until}})
		if err != nil {
			t.Fatal(err)
		}
		if got := c.settings(m); got.Until.Sub(quantity.At(until)).Abs() > patience {
			t.Errorf("it stays %+v", got)
		}
	}
}
