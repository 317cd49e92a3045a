package pilots

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider"
)

// ask asks for a pilot. After an error of kind Unavailable it may be there, and is counted.
func (d *Driver) ask(ctx context.Context, length time.Duration) error {
	name := d.o.Pool.Name + "-" + d.part()
	if b := d.o.Ledger.read(d.o.Pool.Name); b.Paused != "" {
		return errkind.Errorf(errkind.Conflict, "the pool was paused meanwhile: %s", b.Paused)
	}
	err := d.o.Ledger.change(d.o.Pool.Name, func(b *book) error {
		return b.ask(entry{Name: name, Length: length, Asked: d.now()}, d.o.Pool.Most)
	})
	if err != nil {
		return err
	}
	token, err := d.o.Machines.Token(job.NodeID(name), d.o.Wait+tokenMore)
	if err == nil {
		call, cancel := context.WithTimeout(ctx, callTime)
		err = d.o.Provider.Submit(call, provider.Pilot{Name: name, Length: length, Head: d.o.Head, Token: token})
		if cancel(); ctx.Err() != nil && err != nil {
			return err // the daemon stops: nobody knows what the host has done
		}
		if err == nil {
			d.o.Log.Info("the host was asked for a pilot", "pilot", name, "length", length)
			return nil
		}
		if k := errkind.Of(err); k == errkind.Unavailable || k == errkind.Unknown {
			return fmt.Errorf("pilot %s may be there or not: %w", name, err)
		}
	}
	return errors.Join(err, d.ended(func(b *book) error {
		b.end(&supply.Ending{Name: name, How: supply.Refused, Ended: quantity.At(d.now()), Why: err.Error(),
			Limited: errkind.Of(err) == errkind.Exhausted})
		return nil
	}, name))
}

// ended takes pilots off the ledger, and then makes their tokens good for nothing.
func (d *Driver) ended(f func(*book) error, names ...string) error {
	err := d.o.Ledger.change(d.o.Pool.Name, f)
	for _, name := range names {
		if err == nil {
			err = d.o.Machines.Withdraw(job.NodeID(name))
		}
	}
	return err
}

// giveBack ends pilots. They are counted until their host does not have them.
func (d *Driver) giveBack(ctx context.Context, list []supply.Cancel) error {
	var names []string
	now := d.now()
	err := d.o.Ledger.change(d.o.Pool.Name, func(b *book) error {
		names = nil
		for _, c := range list {
			if i := b.index(c.Name); i >= 0 && b.Pilots[i].Cancelled.IsZero() {
				b.Pilots[i].Cancelled, b.Pilots[i].Why = now, c.Why
				names = append(names, c.Name)
			}
		}
		return nil
	})
	if err != nil || len(names) == 0 {
		return err
	}
	for _, c := range list {
		d.o.Log.Info("a pilot is given back", "pilot", c.Name, "why", c.Why)
	}
	return d.cancel(ctx, names)
}

// cancel has pilots ended that are not wanted: those that have not joined can't any more, and those that have hand over what they did.
func (d *Driver) cancel(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := d.o.Machines.Withdraw(job.NodeID(name)); err != nil {
			return err
		}
	}
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := d.o.Provider.Cancel(call, names); err != nil {
		return err
	}
	for _, name := range names {
		d.memory.told[name] = d.now()
	}
	return nil
}
