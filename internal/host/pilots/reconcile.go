package pilots

import (
	"context"
	"errors"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/pilot"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider"
)

// copies are those of one pilot that its host shows.
type copies []provider.Seen

// alive are those that may run, or may still begin.
func (c copies) alive() (n int) {
	for i := range c {
		if c[i].State != provider.Ended {
			n++
		}
	}
	return n
}

// best is the copy that tells most of the pilot: one that runs before one that ends, that before one that waits, that before one that has
// ended; of two alike the one that began first. nil: there is none.
func (c copies) best() (b *provider.Seen) {
	rank := func(s *provider.Seen) int {
		return [...]int{provider.Running: 4, provider.Ending: 3, provider.Waiting: 2, provider.Ended: 1}[s.State]
	}
	for i := range c {
		s := &c[i]
		if b == nil || rank(s) > rank(b) || rank(s) == rank(b) && s.Began.Before(b.Began) {
			b = s
		}
	}
	return b
}

// grouped are the copies of each pilot of the pool.
func (d *Driver) grouped(look *provider.Look) map[string]copies {
	all := map[string]copies{}
	for _, s := range look.Seen {
		if Named(d.o.Pool.Name, s.Name) {
			all[s.Name] = append(all[s.Name], s)
		}
	}
	return all
}

// copy is what they tell of the pilot.
func (c copies) copy() pilot.Copy {
	s := c.best()
	if s == nil {
		return pilot.Copy{}
	}
	return pilot.Copy{State: s.State, Alive: c.alive(), Began: instant(s.Began), End: instant(s.End), Expected: instant(s.Expected),
		Preempted: s.Preempted, Failed: s.Failed, Limited: s.Limited,
		Never: s.Never, Why: s.Why}
}

// machine is the last that has joined by a pilot's name.
func (d *Driver) machine(name string) pilot.Machine {
	m, _ := d.o.Machines.Machine(job.NodeID(name))
	return pilot.Machine{Joined: instant(m.Joined), Up: m.Up, Until: instant(m.Until), Left: instant(m.Left)}
}

// joined notes which pilots' machines have joined, whatever the host says.
func (d *Driver) joined() error {
	return d.o.Ledger.change(d.o.Pool.Name, func(b *book) error {
		for i := range b.Pilots {
			e := &b.Pilots[i]
			r, m := e.record(), d.machine(e.Name)
			r.Saw(quantity.At(d.now()), 0, &pilot.Copy{}, &m)
			e.note(&r)
		}
		return nil
	})
}

// reconcile holds the ledger to what the host shows: it notes what has begun, joined and ended, ends what nobody wants, and closes machines
// that are gone earlier than they know.
func (d *Driver) reconcile(ctx context.Context, look provider.Look) error {
	at, shown := d.now(), d.grouped(&look)
	now := quantity.At(at)
	d.missing(now, shown)
	d.recalled(now, shown)
	var over []supply.Ending
	err := d.o.Ledger.change(d.o.Pool.Name, func(b *book) error {
		over = nil
		for i := range b.Pilots {
			e := &b.Pilots[i]
			r, m, c := e.record(), d.machine(e.Name), shown[e.Name].copy()
			r.Saw(now, d.memory.reconciled, &c, &m)
			if x, ok := r.Over(now, &c, &m, d.memory.missed[e.Name]); ok {
				over = append(over, x)
			} else if why, late := r.Useless(now, &c, &m, d.o.Pool.Start, d.o.Wait); why != "" {
				r.Cancelled, r.Why, r.Late = now, why, late
			}
			e.note(&r)
		}
		for i := range over {
			b.end(&over[i])
		}
		return nil
	})
	if err != nil {
		return err
	}
	d.memory.reconciled = now
	errs := []error{d.sweep()}
	for _, x := range over {
		d.o.Log.Info("a pilot is gone", "pilot", x.Name, "how", x.How.String(), "why", x.Why)
		errs = append(errs, d.o.Machines.Withdraw(job.NodeID(x.Name)))
		if from := d.memory.recalled[x.Name]; from != 0 {
			d.o.Waited(d.o.Pool.Name, from, x.Ended)
		}
		d.forget(x.Name)
	}
	errs = append(errs, d.dismiss(ctx, at, shown), d.shorten(ctx, now, shown))
	return errors.Join(errs...)
}

// sweep withdraws, once after a start, the tokens of pilots that are gone: the daemon may have died before it did.
func (d *Driver) sweep() error {
	if d.memory.swept {
		return nil
	}
	b := d.o.Ledger.read(d.o.Pool.Name)
	for i := range b.Endings {
		if err := d.o.Machines.Withdraw(job.NodeID(b.Endings[i].Name)); err != nil {
			return err
		}
	}
	d.memory.swept = true
	return nil
}

// missing counts the looks that have not shown pilots of the ledger.
func (d *Driver) missing(now quantity.Instant, shown map[string]copies) {
	b := d.o.Ledger.read(d.o.Pool.Name)
	is := make(map[string]pilot.Missed, len(b.Pilots))
	for i := range b.Pilots {
		name := b.Pilots[i].Name
		if len(shown[name]) > 0 {
			continue
		}
		m, ok := d.memory.missed[name]
		if !ok {
			m.Since = now
		}
		m.Looks++
		is[name] = m
	}
	d.memory.missed = is
}

