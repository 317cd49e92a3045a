package process

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// The time between readings of the machine's memory: with plenty free, near the calm line, and over it.
const (
	atRest = 250 * time.Millisecond
	// heard is the same while the machine's watcher reads the memory and signals changes: a daemon then reads the watcher's board.
	heard    = time.Second
	watchful = 50 * time.Millisecond
	pressed  = 20 * time.Millisecond
	// coming is how far ahead growth counts as present.
	coming = 4 * time.Second
)

// The share of time that readings may take: with plenty of memory, and when it is short.
const restShare, pressedShare = 100, 5

const (
	// A report of nothing urgent is made once a second at most, and only if the used share has changed by so many parts per thousand.
	quiet        = time.Second
	quietPermill = 20
	// stallsFrom is the used share of the memory, in parts per thousand, from which stalls for memory count: with less in use tasks stall
	// because of a limit of their own.
	stallsFrom = 750
)

// pressure is the last reading of the machine's memory.
type pressure struct {
	memory survival.Memory
	// room is the free memory, for subjobs whose memory is moved out meanwhile.
	room atomic.Int64
	// reading is the last one, with what was reported last, and when.
	reading airlock.Reading
	said    int64
	saidAt  time.Duration
	failed  bool
	// life is that of the watcher that read it, 0: the executor's own sensors did. news: a subjob was suspended, resumed or ended, or the
	// watcher has come or gone.
	life uint64
	news bool
}

// sensor reads the machine's memory for as long as the executor is open, and reports it. Its fields belong to its one goroutine unless
// they say otherwise.
type sensor struct {
	o     *Options
	post  func(protocol.Message)
	tasks *sync.WaitGroup
	// base is the control group of subjobs.
	base string
	// all are the subjobs that are not settled.
	all func() []*still
	// done is closed with the executor.
	done chan struct{}

	pressure pressure
	// watcher is the executor's side of the machine's watcher.
	watcher watcher
}

