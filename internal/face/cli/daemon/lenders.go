package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/departure"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/provider"
	kinds "sluice.dev/sluice/internal/edge/provider/all"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/host/pilots"
)

// lenders are the pools of a head: each has a provider, and a driver that asks it for pilots.
type lenders struct {
	circle    *circle
	ledger    *pilots.Ledger
	providers []provider.Provider
	drivers   []*pilots.Driver
	pools     []supply.Pool
	log       *slog.Logger
}

// openLenders opens the providers of a head's file; without any it still reads what pilots there were. The ledger is read before anything
// is opened. Errors: those of the ledger and the providers, all of these at once; Exists where a machine is called as a pool.
func openLenders(o *Options, data string, c *circle) (*lenders, error) {
	ledger, err := pilots.OpenLedger(data)
	if err != nil {
		return nil, err
	}
	l := &lenders{circle: c, ledger: ledger, log: o.Log}
	var errs []error
	for i := range o.File.Providers {
		if err := l.add(o, &o.File.Providers[i]); err != nil {
			errs = append(errs, fmt.Errorf("provider %s: %w", o.File.Providers[i].Pool.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(errkind.Errorf(errkind.Of(errs[0]), "%w", err), l.close())
	}
	return l, nil
}

// add opens one.
func (l *lenders) add(o *Options, p *config.Provider) error {
	name := p.Pool.Name
	if l.circle.authority.Has(job.NodeID(name)) {
		return errkind.Errorf(errkind.Exists, "a machine called so has joined this cluster: give the provider another name")
	}
	open := o.Providers
	if open == nil {
		open = kinds.Open
	}
	opened, err := open(l.circle.authority.ID(), p)
	if err != nil {
		return err
	}
	l.providers = append(l.providers, opened)
	at := p.Head
	if at == "" {
		at = l.circle.address
	}
	d, err := pilots.New(pilots.Options{
		Pool: p.Pool, Kind: p.Kind, Provider: opened, Ledger: l.ledger, Machines: pilotMachines{l.circle}, Head: at, Every: p.Every,
		Send: l.tell, Waited: l.waited, Now: l.circle.clock.Now, Log: o.Log,
	})
	if err != nil {
		return err
	}
	l.drivers, l.pools = append(l.drivers, d), append(l.pools, p.Pool)
	return nil
}

// tell tells the zone what is known of a pool; before there is a zone it is lost.
func (l *lenders) tell(s *supply.Sight) {
	if l.circle.host != nil {
		l.circle.host.Lent.Sighted(s)
	}
}

// waited records what the jobs of a pool's host have waited for a pilot.
func (l *lenders) waited(pool string, from, until quantity.Instant) {
	if l.circle.host != nil {
		l.circle.host.Lent.HostWaited(&status.HostWait{Pool: pool, From: from, Until: until})
	}
}

// run drives the pools until ctx is done. Pilots go on.
func (l *lenders) run(ctx context.Context) {
	l.orphans()
	var all sync.WaitGroup
	for _, d := range l.drivers {
		all.Go(func() { d.Run(ctx) })
	}
	all.Wait()
}

// orphans withdraws the tokens of pilots whose pool is not in the file any more: nobody looks at their host, and what starts there ends by
// itself. The ledger keeps them, for when the pool is back.
func (l *lenders) orphans() {
	for _, pool := range l.ledger.Pools() {
		names := l.ledger.Names(pool)
		if len(names) == 0 || l.driver(pool) != nil {
			continue
		}
		l.log.Warn("pilots are left at a host whose provider is not in the daemon's file any more: cancel them there, or put it back",
			"pool", pool, "pilots", strings.Join(names, ", "))
		for _, name := range names {
			if err := l.circle.authority.Withdraw(job.NodeID(name)); err != nil {
				l.log.Warn("a pilot's token is not withdrawn", "pilot", name, "error", err)
			}
		}
	}
}

// close gives the providers back.
func (l *lenders) close() error {
	if l == nil {
		return nil
	}
	var errs []error
	for _, p := range l.providers {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

func (l *lenders) driver(pool string) *pilots.Driver {
	if i := slices.IndexFunc(l.drivers, func(d *pilots.Driver) bool { return d.Pool() == pool }); i >= 0 {
		return l.drivers[i]
	}
	return nil
}

// Pools is part of host.Lenders.
func (l *lenders) Pools() []supply.Pool { return l.pools }

// Ordered is part of host.Lenders.
func (l *lenders) Ordered(o *supply.Order) {
	if d := l.driver(o.Pool); d != nil {
		d.Ordered(o)
	}
}

// Providers implements api.Providers.
func (l *lenders) Providers() (list []status.Provider) {
	for _, d := range l.drivers {
		list = append(list, d.Show())
	}
	return list
}

// named is the driver of a pool. Errors: NotFound.
func (l *lenders) named(pool string) (*pilots.Driver, error) {
	if d := l.driver(pool); d != nil {
		return d, nil
	}
	names := make([]string, len(l.pools))
	for i := range l.pools {
		names[i] = l.pools[i].Name
	}
	if len(names) == 0 {
		return nil, errkind.Errorf(errkind.NotFound, "this daemon has no providers: key providers of its file names them")
	}
	return nil, errkind.Errorf(errkind.NotFound, "there is no provider %.80q; there are: %s", pool, strings.Join(names, ", "))
}

// PauseProvider implements api.Providers.
func (l *lenders) PauseProvider(ctx context.Context, pool, why string) error {
	d, err := l.named(pool)
	if err != nil {
		return err
	}
	by := "somebody"
	if c := users.Of(ctx); c != nil && c.Name != "" {
		by = c.Name
	}
	return d.Pause(by, why)
}

// ResumeProvider implements api.Providers.
func (l *lenders) ResumeProvider(_ context.Context, pool string) error {
	d, err := l.named(pool)
	if err != nil {
		return err
	}
	return d.Resume()
}

// TryProvider implements api.Providers.
func (l *lenders) TryProvider(ctx context.Context, pool string) (status.Trial, error) {
	d, err := l.named(pool)
	if err != nil {
		return status.Trial{}, err
	}
	return d.Try(ctx)
}

// borrowing is a head's service, which tells a job that waits how its pools stand.
type borrowing struct {
	api.Service
	lenders *lenders
}

// Explain is api.Service.
func (b borrowing) Explain(ctx context.Context, name job.ID) (status.Explanation, error) {
	e, err := b.Service.Explain(ctx, name)
	if err == nil && e.Job.State == job.Waiting {
		said := []string{}
		if e.Prospect != "" {
			said = append(said, e.Prospect)
		}
		for _, d := range b.lenders.drivers {
			said = append(said, "pool "+d.Pool()+": "+d.Why())
		}
		e.Prospect = strings.Join(said, "; ")
	}
	return e, err
}

// pilotMachines are the cluster's machines as drivers of pools see them (pilots.Machines).
type pilotMachines struct{ *circle }

// Token is part of pilots.Machines.
func (m pilotMachines) Token(name job.NodeID, within time.Duration) (string, error) {
	return m.authority.NewToken(name, within, time.Now())
}

// Withdraw is part of pilots.Machines.
func (m pilotMachines) Withdraw(name job.NodeID) error { return m.authority.Withdraw(name) }

// Machine is part of pilots.Machines.
func (m pilotMachines) Machine(name job.NodeID) (pilots.Machine, bool) {
	is, ok := m.authority.Latest(name)
	if !ok {
		return pilots.Machine{}, false
	}
	l, linked := m.links.Machine(name)
	return pilots.Machine{Joined: is.Joined, Up: linked && l.Up && is.Removed.IsZero(), Until: is.Until, Left: is.Removed}, true
}

// Close is part of pilots.Machines: the machine's node takes its slices off the market, and truncates what is sold beyond. Once it has, the
// head lets go of the machine by that end too. Errors: Unavailable while the machine is away, when nothing is sold there.
func (m pilotMachines) Close(ctx context.Context, name job.NodeID, c pilot.Closing) error {
	if err := takeBack(ctx, m.host, name, c); err != nil {
		return err
	}
	return m.authority.SetStay(name, departure.Stay{Ephemeral: true, Until: c.Until})
}

// reservations are made on the slices of a head's machines.
type reservations interface {
	Slices(ctx context.Context) ([]status.Slice, error)
	Reserve(ctx context.Context, request string, r protocol.Reservation) ([]protocol.Made, error)
}

// takeBack takes all slices of a machine off the market. Errors: Unavailable also while it has not told of any.
func takeBack(ctx context.Context, h reservations, name job.NodeID, c pilot.Closing) error {
	list, err := h.Slices(ctx)
	if err != nil {
		return err
	}
	known := false
	for i := range list {
		if list[i].Node != name {
			continue
		}
		known = true
		_, err = h.Reserve(ctx, fmt.Sprintf("pilot-%s-%d-%d", list[i].Slice.ID, c.From, c.Until), protocol.Reservation{
			Kind: protocol.ForReclaim, Slice: list[i].Slice.ID, Start: c.From, End: quantity.Never, Source: c.Why, Truncate: true})
		if err != nil {
			return err
		}
	}
	if !known {
		return errkind.Errorf(errkind.Unavailable, "machine %s has not told of its slices yet", name)
	}
	return nil
}
