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
		if b := c.Now(); b.Sub(a) != time.Second || c.Started() != a {
			t.Errorf("one second took %v, and it started at %v", b.Sub(a), c.Started())
		}
		now := time.Now().Add(time.Hour)
		c = Clock{Source: func() time.Time { return now }}
		a = c.Now()
		now = now.Add(-time.Minute)
		if b := c.Now(); b != a {
			t.Errorf("it goes back by %v", a.Sub(b))
		}
		now = now.Add(time.Hour)
		if b := c.Now(); b.Sub(a) != 59*time.Minute {
			t.Errorf("it is %v further", b.Sub(a))
		}
	})
}
