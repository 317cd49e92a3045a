package nvml

import (
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
)

var _ inventory.Live = (*Inventory)(nil)

const (
	// repeats is how often a look that is the same is said again: an old look says nothing of a GPU that hangs since.
	repeats = 30 * time.Second
	// patience is how long to wait for the next event, and so for the end of Watch.
	patience = time.Second
)

// card is a GPU with what is cut from it, as it was when it last answered.
type card struct {
	gpu    gpu
	slices []job.SliceID
	places []place
}

// errors are those of an event, for each slice that it is about: a GPU instance may have several. It is about the GPU as a whole where it
// names no piece, or one that is not known.
func (c *card) errors(e event) (list []protocol.Xid) {
	for i, p := range c.places {
		if e.GPUInstance >= 0 && p.GPUInstance == e.GPUInstance && (e.ComputeInstance < 0 || p.ComputeInstance == e.ComputeInstance) {
			list = append(list, protocol.Xid{Code: e.Xid, On: c.slices[i]})
		}
	}
	if list == nil {
		list = []protocol.Xid{{Code: e.Xid}}
	}
	return list
}

// look asks a GPU how it is; false: it does not say, for a trouble that may pass.
func (c *card) look() (*health.Look, bool) {
	h, err := c.gpu.Health()
	l := &health.Look{Told: h.Told}
	bad := func(is bool, c health.Cause, text string) {
		if is {
			l.States = append(l.States, health.State{Cause: c, Text: text})
		}
	}
	bad(errors.Is(err, errLost), health.Lost, "the GPU does not answer: it has fallen off the bus; it needs a reset, or its machine a "+
		"restart")
	bad(errors.Is(err, errReset), health.NeedsReset, "the driver says that the GPU must be reset")
	bad(h.Recovery != "" && !h.Drain, health.NeedsReset, "the driver says what the GPU needs: "+h.Recovery)
	bad(h.Recovery != "" && h.Drain, health.NeedsDrain, "the driver says what the GPU needs: "+h.Recovery)
	bad(h.RowsFailed, health.RowsFailed, "a row of its memory has failed and could not be remapped: the GPU is to be replaced")
	bad(h.RowsPending, health.RowsPending, "rows of its memory wait to be remapped: the GPU needs a reset")
	return l, err == nil || len(l.States) > 0
}

// doctor remembers what was said of the GPUs.
type doctor struct {
	inv    *Inventory
	report func(inventory.Sighting)
	// said are the last looks, with when.
	said map[string]saidLook
	// heard are the events since the last round, each told once: a GPU that fails may say the same thousands of times.
	heard map[event]bool
}

type saidLook struct {
	look *health.Look
	at   time.Time
}

func newDoctor(inv *Inventory, report func(inventory.Sighting)) *doctor {
	return &doctor{inv: inv, report: report, said: map[string]saidLook{}, heard: map[event]bool{}}
}

// round looks at every GPU, and says what is new.
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

// event tells of an error, and looks at its GPU. Where the driver does not say which GPU it is about all are looked at.
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
			_ = l.Close() // what it has told is told; another one follows
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

// rememberCards keeps what was found of each GPU, of those that do not answer what was found before. mu is held.
func (inv *Inventory) rememberCards(all []found) {
	now := map[string]*card{}
	for _, f := range all {
		c := now[f.gpu]
		if c == nil {
			c = &card{gpu: f.card}
			now[f.gpu] = c
		}
		c.slices, c.places = append(c.slices, f.slice.ID), append(c.places, f.at)
	}
	maps.Copy(inv.cards, now)
}

// machineLife names the time since this machine was started; empty where the kernel does not say.
func machineLife() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}
