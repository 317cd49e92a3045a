package membership

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/authority"
)

const (
	// lookEvery is how often the clock is looked at, which may be set, or go on while the machine sleeps; and the least time between two
	// renewals, since by a clock that is days ahead each is due at once.
	lookEvery = time.Hour
	// retryFirst and retryLast are how long a renewal that has failed waits, from the first to the last, doubled each time.
	retryFirst, retryLast = time.Minute, 30 * time.Minute
	// refusedEvery is the same where the head has refused it: a person must do something first.
	refusedEvery = 6 * time.Hour
)

// Keep renews the machine's certificate until ctx is done. A head that is away is asked again and again: a certificate is good for days
// after its renewal is due. One that has lapsed the head does not take, but the clock may be set right.
func (m *Membership) Keep(ctx context.Context) { m.keep(ctx, m.renew) }

func (m *Membership) keep(ctx context.Context, renew func(context.Context) error) {
	var r retries
	for d := m.untilDue(); wait(ctx, d+rand.N(max(d, 0)/4+1)); { // not all machines may ask at once
		if left := m.untilDue(); left > 0 {
			d = left
			continue
		}
		err := renew(ctx)
		if ctx.Err() != nil {
			return
		}
		m.note(err)
		d = r.next(err)
	}
}

// untilDue is how long to wait before the clock is looked at again; 0 or less: there is something to do now.
func (m *Membership) untilDue() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dirty {
		return 0
	}
	return min(lookEvery, authority.Renewal(m.cert).Sub(m.options.Now()))
}

// note keeps and logs how a renewal went; a failure only where it is another than before.
func (m *Membership) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.options.Log.Info("this machine's certificate was renewed", "until", m.cert.NotAfter)
	case m.why == nil || m.why.Error() != err.Error():
		m.options.Log.Warn("this machine's certificate was not renewed; what runs goes on, and it is tried again", "until", m.cert.NotAfter,
			"why", err)
	}
	m.why = err
}

// retries are how long renewals wait.
type retries struct {
	last time.Duration // 0: the last renewal was none that failed
}

// next is the wait after a renewal.
func (r *retries) next(err error) time.Duration {
	switch {
	case err == nil:
		r.last = 0
		return lookEvery
	case errors.Is(err, errUnfit):
		return retryLast // nobody is asked
	case errkind.Of(err) == errkind.Denied:
		return refusedEvery
	}
	r.last = min(max(2*r.last, retryFirst), retryLast)
	return r.last
}
