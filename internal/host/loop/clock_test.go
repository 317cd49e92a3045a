package loop

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClockNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		a := c.Now()
		time.Sleep(time.Second)
		if b := c.Now(); b.Sub(a) != time.Second {
			t.Errorf("one second took %v", b.Sub(a))
		}
		c.last = c.last.Add(time.Hour) // as if the wall clock had been set back by an hour since
		b := c.Now()
		time.Sleep(time.Minute)
		if d := c.Now().Sub(b); b.Sub(a) != time.Hour+time.Second || d != time.Minute {
			t.Errorf("after the clock was set back: at %v, and a minute took %v", b.Sub(a), d)
		}
	})
}