// recalled notes which pilots their host takes back.
func (d *Driver) recalled(now quantity.Instant, shown map[string]copies) {
	b := d.o.Ledger.read(d.o.Pool.Name)
	for i := range b.Pilots {
		name := b.Pilots[i].Name
		if c := shown[name].copy(); c.Preempted && c.Alive > 0 && d.memory.recalled[name] == 0 {
			d.memory.recalled[name] = now
		}
	}
}

// forget drops what is known of a pilot that is gone. When it was told to end stays until againAfter is over.
func (d *Driver) forget(name string) {
	d.mu.Lock()
	delete(d.memory.idle, name)
	d.mu.Unlock()
	delete(d.memory.missed, name)
	delete(d.memory.doubled, name)
	delete(d.memory.closed, name)
	delete(d.memory.recalled, name)
}

// dismiss ends what the host has and nobody wants: pilots that were given back, and those that the ledger does not know, which are back
// from the dead or younger than the ledger.
func (d *Driver) dismiss(ctx context.Context, now time.Time, shown map[string]copies) error {
	b := d.o.Ledger.read(d.o.Pool.Name)
	var names []string
	for name, c := range shown {
		i := b.index(name)
		if n := c.alive(); n > 1 && !d.memory.doubled[name] {
			d.memory.doubled[name] = true
			d.o.Log.Warn("the host has several copies of a pilot, of which only one can join", "pilot", name, "copies", n)
		}
		if c.alive() == 0 || i >= 0 && b.Pilots[i].Cancelled.IsZero() {
			continue
		}
		if i < 0 && d.memory.told[name].IsZero() {
			d.o.Log.Warn("the host has a pilot that is not counted, which is ended", "pilot", name)
		}
		if now.Sub(d.memory.told[name]) >= againAfter {
			names = append(names, name)
		}
	}
	for i := range b.Pilots { // the host may still begin what it does not show
		e := &b.Pilots[i]
		if len(shown[e.Name]) == 0 && !e.Cancelled.IsZero() && now.Sub(d.memory.told[e.Name]) >= againAfter {
			names = append(names, e.Name)
		}
	}
	for name, at := range d.memory.told {
		if len(shown[name]) == 0 && b.index(name) < 0 && now.Sub(at) >= againAfter {
			delete(d.memory.told, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return d.cancel(ctx, names)
}

// shorten closes machines that their host ends earlier than they have said.
func (d *Driver) shorten(ctx context.Context, now quantity.Instant, shown map[string]copies) error {
	b := d.o.Ledger.read(d.o.Pool.Name)
	var errs []error
	for i := range b.Pilots {
		e := &b.Pilots[i]
		r, m, c := e.record(), d.machine(e.Name), shown[e.Name].copy()
		x, is := r.Shorter(now, &c, &m, d.o.Pool.HandOver, d.memory.closed[e.Name])
		if !is {
			continue
		}
		call, cancel := context.WithTimeout(ctx, closeTime)
		err := d.o.Machines.Close(call, job.NodeID(e.Name), x)
		cancel()
		if err != nil {
			errs = append(errs, err)
			continue
		}
		d.memory.closed[e.Name] = x
		d.o.Log.Info("a pilot's machine is closed before its time", "pilot", e.Name, "until", moment(x.Until), "why", x.Why)
	}
	return errors.Join(errs...)
}

// seeing is what is known of the pool now. Called with mu held.
func (d *Driver) seeing(b *book) *supply.Sight {
	shown := d.grouped(&d.looked)
	s := &supply.Sight{Pool: d.o.Pool, Seen: instant(d.seen), Silent: d.silent, Blind: d.looked.Blind}
	s.Pool.Paused = b.Paused
	if d.silent == "" && !d.looked.Blind {
		for _, g := range d.looked.Gaps {
			gap := supply.Gap{Start: quantity.At(g.Start), End: quantity.Never, Count: g.Count}
			if !g.End.IsZero() {
				gap.End = quantity.At(g.End)
			}
			s.Gaps = append(s.Gaps, gap)
		}
	}
	for i := range b.Pilots {
		s.Pilots = append(s.Pilots, d.standing(&b.Pilots[i], shown[b.Pilots[i].Name]))
	}
	for i := range b.Endings {
		e := &b.Endings[i]
		s.Endings = append(s.Endings, supply.Ending{Name: e.Name, How: supply.How(e.How), Length: e.Length, Asked: instant(e.Asked),
			Started: instant(e.Started), Joined: instant(e.Joined), Ended: instant(e.Ended), Limited: e.Limited, Why: e.Why})
	}
	return s
}

// standing is how far a pilot is. Called with mu held.
func (d *Driver) standing(e *entry, c copies) supply.Pilot {
	r, m, is := e.record(), d.machine(e.Name), c.copy()
	return r.Standing(&is, &m, instant(d.memory.idle[e.Name]))
}
