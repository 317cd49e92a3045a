package session

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	// The pauses between two tries to reach a daemon that is away.
	leastPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// dial connects to an address.
type dial func(ctx context.Context, network, addr string) (net.Conn, error)

// patiently is to, but where nobody listens on this machine it tries again for as long as patience lasts. Nothing was sent
// when a dial fails, so that is always safe.
func patiently(patience time.Duration, to dial) dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		until := time.Now().Add(patience)
		for pause := leastPause; ; pause = min(2*pause, mostPause/4) {
			conn, err := to(ctx, network, addr)
			if err == nil || !absent(err) || time.Now().Add(pause).After(until) || !Rest(ctx, pause) {
				return conn, err
			}
		}
	}
}

// absent reports whether nobody listens there.
func absent(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// Rest sleeps, and says whether ctx let it.
func Rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// outage lets a command that takes long outlast a restart of the daemon: it says once that the daemon is away and once that
// it is back. A daemon that has never answered is not waited for.
type outage struct {
	say    func(string)
	server string
	// heard: the daemon has answered.
	Heard bool
	Pause time.Duration
}

// Again reports whether to try again after an error, and when.
func (o *outage) Again(ctx context.Context, err error) bool {
	if !o.Heard || errkind.Of(err) != errkind.Unavailable || ctx.Err() != nil {
		return false
	}
	if o.Pause == 0 {
		o.say(fmt.Sprintf("the daemon at %s is away: waiting for it", o.server))
	}
	o.Pause = min(max(leastPause, 2*o.Pause), mostPause)
	return Rest(ctx, o.Pause)
}

// Answered notes an answer.
func (o *outage) Answered() {
	if o.Pause > 0 {
		o.say(fmt.Sprintf("the daemon at %s is back", o.server))
	}
	o.Heard, o.Pause = true, 0
}

// Patiently asks again while the daemon is away, and says so on stderr. heard: it has answered before; one that has not is not waited for.
func (a *Session) Patiently(ctx context.Context, heard bool, ask func() error) error {
	away := a.Away(func(text string) { fmt.Fprintln(a.Err, "sluice: "+text) })
	away.Heard = heard
	for {
		err := ask()
		if err == nil {
			away.Answered()
			return nil
		}
		if !away.Again(ctx, err) {
			return err
		}
	}
}

// Away is an outage of the daemon that is called, which is reported with say.
func (a *Session) Away(say func(text string)) *outage { return &outage{server: a.server, say: say} }
