package pilots

import (
	"context"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider"
)

// Show is how the pool stands, for people.
func (d *Driver) Show() status.Provider {
	b := d.o.Ledger.read(d.o.Pool.Name)
	d.mu.Lock()
	defer d.mu.Unlock()
	shown, pool := d.grouped(&d.looked), &d.o.Pool
	p := status.Provider{Name: pool.Name, Kind: d.o.Kind, Describes: d.o.Provider.Describe(), Paused: b.Paused, Silent: d.silent,
		Seen: instant(d.seen), Blind: d.looked.Blind, Most: pool.Most, Lengths: slices.Clone(pool.Lengths), Slices: len(pool.Slices)}
	if d.last != nil {
		p.Why, p.Decided, p.Next = d.last.Why, instant(d.lastAt), d.last.Next
	}
	for i := range b.Pilots {
		e := &b.Pilots[i]
		c := shown[e.Name]
		is := d.standing(e, c)
		x := status.Pilot{Name: e.Name, State: is.State.String(), Length: e.Length, Asked: is.Asked, Started: is.Started, Joined: is.Joined,
			Until: is.Until, Expected: is.Expected, Idle: is.Idle, Why: e.Why}
		if s := c.best(); s != nil {
			if x.ID = s.ID; x.Why == "" {
				x.Why = s.Why
			}
		}
		p.Pilots = append(p.Pilots, x)
	}
	for h := supply.Done; h <= supply.Vanished; h++ {
		if n := b.Ended[h.String()]; n > 0 {
			p.Ended = append(p.Ended, status.Ended{How: h.String(), Count: n})
		}
	}
	for i := range slices.Backward(b.Endings) {
		e := &b.Endings[i]
		p.Endings = append(p.Endings, status.PilotEnd{Name: e.Name, How: supply.How(e.How).String(), Why: e.Why, Length: e.Length,
			Asked: instant(e.Asked), Started: instant(e.Started), Joined: instant(e.Joined), Ended: instant(e.Ended)})
	}
	return p
}

// Why says what was decided last, or why nothing was; of a pool whose host does not answer that it does not.
func (d *Driver) Why() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == nil {
		return "nothing was decided yet"
	}
	return d.last.Why
}

// dryToken stands for a token where the host is only asked what it would do: nobody can join by it.
const dryToken = "none"

// Try says what the host would do with a pilot of the length that would be asked for now, or else of the shortest, without asking for it.
// Errors: those of the provider.
func (d *Driver) Try(ctx context.Context) (status.Trial, error) {
	t := status.Trial{Length: d.o.Pool.Lengths[0]}
	d.mu.Lock()
	if d.last != nil && len(d.last.Ask) > 0 {
		t.Length, t.Wanted = d.last.Ask[0], true
	}
	d.mu.Unlock()
	call, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	is, err := d.o.Provider.Try(call, provider.Pilot{Name: d.o.Pool.Name + "-" + part(), Length: t.Length, Head: d.o.Head, Token: dryToken})
	if err != nil {
		return status.Trial{}, err
	}
	t.Provider, t.Taken, t.Why, t.Command = d.Show(), is.Taken, is.Why, is.Command
	if !is.Starts.IsZero() {
		t.Starts = quantity.At(is.Starts.In(time.UTC))
	}
	return t, nil
}
