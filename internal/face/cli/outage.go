package cli

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
	// patience is how long a command waits for a daemon on this machine that does not listen yet: it may be starting, as in
	// `sluice up & sluice jobs`.
	patience = 5 * time.Second
	// The pauses between two tries to reach a daemon that is away.
	leastPause = 50 * time.Millisecond
	mostPause  = 2 * time.Second
)

// dialer connects to the daemon and has patience with one on this machine.
type dialer struct {
	net.Dialer
	patience time.Duration
}

// DialContext is part of http.Transport. Nothing was sent when it fails, so trying again is always safe.
func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	until := time.Now().Add(d.patience)
	for pause := leastPause; ; pause = min(2*pause, mostPause/4) {
		conn, err := d.Dialer.DialContext(ctx, network, addr)
		if err == nil || !absent(err) || !onThisMachine(network, addr) || time.Now().Add(pause).After(until) || !rest(ctx, pause) {
			return conn, err
		}
	}
}

// onThisMachine says whether an address is on this machine.
func onThisMachine(network, addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return network == "unix" || err == nil && here(host)
}

// absent says whether nobody listens there.
func absent(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist)
}

// rest sleeps, and says whether ctx let it.
func rest(ctx context.Context, d time.Duration) bool {
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
	heard bool
	pause time.Duration
}

// again says whether to try again after an error, and when.
func (o *outage) again(ctx context.Context, err error) bool {
	if !o.heard || errkind.Of(err) != errkind.Unavailable || ctx.Err() != nil {
		return false
	}
	if o.pause == 0 {
		o.say(fmt.Sprintf("the daemon at %s is away: waiting for it", o.server))
	}
	o.pause = min(max(leastPause, 2*o.pause), mostPause)
	return rest(ctx, o.pause)
}

// answered notes an answer.
func (o *outage) answered() {
	if o.pause > 0 {
		o.say(fmt.Sprintf("the daemon at %s is back", o.server))
	}
	o.heard, o.pause = true, 0
}
