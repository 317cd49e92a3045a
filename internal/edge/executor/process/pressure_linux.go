package process

import (
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/survival"
)

// How often the machine's memory is looked at: where there is plenty, where it comes near to the calm line, and over it.
const (
	atRest = 250 * time.Millisecond
	// heard is how often that is where the machine's watcher looks at it, and says what is new: a daemon reads its board.
	heard    = time.Second
	watchful = 50 * time.Millisecond
	pressed  = 20 * time.Millisecond
	// coming is how far ahead what grows counts as being there.
	coming = 4 * time.Second
)

// Of all its time a look takes no more than a share: where there is plenty, and where it is short.
const restShare, pressedShare = 100, 5

const (
	// A report that says nothing urgent is made once a second at most, and only where the share that is used has changed by so many parts
	// per thousand.
	quiet        = time.Second
	quietPermill = 20
	// stallsFrom is the share of the memory, in parts per thousand, from which on it counts that tasks stood still for want of it: with
	// less in use they stand still for a limit of their own.
	stallsFrom = 750
)

// pressure is what the machine's memory was like when it was last looked at.
type pressure struct {
	memory survival.Memory
	// room is of memory, for those who move something out meanwhile.
	room atomic.Int64
	// reading of it, and what was said last, and when.
	reading airlock.Reading
	said    int64
	saidAt  time.Duration
	failed  bool
	// life of the watcher that says so, 0: the executor's own sensors do. news: what is done with a subjob has changed, or who does it.
	life uint64
	news bool
}

// sensor looks at the machine's memory for as long as the executor is open, and says what it is like. What it has is of its one goroutine,
// but for what is said otherwise.
type sensor struct {
	survival survival.Survival
	airlock  airlock.Config
	log      *slog.Logger
	post     func(protocol.Message)
	// all are the subjobs that are not settled.
	all func() []*run
	// done is closed with the executor.
	done chan struct{}

	pressure pressure
	// watcher is what this executor has to do with the machine's watcher.
	watcher watcher
}

func (n *sensor) closed() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// watched: the machine's watcher says so.
func (p *pressure) watched() bool { return p.life != 0 }

// monotonic is a clock that never goes back.
func monotonic() time.Duration { return shim.Boottime() }

// sense looks at the machine's memory for as long as the executor is open, and says what it is like when that is worth a look.
func (n *sensor) sense() {
	p := &n.pressure
	for !n.closed() {
		now := monotonic()
		watched := n.follow()
		var err error
		if !watched {
			err = n.survival.Sense(now, &p.memory)
		}
		if err != nil {
			if !p.failed {
				n.log.Error("the machine's memory can't be looked at; trying again", "err", err)
			}
			p.failed = true
			n.survival.Await(quiet)
			continue
		}
		p.failed = false
		p.room.Store(int64(p.memory.Room))
		near := n.read()
		if !watched && (near || p.reading.Share >= stallsFrom/2) {
			n.measure(now)
		}
		if n.worthALook(now) {
			n.say()
		}
		n.await(n.pause(near, monotonic()-now))
	}
}

// read takes the lines, and says whether the memory is near to the calm one.
func (n *sensor) read() (near bool) {
	p, m := &n.pressure, &n.pressure.memory
	s := airlock.Snapshot{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Stall: n.stall()}
	p.reading = n.airlock.Read(&s)
	if p.reading.Level > airlock.Calm {
		return true
	}
	s.Used += max(0, m.Growth) * quantity.Amount(coming/time.Second)
	soon := n.airlock.Read(&s)
	return soon.Level > airlock.Calm
}

// stall is the share of time in which all of the machine's tasks stood still for want of memory, where that is short.
func (n *sensor) stall() int64 {
	m := &n.pressure.memory
	if quantity.MulDiv(int64(m.Used), 1000, int64(max(1, m.Capacity))) < stallsFrom {
		return 0
	}
	return m.Full
}

// measure looks at what subjobs have. One that something is being done to is as it was then.
func (n *sensor) measure(now time.Duration) {
	for _, r := range n.all() {
		s := &r.still
		if !s.acting.TryLock() {
			continue
		}
		if s.hold != nil {
			_ = s.hold.Measure(now, &s.use)
		}
		s.acting.Unlock()
	}
}

// worthALook says whether something is to be said now.
func (n *sensor) worthALook(now time.Duration) bool {
	p := &n.pressure
	if p.reading.Level > airlock.Calm || p.saidAt == 0 || p.news || n.anyStill() {
		return true
	}
	if now-p.saidAt >= n.airlock.Timer/3 { // what is not said again is old to the node after a whole one
		return true
	}
	changed := p.reading.Share - p.said
	return now-p.saidAt >= quiet && (changed >= quietPermill || changed <= -quietPermill)
}

// anyStill: a subjob stands still, or is to.
func (n *sensor) anyStill() bool {
	return slices.ContainsFunc(n.all(), func(r *run) bool {
		wanted, open := r.stands()
		return (wanted || r.watched()) && open
	})
}

// say says what the memory is like, and what every subjob that can be seen has of it.
func (n *sensor) say() {
	p, m := &n.pressure, &n.pressure.memory
	p.said, p.saidAt, p.news = p.reading.Share, monotonic(), false
	strain := &protocol.Strain{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Room: m.Room, Stall: n.stall(), Watch: p.life}
	for _, r := range n.all() {
		r.mu.Lock()
		seen := r.started != 0 && r.result == nil
		r.mu.Unlock()
		if !seen {
			continue
		}
		if p.life != 0 {
			strain.Uses = append(strain.Uses, n.watcher.use(r.token))
			continue
		}
		use := protocol.Use{Token: r.token}
		if r.still.acting.TryLock() {
			use.Resident, use.Parked, use.Growth = r.still.use.Resident, r.still.use.Parked, r.still.use.Growth
			r.still.said = r.still.use
			r.still.acting.Unlock()
		} else {
			use.Resident, use.Parked, use.Growth = r.still.said.Resident, r.still.said.Parked, r.still.said.Growth
		}
		strain.Uses = append(strain.Uses, use)
	}
	slices.SortFunc(strain.Uses, func(a, b protocol.Use) int { return a.Token.Compare(b.Token) })
	n.post(protocol.Message{Kind: protocol.Pressure, Body: strain})
}

// pause is how long it may be until the next look, after one that took so long.
func (n *sensor) pause(near bool, took time.Duration) time.Duration {
	switch {
	case n.pressure.reading.Level >= airlock.Severe:
		return max(pressed, pressedShare*took)
	case near || n.anyStill():
		return max(watchful, pressedShare*took)
	case n.pressure.watched():
		return heard
	default:
		return max(atRest, restShare*took)
	}
}
