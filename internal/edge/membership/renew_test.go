package membership

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/authority"
)

// copyOf is a copy of a machine's directory.
func copyOf(t *testing.T, dir string) string {
	t.Helper()
	at := t.TempDir()
	text, err := os.ReadFile(filepath.Join(dir, membershipFile))
	if err == nil {
		err = os.WriteFile(filepath.Join(at, membershipFile), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The next certificate is shown by the next call, and after a restart. The one before is good until it lapses, so that an old copy of the
// directory can be renewed.
func TestARenewedCertificate(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	m := c.join(dir, c.invite("a"))
	first := shown(t, m)
	old := copyOf(t, dir)
	c.clock.advance(5 * 24 * time.Hour)
	if err := m.renew(within(t)); err != nil {
		t.Fatal(err)
	}
	second := shown(t, m)
	again, err := Open(Options{Dir: dir, Now: c.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first, second) || !bytes.Equal(shown(t, again), second) || again.Number() != authority.FirstNumber {
		t.Error("the next certificate is not kept")
	}
	copied, err := Open(Options{Dir: old, Now: c.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	if err := copied.renew(within(t)); err != nil {
		t.Errorf("an old copy: %v", err)
	}
	c.clock.advance(4 * 24 * time.Hour) // the first one has lapsed
	c.link(again)
	if _, err := again.Settings(within(t)); err != nil {
		t.Error(err)
	}
}

// A lapsed certificate is of no use to anybody: its machine says what to do, and joins again once it was removed.
func TestALapsedCertificate(t *testing.T) {
	c := newCluster(t, nil)
	var here clock
	dir := t.TempDir()
	m, err := Join(within(t), Options{Dir: dir, Now: here.now}, c.invite("a"))
	if err != nil {
		t.Fatal(err)
	}
	c.clock.advance(authority.CertificateFor - 45*time.Minute) // the head's own was made anew, good from an hour before that on
	if _, err = m.Settings(within(t)); err == nil {
		t.Error("a head that is days ahead was taken")
	}
	here.advance(authority.CertificateFor - time.Hour)
	if _, err = m.Settings(within(t)); err != nil {
		t.Error(err)
	}
	c.clock.advance(90 * time.Minute)
	// The head's alert says why, but may come after the connection is closed.
	refuses(t, m.renew(within(t)), errkind.Unavailable, "")
	here.advance(2 * time.Hour)
	err = m.renew(within(t))
	refuses(t, err, errkind.Denied, "sluice nodes remove a")
	if !errors.Is(err, errUnfit) {
		t.Errorf("the head was asked: %v", err)
	}
	// What was kept is good for a start all the same.
	if got, err := m.Settings(within(t)); err != nil || got.Zone != "z-a" {
		t.Errorf("the last settings: %+v, %v", got, err)
	}
	here.ahead.Store(int64(-3 * time.Hour))
	_, err = m.TLS()
	refuses(t, err, errkind.Unavailable, "set the clock")
	here.ahead.Store(int64(authority.CertificateFor + 2*time.Hour))
	// It joins again, once it was removed.
	by := c.invite("a")
	_, err = Join(within(t), Options{Dir: dir, Now: here.now}, by)
	refuses(t, err, errkind.Exists, "sluice nodes remove a")
	if err = c.Remove("a", c.clock.now()); err != nil {
		t.Fatal(err)
	}
	if m, err = Join(within(t), Options{Dir: dir, Now: here.now}, by); err != nil || m.Number() != authority.FirstNumber+1 {
		t.Fatal(err)
	}
	if _, err = m.Settings(within(t)); err != nil {
		t.Error(err)
	}
}

// A machine that was removed is told so by every call, and what it had before is of no use after it has joined again.
func TestAMachineThatWasRemoved(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	m := c.join(dir, c.invite("a"))
	link := c.link(m)
	if _, err := m.Settings(within(t)); err != nil { // they are not used once the head has refused it
		t.Fatal(err)
	}
	if err := c.Remove("a", c.clock.now()); err != nil {
		t.Fatal(err)
	}
	c.links.Expel("a", errors.New("removed"))
	until(t, "the link is refused", func() bool {
		_, err := link.State()
		return err != nil && bytes.Contains([]byte(err.Error()), []byte("was removed"))
	})
	err := m.renew(within(t))
	refuses(t, err, errkind.Denied, "was removed")
	if !errors.Is(err, authority.ErrRemoved) {
		t.Errorf("it is not told apart from other refusals: %v", err)
	}
	if _, why := link.State(); !errors.Is(why, authority.ErrRemoved) {
		t.Errorf("the link is down for %v", why)
	}
	_, err = m.Settings(within(t))
	refuses(t, err, errkind.Denied, "was removed")
	old := copyOf(t, dir)
	again := c.join(dir, c.invite("a"))
	if again.Number() == m.Number() {
		t.Errorf("number %d was given twice", m.Number())
	}
	c.link(again)
	copied, err := Open(Options{Dir: old})
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, copied.renew(within(t)), errkind.Denied, "was removed")
}

// A head that knows this machine by another number has lost or mixed up what it knew: tokens of subjobs would be another machine's.
func TestANumberThatChanges(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	c.join(dir, c.invite("a"))
	k, err := readKept(dir)
	if err != nil {
		t.Fatal(err)
	}
	k.Joined.Number += 3
	if err = k.write(dir); err != nil {
		t.Fatal(err)
	}
	m, err := Open(Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	refuses(t, m.renew(within(t)), errkind.Corrupt, "may be of an old copy")
	if m.Number() != authority.FirstNumber+3 {
		t.Errorf("its number is %d now", m.Number())
	}
}

// A certificate that can't be kept is used, and kept later without another call.
func TestACertificateThatCantBeKept(t *testing.T) {
	c := newCluster(t, nil)
	dir := t.TempDir()
	m := c.join(dir, c.invite("a"))
	first := shown(t, m)
	free := blocked(t, filepath.Join(dir, membershipFile))
	if err := m.renew(within(t)); err == nil {
		t.Error("it was kept")
	}
	second := shown(t, m)
	if bytes.Equal(first, second) || m.untilDue() > 0 {
		t.Error("it is not used, or not tried again")
	}
	c.shut()
	free()
	if err := m.renew(within(t)); err != nil {
		t.Error(err)
	}
	if again, err := Open(Options{Dir: dir}); err != nil || !bytes.Equal(shown(t, again), second) || m.untilDue() <= 0 {
		t.Errorf("it is not kept: %v", err)
	}
}

// Keep asks when a renewal is due, not much later, and seldom where that is of no use. The head is a function, time that of a bubble.
func TestKeep(t *testing.T) {
	away := errkind.Errorf(errkind.Unavailable, "away")
	removed := errkind.Errorf(errkind.Denied, "removed")
	const day = 24 * time.Hour
	for _, s := range []struct {
		name string
		// answers is what the head says at a time after the certificate was made.
		answers func(since time.Duration) error
		ahead   time.Duration // of this machine's clock
		runs    time.Duration
		// asked is how often at least and at most.
		least, most int
		renewed     int // at least
	}{
		{"the head answers", func(time.Duration) error { return nil }, 0, 60 * day, 10, 14, 10},
		{"it is away until a day after it is due", func(d time.Duration) error {
			if d < authority.CertificateFor*2/3+day {
				return away
			}
			return nil
		}, 0, 8 * day, 30, 80, 1},
		{"it is never there", func(time.Duration) error { return away }, 0, 14 * day, 100, 500, 0},
		{"it refuses", func(time.Duration) error { return removed }, 0, 14 * day, 20, 60, 0},
		{"the clock is days ahead", func(time.Duration) error { return nil }, 6 * day, day, 15, 25, 15},
	} {
		t.Run(s.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				certificate := func() *x509.Certificate {
					return &x509.Certificate{NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(authority.CertificateFor)}
				}
				o := Options{Now: func() time.Time { return time.Now().Add(s.ahead) }}.filled()
				m := &Membership{options: o, cert: certificate()}
				ctx, stop := context.WithCancel(t.Context())
				var asked, renewed int
				done := make(chan struct{})
				go func() {
					defer close(done)
					m.keep(ctx, func(context.Context) error {
						asked++
						err := s.answers(time.Since(begun))
						if err == nil {
							renewed++
							m.mu.Lock()
							m.cert = certificate()
							m.mu.Unlock()
						}
						return err
					})
				}()
				time.Sleep(s.runs)
				until, why := m.State()
				stop()
				<-done
				if asked < s.least || asked > s.most || renewed < s.renewed {
					t.Errorf("asked %d times, want %d to %d; renewed %d times, want %d", asked, s.least, s.most, renewed, s.renewed)
				}
				if (why == nil) != (renewed > 0) || renewed > 0 && time.Until(until) <= 0 {
					t.Errorf("good until %v, %v", until, why)
				}
			})
		})
	}
}

// What failed is asked again ever later, a lapsed certificate is only looked at.
func TestRetries(t *testing.T) {
	var r retries
	away := errors.New("away")
	for i, s := range []struct {
		err  error
		want time.Duration
	}{
		{away, time.Minute}, {away, 2 * time.Minute}, {away, 4 * time.Minute}, {away, 8 * time.Minute}, {away, 16 * time.Minute},
		{away, 30 * time.Minute}, {away, 30 * time.Minute}, {nil, time.Hour}, {away, time.Minute},
		{errkind.Errorf(errkind.Denied, "removed"), 6 * time.Hour}, {errkind.Errorf(errkind.Denied, "%w", errUnfit), 30 * time.Minute},
	} {
		if got := r.next(s.err); got != s.want {
			t.Errorf("%d: after %v: %v, want %v", i, s.err, got, s.want)
		}
	}
}
