package pilots

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider"
)

const (
	// DefaultEvery is how often a host is looked at.
	DefaultEvery = 5 * time.Second
	// DefaultWait is how long a pilot may wait at its host, and then is given back; its token is good for a little longer.
	DefaultWait = 7 * 24 * time.Hour
	// tokenMore is how much longer than the wait a token is good, for a start that has just begun.
	tokenMore = time.Hour
	// leastRest is between two looks at one host, whatever is ordered.
	leastRest = time.Second
	// callTime is how long one call of a host may take.
	callTime = time.Minute
	// closeTime is how long a machine may take to say that it is closed: one that dies meanwhile never does, and the next look asks again.
	closeTime = 3 * time.Second
	// againAfter is how long after a pilot was told to end it is told again, if it is still there: it may have missed it, or be a revenant.
	againAfter = 30 * time.Second
	// lazyLook is between two looks where nothing is there and nothing is wanted. A host is looked at before it is asked for anything.
	lazyLook = 30 * time.Second
)

// Machines are those of the cluster. Safe for concurrent use.
type Machines interface {
	// Token makes a token by which one machine of that name can join, once, within a time.
	Token(name job.NodeID, within time.Duration) (string, error)
	// Withdraw makes tokens good for nothing that nobody has used.
	Withdraw(name job.NodeID) error
	// Machine is the last that has joined by a name; false: none has.
	Machine(name job.NodeID) (Machine, bool)
	// Close has nothing sold any more on a machine that is gone at an earlier end than it has said.
	Close(ctx context.Context, name job.NodeID, c pilot.Closing) error
}

// Machine is one that has joined.
type Machine struct {
	Joined time.Time
	// Up: it is linked now.
	Up bool
	// Until is when it is gone for good, as the cluster knows it; zero: it does not.
	Until time.Time
	// Left is when it left the cluster for good; zero: it is part of it.
	Left time.Time
}

// Options of a Driver. All but Every, Wait and Log are needed.
type Options struct {
	// Pool as it is configured; whether it is paused is in the ledger.
	Pool     supply.Pool
	Provider provider.Provider
	// Kind of the provider, for people.
	Kind     string
	Ledger   *Ledger
	Machines Machines
	// Head is the address that pilots' machines call.
	Head string
	// Every is how often the host is looked at; 0: DefaultEvery. Wait is how long a pilot may wait there; 0: DefaultWait.
	Every, Wait time.Duration
	// Send tells the zone what was seen. It never blocks, and what it is told may be lost.
	Send func(*supply.Sight)
	// Waited tells how long the host's jobs have waited for a pilot that was taken back for them: from the look that first showed that to
	// the pilot's end. One whose end came sooner than a look is not told of. nil: nobody wants to know.
	Waited func(pool string, from, until quantity.Instant)
	// Now is the clock of the actors.
	Now func() time.Time
	Log *slog.Logger
}

// Driver asks one host for the pilots of one pool. Make it with New, drive it with Run; every other method is safe for concurrent use.
type Driver struct {
	o Options
	// part draws the random part of a name.
	part func() string
	kick chan struct{} // capacity 1: look now

	mu sync.Mutex
	// order is the newest one, which was not obeyed yet; nil: there is none. last is the newest of any, lastAt when it came.
	order, last *supply.Order
	lastAt      time.Time
	// sight is the newest that was sent, and looked what the host showed at last.
	// fresh: the host was looked at for it.
	sight  *supply.Sight
	fresh  bool
	looked provider.Look
	seen   time.Time
	silent string

	// Of the goroutine that runs it alone.
	memory memory
}

// memory is what a driver knows besides the ledger. A crash may lose it: then more time passes until the same is known again.
type memory struct {
	// missed are the looks in a row that have not shown a pilot.
	missed map[string]pilot.Missed
	// idle is since when orders have called a pilot idle.
	idle map[string]time.Time
	// told is when pilots were told to end.
	told map[string]time.Time
	// doubled are pilots of which two copies were told of in the log.
	doubled map[string]bool
	// closed is how a machine was closed.
	closed map[string]pilot.Closing
	// recalled is since when a pilot is known to be taken back by its host.
	recalled map[string]quantity.Instant
	// reconciled is when the ledger was last held to what the host showed; 0: it was not since the start.
	reconciled quantity.Instant
	// said is what the last look could not see to.
	said string
	// swept: tokens of pilots that are gone were withdrawn since the start.
	swept bool
}

// New returns a driver. Errors: Invalid.
func New(o Options) (*Driver, error) {
	switch {
	case !provider.SoundPool(o.Pool.Name):
		return nil, errkind.Errorf(errkind.Invalid, "pool %.40q: want a name of at most %d lower-case letters, digits and hyphens, first "+
			"a letter", o.Pool.Name, provider.MostPool)
	case o.Pool.Most < 1 || len(o.Pool.Lengths) == 0 || len(o.Pool.Slices) == 0:
		return nil, errkind.Errorf(errkind.Invalid, "pool %s: it needs a limit, lengths and slices", o.Pool.Name)
	}
	if o.Every <= 0 {
		o.Every = DefaultEvery
	}
	if o.Wait <= 0 {
		o.Wait = DefaultWait
	}
	if o.Waited == nil {
		o.Waited = func(string, quantity.Instant, quantity.Instant) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("pool", o.Pool.Name)
	m := memory{missed: map[string]pilot.Missed{}, idle: map[string]time.Time{}, told: map[string]time.Time{}, doubled: map[string]bool{},
		closed: map[string]pilot.Closing{}, recalled: map[string]quantity.Instant{}}
	return &Driver{o: o, part: part, kick: make(chan struct{}, 1), memory: m}, nil
}

// Pool is the pool's name.
func (d *Driver) Pool() string { return d.o.Pool.Name }

// now is without a monotonic reading, and in UTC, as the ledger has times.
func (d *Driver) now() time.Time { return d.o.Now().Round(0).UTC() }

// moment is no time of 0.
func moment(at quantity.Instant) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(0, int64(at)).UTC()
}

// instant is 0 of no time.
func instant(t time.Time) quantity.Instant {
	if t.IsZero() {
		return 0
	}
	return quantity.At(t)
}

// Pause has the pool ask for nothing more, and give back what waits; by and why are for people. It holds until Resume.
func (d *Driver) Pause(by, why string) error {
	text := by
	if why != "" {
		text = strings.TrimPrefix(by+": "+why, ": ")
	}
	return d.paused(text)
}

// Resume ends a pause.
func (d *Driver) Resume() error { return d.paused("") }

func (d *Driver) paused(text string) error {
	err := d.o.Ledger.change(d.o.Pool.Name, func(b *book) error { b.Paused = text; return nil })
	if err != nil {
		return err
	}
	d.mu.Lock()
	d.order = nil // it was decided otherwise
	d.mu.Unlock()
	return nil
}