// sense reads the machine's memory for as long as the executor is open, and reports it when it is worth a report.
func (n *sensor) sense() {
	p := &n.pressure
	for !closed(n.done) {
		now := shim.Boottime()
		watched := n.follow()
		var err error
		if !watched {
			err = n.o.Survival.Sense(now, &p.memory)
		}
		if err != nil {
			if !p.failed {
				n.o.Logger.Error("the machine's memory can't be looked at; trying again", "err", err)
			}
			p.failed = true
			n.o.Survival.Await(quiet)
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
		n.await(n.pause(near, shim.Boottime()-now))
	}
}

// read takes a reading, and reports whether the memory is near the calm line.
func (n *sensor) read() (near bool) {
	p, m := &n.pressure, &n.pressure.memory
	s := airlock.Snapshot{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Stall: n.stall()}
	p.reading = n.o.Airlock.Read(&s)
	if p.reading.Level > airlock.Calm {
		return true
	}
	s.Used += max(0, m.Growth) * quantity.Amount(coming/time.Second)
	soon := n.o.Airlock.Read(&s)
	return soon.Level > airlock.Calm
}

// stall is the share of time in which all of the machine's tasks were stalled for memory, where that is short.
func (n *sensor) stall() int64 {
	m := &n.pressure.memory
	if quantity.MulDiv(int64(m.Used), 1000, int64(max(1, m.Capacity))) < stallsFrom {
		return 0
	}
	return m.Full
}

// measure reads the memory of subjobs. One that is just being suspended or resumed keeps its last value.
func (n *sensor) measure(now time.Duration) {
	for _, s := range n.all() {
		if !s.acting.TryLock() {
			continue
		}
		if s.hold != nil {
			_ = s.hold.Measure(now, &s.use)
		}
		s.acting.Unlock()
	}
}

// worthALook reports whether a report is due now.
func (n *sensor) worthALook(now time.Duration) bool {
	p := &n.pressure
	changed := p.reading.Share - p.said
	return p.reading.Level > airlock.Calm || p.saidAt == 0 || p.news || n.anyStill() ||
		now-p.saidAt >= n.o.Airlock.Timer/3 || // the node takes a report for stale after a whole Timer
		now-p.saidAt >= quiet && (changed >= quietPermill || changed <= -quietPermill)
}

// anyStill: a subjob is suspended, or is to be.
func (n *sensor) anyStill() bool {
	return slices.ContainsFunc(n.all(), func(s *still) bool {
		wanted, open := s.due()
		_, _, suspended := s.known()
		return (wanted || suspended) && open
	})
}

// say reports the memory, and how much of it every visible subjob has.
func (n *sensor) say() {
	p, m := &n.pressure, &n.pressure.memory
	p.said, p.saidAt, p.news = p.reading.Share, shim.Boottime(), false
	strain := &protocol.Strain{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth, Room: m.Room, Stall: n.stall(), Watch: p.life}
	for _, s := range n.all() {
		if told := s.told.State(); told.Began == 0 || told.Result != nil {
			continue
		}
		if p.life != 0 {
			strain.Uses = append(strain.Uses, n.watcher.use(s.token))
			continue
		}
		if s.acting.TryLock() {
			s.said = s.use
			s.acting.Unlock()
		}
		strain.Uses = append(strain.Uses, protocol.Use{Token: s.token, Resident: s.said.Resident, Parked: s.said.Parked,
			Growth: s.said.Growth})
	}
	slices.SortFunc(strain.Uses, func(a, b protocol.Use) int { return a.Token.Compare(b.Token) })
	n.post(protocol.Message{Kind: protocol.Pressure, Body: strain})
}

// pause returns the time until the next reading, after one that took so long.
func (n *sensor) pause(near bool, took time.Duration) time.Duration {
	switch {
	case n.pressure.reading.Level >= airlock.Severe:
		return max(pressed, pressedShare*took)
	case near || n.anyStill():
		return max(watchful, pressedShare*took)
	case n.pressure.life != 0:
		return heard
	default:
		return max(atRest, restShare*took)
	}
}

// await waits for patience at most, or until there is news. While a watcher lives it handles the kernel's triggers.
func (n *sensor) await(patience time.Duration) {
	if n.pressure.life == 0 {
		n.o.Survival.Await(patience)
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-n.watcher.news:
	case <-timer.C:
	case <-n.done:
	}
}

// follow tells the watcher which subjobs there are, and reads its board; false: no watcher lives that can be relied upon.
func (n *sensor) follow() bool {
	w := &n.watcher
	if w.keeper == nil {
		return false
	}
	all := n.all()
	w.rows = w.rows[:0]
	for _, s := range all {
		if row, ok := s.row(n.base); ok {
			w.rows = append(w.rows, row)
		}
	}
	if w.found.Load() { // until then what an earlier daemon has told it is more accurate
		w.keeper.Publish(w.rows)
	}
	n.tellActs()
	lives := w.keeper.Board(&w.board)
	if !lives {
		w.board = watch.Board{Stands: w.board.Stands[:0]}
	}
	p, b := &n.pressure, &w.board
	if lives {
		p.memory = survival.Memory{Capacity: b.Capacity, Used: b.Used, Growth: b.Growth, Room: b.Room, Full: b.Stall}
	}
	for _, s := range all {
		stand, _ := b.Of(s.token)
		n.mirror(s, stand != nil && (stand.State == airlock.Suspending || stand.State == airlock.Suspended))
	}
	p.news = p.news || p.life != b.Life
	p.life = b.Life
	return lives
}

// tellActs logs what the watcher did, also while no daemon was running.
func (n *sensor) tellActs() {
	w := &n.watcher
	lost := w.keeper.Acts(func(a *watch.Act) {
		said := a.String()
		w.last.Store(&said)
		n.o.Logger.Warn("the machine is short of memory", "watcher", said, "at", a.At.Time())
	})
	if lost > 0 {
		n.o.Logger.Warn("not all is known that the watcher of the machine's memory did", "lost", lost)
	}
}

// mirror tells a subjob's supervisor, and through it the program, what the watcher does with it. It writes in the background: the sensor
// must not wait for the disk.
func (n *sensor) mirror(s *still, suspended bool) {
	s.mu.Lock()
	changed := s.suspended != suspended
	s.suspended = suspended
	s.mu.Unlock()
	if !changed {
		return
	}
	n.pressure.news = true
	n.tasks.Go(func() {
		s.telling.Lock()
		defer s.telling.Unlock()
		s.mu.Lock()
		suspended := s.suspended
		if suspended && s.why == "" {
			s.why = shortOfMemory
		}
		s.mu.Unlock()
		s.tell(suspended, true)
	})
}
