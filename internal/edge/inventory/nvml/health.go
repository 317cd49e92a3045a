package nvml

import (
	"context"
	"reflect"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
)

var _ inventory.Live = (*Inventory)(nil)

const (
	// repeats is how often an unchanged look is reported again: an old look does not show a GPU that hangs since.
	repeats = 30 * time.Second
	// patience is how long to wait for the next event, and so for the end of Watch.
	patience = time.Second
)

// doctor remembers the reports on the GPUs.
type doctor struct {
	inv    *Inventory
	report func(inventory.Sighting)
	// said are the last looks, with when.
	said map[string]saidLook
	// heard are the events since the last round, each reported once: a failing GPU may repeat the same thousands of times.
	heard map[event]bool
}

type saidLook struct {
	look *health.Look
	at   time.Time
}

func newDoctor(inv *Inventory, report func(inventory.Sighting)) *doctor {
	return &doctor{inv: inv, report: report, said: map[string]saidLook{}, heard: map[event]bool{}}
}

// round looks at every GPU, and reports changes.
func (d *doctor) round() {
	clear(d.heard)
	for _, uuid := range d.inv.gpus {
		d.examine(uuid, false)
	}
}

// examine says how a GPU is, if that is new, or again if it is to be.
func (d *doctor) examine(uuid string, again bool) {
	c := d.inv.card(uuid)
	if c == nil {
		return
	}
	l, ok := c.look()
	was := d.said[uuid]
	if !ok || !again && reflect.DeepEqual(was.look, l) && time.Since(was.at) < repeats {
		return
	}
	d.said[uuid] = saidLook{l, time.Now()}
	d.report(inventory.Sighting{Vitals: &protocol.Vitals{Slices: c.slices, Look: l, Life: d.inv.life}})
}

// event reports an error, and looks at its GPU. Where the driver does not say which GPU it is about all are looked at.
func (d *doctor) event(e event) {
	if d.heard[e] {
		return
	}
	d.heard[e] = true
	if e.UUID == "" {
		d.round()
		return
	}
	c := d.inv.card(e.UUID)
	if c == nil {
		return // none of ours
	}
	if e.Xid != 0 {
		d.report(inventory.Sighting{Vitals: &protocol.Vitals{Slices: c.slices, Errors: c.errors(e), Life: d.inv.life}})
	}
	d.examine(e.UUID, true)
}

// Held says how the GPUs are now.
func (inv *Inventory) Held() (list []inventory.Sighting) {
	newDoctor(inv, func(s inventory.Sighting) { list = append(list, s) }).round()
	return list
}

// listen passes on what drivers tell of, until ctx ends. A GPU that is lost may make the rest unheard, so that it begins anew after every
// error.
func (inv *Inventory) listen(ctx context.Context, events chan<- event) {
	for ctx.Err() == nil {
		l, err := inv.lib.Listen(inv.gpus)
		if err == nil {
			err = hear(ctx, l, events)
			_ = l.Close() // its events are reported; another listener follows
		}
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(inv.interval):
			}
		}
	}
}

func hear(ctx context.Context, l listener, events chan<- event) error {
	for ctx.Err() == nil {
		e, ok, err := l.Wait(patience)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		select {
		case events <- e:
		case <-ctx.Done():
		}
	}
	return nil
}

// card is a GPU as it was when it last answered; nil: it never did.
func (inv *Inventory) card(uuid string) *card {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	return inv.cards[uuid]
}
