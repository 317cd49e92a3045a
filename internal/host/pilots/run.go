package pilots

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
)

// Run looks and asks until ctx is done. Pilots that are there then go on.
func (d *Driver) Run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			if d.lazy() {
				d.tell(false)
			} else {
				d.Tick(ctx)
			}
			last = time.Now()
		case <-d.kick:
			if d.Obey(ctx) {
				timer.Reset(max(0, leastRest-time.Since(last)))
				continue
			}
		}
		timer.Reset(max(0, d.o.Every-time.Since(last)))
	}
}

// lazy reports whether the host need not be looked at now: it has nothing of the pool, nothing was wanted of it lately, and no work waits
// for what it may show next.
func (d *Driver) lazy() bool {
	b := d.o.Ledger.read(d.o.Pool.Name)
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(b.Pilots) == 0 && len(d.memory.told) == 0 && d.silent == "" && !d.seen.IsZero() && d.now().Sub(d.seen) < lazyLook &&
		d.last != nil && len(d.last.Ask) == 0 && quantity.At(d.now()) < d.last.Next
}

// wake has the driver look for what is to do.
func (d *Driver) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// Ordered takes the zone's answer to a sight. It never blocks.
func (d *Driver) Ordered(o *supply.Order) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o.Pool != d.o.Pool.Name || d.sight == nil || o.Number != d.sight.Number || d.last != nil && d.last.Number == o.Number {
		return // of another sight, or said again
	}
	d.order, d.last, d.lastAt = o, o, d.now()
	d.wake()
}

// Tick looks at the host once, notes what has become of pilots, and tells the zone.
func (d *Driver) Tick(ctx context.Context) {
	call, cancel := context.WithTimeout(ctx, callTime)
	look, err := d.o.Provider.Look(call)
	cancel()
	if ctx.Err() != nil {
		return
	}
	d.mu.Lock()
	was := d.silent
	if d.silent = ""; err != nil {
		d.silent = err.Error()
	} else {
		d.looked, d.seen = look, d.now()
	}
	d.mu.Unlock()
	switch {
	case err != nil && was == "":
		d.o.Log.Warn("the host of a pool does not answer; nothing is asked of it meanwhile", "error", err)
	case err == nil && was != "":
		d.o.Log.Info("the host of a pool answers again")
	}
	if err == nil {
		err = d.reconcile(ctx, look)
	} else {
		err = d.joined()
	}
	d.complain(err)
	d.tell(true)
}

// complain logs why what has become of pilots is not seen to, once as long as it stays the same: the next look tries again.
func (d *Driver) complain(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != d.memory.said {
		d.o.Log.Warn("not all is done that has become of pilots, and it is tried again", "error", err)
	}
	d.memory.said = text
}

// tell sends the zone a new sight; fresh: the host was looked at for it.
func (d *Driver) tell(fresh bool) {
	b := d.o.Ledger.read(d.o.Pool.Name)
	d.mu.Lock()
	s := d.seeing(&b)
	s.Number = 1
	if d.sight != nil {
		s.Number = d.sight.Number + 1
	}
	d.sight, d.fresh, d.order = s, fresh, nil
	d.mu.Unlock()
	d.o.Send(s)
}

// Obey does what the newest order says, unless that was done. It reports whether anything was asked of the host.
func (d *Driver) Obey(ctx context.Context) bool {
	d.mu.Lock()
	o, fresh := d.order, d.fresh
	d.order = nil
	d.mu.Unlock()
	switch {
	case o == nil:
		return false
	case !fresh && len(o.Ask)+len(o.Cancel) > 0:
		d.Tick(ctx)
		return false
	}
	d.idle(o)
	acted := len(o.Cancel) > 0
	if err := d.giveBack(ctx, o.Cancel); err != nil {
		d.o.Log.Warn("pilots are not given back yet", "error", err)
	}
	for _, length := range o.Ask {
		acted = true
		if err := d.ask(ctx, length); err != nil {
			d.o.Log.Warn("a pilot was not had", "error", err)
			break // the host would say the same of the next
		}
	}
	return acted
}

// idle notes which pilots have nothing to run, by an order.
func (d *Driver) idle(o *supply.Order) {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	is := make(map[string]time.Time, len(o.Idle))
	for _, name := range o.Idle {
		since, ok := d.memory.idle[name]
		if !ok {
			since = now
		}
		is[name] = since
	}
	d.memory.idle = is
}
