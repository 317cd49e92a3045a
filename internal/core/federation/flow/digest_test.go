package flow

import "testing"

func TestDigestNews(t *testing.T) {
	at := func(free, demand uint32, pressure uint16) Digest {
		return Digest{Alive: true, Free: [MaxClasses]uint32{9, free}, Demand: [MaxClasses]uint32{1, demand}, Pressure: pressure}
	}
	for _, c := range []struct {
		name    string
		was, is Digest
		said    bool
	}{
		{name: "nothing has changed", was: at(100, 10, 0), is: at(100, 10, 0)},
		{name: "another version", was: at(100, 10, 0), is: Digest{Alive: true, Free: at(100, 10, 0).Free, Demand: at(100, 10, 0).Demand,
			Version: 9, At: 9}},
		{name: "a quarter less", was: at(100, 0, 0), is: at(75, 0, 0)},
		{name: "more than a quarter less", was: at(100, 0, 0), is: at(74, 0, 0), said: true},
		{name: "more than a quarter more", was: at(74, 0, 0), is: at(100, 0, 0), said: true},
		{name: "demand takes it", was: at(100, 0, 0), is: at(100, 26, 0), said: true},
		{name: "pressure takes it", was: at(100, 0, 0), is: at(100, 0, 260), said: true},
		{name: "a little pressure", was: at(100, 0, 0), is: at(100, 0, 100)},
		{name: "one fragment", was: at(0, 0, 0), is: at(1, 0, 0)},
		{name: "two", was: at(0, 0, 0), is: at(2, 0, 0), said: true},
		{name: "more is asked for than there is", was: at(0, 9, 0), is: at(0, 50, 0)},
		{name: "it dies", was: at(0, 0, 0), is: Digest{Free: at(0, 0, 0).Free, Demand: at(0, 0, 0).Demand}, said: true},
	} {
		if got := c.is.News(&c.was); got != c.said {
			t.Errorf("%s: news: %v", c.name, got)
		}
	}
}
