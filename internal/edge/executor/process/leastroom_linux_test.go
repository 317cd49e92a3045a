package process

import "testing"

// TestLeastRoom: a machine that is short of room begins again only once there is a quarter more.
func TestLeastRoom(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct{ size, least, again int64 }{
		{100 * mib, 5 * mib, 6*mib + mib/4},
		{5120 * mib, 256 * mib, 320 * mib},
		{1 << 50, 256 * mib, 320 * mib},
	} {
		if least, again := leastRoom(c.size, false), leastRoom(c.size, true); least != c.least || again != c.again {
			t.Errorf("of %d bytes %d are to be free, and then %d; want %d and %d", c.size, least, again, c.least, c.again)
		}
	}
}
