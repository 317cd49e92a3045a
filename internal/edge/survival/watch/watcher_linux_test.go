package watch

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

const (
	gib = quantity.Amount(1) << 30
	mib = quantity.Amount(1) << 20
)

// machine is one that a test makes up.
type machine struct {
	can      survival.Capability
	capacity quantity.Amount
	room     quantity.Amount
	base     quantity.Amount // what is used by nobody
	subjobs  map[job.Token]*subjob
	// lags: what has ended leaves the machine with as much in use, until base is less.
	lags bool
	// refuse: nothing can be suspended. slow: what is told to suspend is suspended at the next look.
	refuse, slow bool
}

type subjob struct {
	m                *machine
	resident, parked quantity.Amount
	told, still      bool
	ended            bool
	holds            int
	// cache is what it has in files, which comes first when it is moved out. pinned: nothing of it can be.
	cache  quantity.Amount
	pinned bool
}

func newMachine() *machine {
	return &machine{can: survival.Capability{Level: survival.Full, Kind: "made up"}, capacity: 100 * gib, room: 50 * gib,
		subjobs: map[job.Token]*subjob{}}
}

func (m *machine) Capability() survival.Capability { return m.can }
func (m *machine) Await(time.Duration)             {}
func (m *machine) Wake()                           {}
func (m *machine) Close() error                    { return nil }

func (m *machine) Sense(_ time.Duration, memory *survival.Memory) error {
	*memory = survival.Memory{Capacity: m.capacity, Used: m.base, Room: m.room}
	for _, s := range m.subjobs {
		memory.Used += s.resident
	}
	return nil
}

func (m *machine) Take(s survival.Subjob) (survival.Hold, error) {
	if j := m.subjobs[s.Token]; j != nil {
		j.holds++
		return j, nil
	}
	return nil, errkind.Errorf(errkind.NotFound, "gone")
}

func (m *machine) find(r *Row) (life, error) { return m.subjobs[r.Token], nil }

func (s *subjob) Measure(_ time.Duration, u *survival.Use) error {
	*u = survival.Use{Resident: s.resident, Parked: s.parked}
	return nil
}

func (s *subjob) Suspend() error {
	s.told = true // of what refuses a part may stand
	if s.m.refuse {
		return errkind.Errorf(errkind.Denied, "refused")
	}
	s.still = !s.m.slow
	return nil
}

func (s *subjob) Resume() error {
	s.told, s.still = false, false
	s.resident, s.m.room, s.parked = s.resident+s.parked, s.m.room+s.parked, 0
	return nil
}

func (s *subjob) Still() (bool, error) { return s.still && !s.ended, nil }

func (s *subjob) Settle(time.Duration) (bool, error) {
	s.still = s.told
	return s.Still()
}

func (s *subjob) Reclaim(most quantity.Amount) (quantity.Amount, error) {
	if s.pinned {
		return 0, nil
	}
	files := min(most, s.cache)
	s.cache -= files
	got := min(most-files, s.resident, s.m.room)
	s.resident, s.parked, s.m.room = s.resident-got, s.parked+got, s.m.room-got
	return got, nil
}

func (s *subjob) Close() error { s.holds--; return nil }

func (s *subjob) end() error {
	if s.m.lags {
		s.m.base += s.resident
	}
	s.ended, s.resident, s.parked, s.told, s.still = true, 0, 0, false, false
	return nil
}
func (s *subjob) gone() bool { return s.ended }
func (s *subjob) close()     {}

// world is a machine with a daemon and a watcher.
type world struct {
	t     fataler
	m     *machine
	r     *region
	w     *watcher
	boot  time.Duration
	slept time.Duration // of boot
	table Table
	dead  bool // the daemon is
	lives uint64
}

// fataler is a test of either kind.
type fataler interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newWorld(t fataler) *world {
	x := &world{t: t, m: newMachine(), r: divide(words{at: make([]uint64, regionWords)}), boot: time.Hour}
	x.table = Table{Config: airlock.Config{}.WithDefaults(), Wall: 1e18, Boot: 30 * time.Minute}
	x.begin()
	return x
}

// begin is the start of another watcher.
func (x *world) begin() {
	x.lives++
	x.w = newWatcher(x.r, x.m, x.m.find, x.lives)
}

// add has a subjob begin.
func (x *world) add(seq uint64, resident quantity.Amount, change func(*Row)) *subjob {
	r := Row{Token: job.Token{Epoch: 1, Seq: seq}, Start: x.w.now(x.boot), Class: airlock.Lasting, Init: int(seq)}
	if change != nil {
		change(&r)
	}
	s := &subjob{m: x.m, resident: resident}
	x.m.subjobs[r.Token] = s
	x.table.Rows = append(x.table.Rows, r)
	slices.SortFunc(x.table.Rows, func(a, b Row) int { return a.Token.Compare(b.Token) })
	x.publish()
	return s
}

func (x *world) publish() { x.r.table.write(x.table.encode(nil)) }

// look lets time pass, and has the watcher look.
func (x *world) look(passes time.Duration) {
	x.boot += passes
	if !x.dead {
		x.r.head.store(headBeat, uint64(x.boot-x.slept))
	}
	x.w.look(x.boot, x.boot-x.slept)
}

func (x *world) board() *Board {
	words, _, ok := x.r.board.read(make([]uint64, boardWords))
	var b Board
	if !ok || !b.decode(words) {
		x.t.Fatal("no board")
	}
	return &b
}

func (x *world) state(seq uint64) airlock.State {
	s, ok := x.board().Of(job.Token{Epoch: 1, Seq: seq})
	if !ok {
		x.t.Fatalf("subjob %d is not on the board", seq)
	}
	return s.State
}

func (x *world) acts() (all []Act) {
	_, lost := x.r.ring.read(0, func(a *Act) { all = append(all, *a) })
	if lost != 0 {
		x.t.Fatalf("%d acts were lost", lost)
	}
	return all
}

// TestTheLowestIsSuspendedAndResumed is the whole course of an entry that memory comes back for.
func TestTheLowestIsSuspendedAndResumed(t *testing.T) {
	x := newWorld(t)
	low := x.add(1, 20*gib, func(r *Row) { r.Priority = -1 })
	high := x.add(2, 20*gib, nil)
	x.look(rest)
	if x.m.base = 55 * gib; low.told {
		t.Fatal("it was touched with memory left")
	}
	x.look(rest)
	if !low.told || high.told || x.w.level != airlock.Severe {
		t.Fatalf("low told %v, high told %v at %v", low.told, high.told, x.w.level)
	}
	for range 1000 {
		x.look(alert)
	}
	// 95 of 100 GiB were in use, and 85 are the calm line
	if x.state(1) != airlock.Suspended || low.parked < 10*gib || low.parked > 11*gib {
		t.Fatalf("%v, with %d MiB moved out", x.state(1), low.parked>>20)
	}
	x.m.base += gib // no longer calm, and not short
	for range 100 {
		x.look(alert)
	}
	if x.state(1) != airlock.Suspended || low.parked < 11*gib {
		t.Fatalf("%v, with %d MiB moved out", x.state(1), low.parked>>20)
	}
	x.m.base = 10 * gib
	x.look(alert)
	if low.told || low.parked != 0 {
		t.Fatal("it does not go on")
	}
	x.look(alert)
	if s := x.state(1); s != airlock.Running {
		t.Fatalf("it is %v", s)
	}
	var steps []airlock.Step
	for _, a := range x.acts() {
		steps = append(steps, a.Step)
	}
	if !slices.Equal(steps, []airlock.Step{airlock.Suspend, airlock.Resume}) {
		t.Fatalf("it did %v", steps)
	}
}

// TestMovingOutTakesLong: after some seconds a subjob counts as suspended with what is out by then, and may go on; what it has left
// is moved out on while memory is not calm.
func TestMovingOutTakesLong(t *testing.T) {
	x := newWorld(t)
	x.m.capacity, x.m.room = 1000*gib, 500*gib
	s := x.add(1, 200*gib, nil)
	x.m.base = 730 * gib // short with it
	x.look(rest)
	for passed := time.Duration(0); passed < meal; passed += meal / 4 {
		if x.state(1) != airlock.Suspending {
			t.Fatalf("after %v it is %v", passed, x.state(1))
		}
		x.look(meal / 4)
	}
	if x.state(1) != airlock.Suspended || s.resident == 0 || s.parked == 0 {
		t.Fatalf("%v, with %d MiB moved out and %d left", x.state(1), s.parked>>20, s.resident>>20)
	}
	out := s.parked
	if x.look(alert); s.parked <= out {
		t.Fatal("memory is short, and no more is moved out")
	}
	out, x.m.base = s.parked, 500*gib
	x.look(0)
	if x.look(0); s.parked > out {
		t.Fatal("it is calm, and more is moved out")
	}
}

// TestFilesComeFirst: a bite that takes nothing but what can be read again is no sign that there is nothing to be had; many large ones are.
func TestFilesComeFirst(t *testing.T) {
	x := newWorld(t)
	s := x.add(1, 30*gib, func(r *Row) { r.Priority = -1 })
	s.cache = 100 * mib
	x.m.base = 63 * gib
	for range 100 {
		x.look(alert)
	}
	if s.parked == 0 {
		t.Fatalf("%v, and nothing is moved out, with %d MiB of files", x.state(1), s.cache>>20)
	}
	x = newWorld(t)
	s = x.add(1, 30*gib, nil)
	s.pinned = true
	x.m.base = 63 * gib
	for range 20 {
		x.look(alert)
	}
	if x.state(1) != airlock.Suspended {
		t.Fatalf("nothing of it can be moved out, and it is %v", x.state(1))
	}
}

// TestWhoIsEndedIsSaidBefore: at the emergency line the lowest is ended, and the board and the ring have it before it is.
func TestWhoIsEndedIsSaidBefore(t *testing.T) {
	x := newWorld(t)
	s := x.add(1, 20*gib, nil)
	x.add(2, 20*gib, func(r *Row) { r.Priority = 1 })
	x.look(rest)
	x.m.base, x.m.room = 58*gib, 0
	x.look(rest)
	if !s.ended || x.state(1) != airlock.Reclaiming || x.m.subjobs[job.Token{Epoch: 1, Seq: 2}].ended {
		t.Fatalf("ended %v, %v", s.ended, x.state(1))
	}
	if a := x.acts(); len(a) != 1 || a[0].Step != airlock.Reclaim || a[0].Cause != airlock.Brink {
		t.Fatalf("it did %v", a)
	}
	// A watcher that was killed after it had said so, and before it did it: the next one does it.
	*s = subjob{m: x.m, resident: 20 * gib}
	x.m.base = 0
	x.begin()
	x.look(rest)
	if !s.ended {
		t.Fatal("what was to be ended lives")
	}
}

// TestALifeBeginsAndEndsWithEverythingGoingOn, whether the one before was killed or ended in order.
func TestALifeBeginsAndEndsWithEverythingGoingOn(t *testing.T) {
	for _, orderly := range []bool{false, true} {
		x := newWorld(t)
		s := x.add(1, 30*gib, nil)
		x.m.base = 63 * gib
		x.look(rest)
		x.look(alert)
		if !s.told {
			t.Fatal("it goes on over the line")
		}
		if orderly {
			x.w.close()
			if s.told || s.holds != 0 || x.state(1) != airlock.Running {
				t.Fatalf("it is suspended after the end, with %d holds, %v", s.holds, x.state(1))
			}
			s.told = true // by whoever was there meanwhile
		}
		x.m.base = 0
		x.begin()
		x.look(rest)
		if s.told {
			t.Fatal("it is suspended at the beginning")
		}
		if b := x.board(); b.Stands[0].Entries != 1 {
			t.Fatalf("it was suspended once, and the next watcher says %d times", b.Stands[0].Entries)
		}
	}
}

func TestWhoLeavesTheTableGoesOn(t *testing.T) {
	x := newWorld(t)
	s := x.add(1, 30*gib, nil)
	x.m.base = 63 * gib
	x.look(rest)
	if !s.told {
		t.Fatal("it goes on over the line")
	}
	x.table.Rows = nil
	x.publish()
	x.look(alert)
	if s.told || s.holds != 0 {
		t.Fatalf("told %v, holds %d", s.told, s.holds)
	}
}

// TestAMachineThatSlept: a sleep is nobody's silence, and no time that an entry has stood.
func TestAMachineThatSlept(t *testing.T) {
	x := newWorld(t)
	x.m.room = 0
	s := x.add(1, 30*gib, func(r *Row) { r.Yields = true })
	x.m.base = 63 * gib
	x.look(rest)
	x.look(20 * time.Second)
	before, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1})
	for range 2 {
		x.boot, x.slept = x.boot+time.Hour, x.slept+time.Hour
		x.w.look(x.boot, x.boot-x.slept) // before the daemon says that it lives
	}
	after, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1})
	if s.ended || !x.w.present || after.State != airlock.Readdressing || after.Since != before.Since.Add(2*time.Hour) {
		t.Fatalf("ended %v, its daemon is there %v, %v since %d, and before since %d", s.ended, x.w.present, after.State, after.Since,
			before.Since)
	}
	if pulse := time.Duration(x.r.head.load(headPulse)); pulse != x.boot-x.slept {
		t.Fatalf("its pulse is %v, want the time awake", pulse)
	}
	if x.look(10 * time.Second); !s.ended {
		t.Fatal("its timer is over, and it lives")
	}
}

// TestNobodyAsksForADeadDaemon: a subjob that can yield is asked by the daemon alone. Without one it is left, and what was to be asked and
// was not is forgotten; at the emergency line and by their timers entries end as ever.
func TestNobodyAsksForADeadDaemon(t *testing.T) {
	x := newWorld(t)
	x.m.room = 0
	s := x.add(1, 30*gib, func(r *Row) { r.Yields = true })
	x.m.base = 63 * gib
	x.look(rest)
	if x.state(1) != airlock.Readdressing {
		t.Fatalf("without room to move anything to it is %v", x.state(1))
	}
	x.dead = true
	x.look(2 * absent)
	if st, _ := x.board().Of(job.Token{Epoch: 1, Seq: 1}); st.State != airlock.Running || st.Since != 0 {
		t.Fatalf("nobody asks it, and it is %v since %d", st.State, st.Since)
	}
	x.look(time.Minute)
	if s.ended {
		t.Fatal("it was ended for what it was never asked")
	}
	x.m.base = 68 * gib
	x.look(rest)
	if !s.ended {
		t.Fatal("it lives beyond the emergency line")
	}
}

// TestWhatCanNotBeSuspendedIsDecidedOnAgain: a step that fails is no step.
func TestWhatCanNotBeSuspendedIsDecidedOnAgain(t *testing.T) {
	x := newWorld(t)
	x.m.refuse = true
	s := x.add(1, 30*gib, func(r *Row) { r.Yields = true })
	x.m.base = 63 * gib
	x.look(rest)
	x.look(alert)
	if s.told || x.state(1) != airlock.Readdressing {
		t.Fatalf("told %v, %v", s.told, x.state(1))
	}
}

// TestATornTableIsNotBelieved: the daemon dies at whatever store, and the table before holds.
func TestATornTableIsNotBelieved(t *testing.T) {
	w, stores := mortal(regionWords)
	x := &world{t: t, m: newMachine(), r: divide(w), boot: time.Hour, table: Table{Config: airlock.Config{}.WithDefaults(), Wall: 1e18,
		Boot: 30 * time.Minute}}
	x.begin()
	x.add(1, gib, nil)
	x.look(rest)
	x.m.subjobs[job.Token{Epoch: 1, Seq: 2}] = &subjob{m: x.m}
	next := x.table
	next.Rows = append(slices.Clone(next.Rows), Row{Token: job.Token{Epoch: 1, Seq: 2}, Class: airlock.Lasting})
	words := next.encode(nil)
	for n := 0; killed(stores, n, func() { x.r.table.write(words) }); n++ {
		x.look(rest)
		if len(x.w.tasks) != 1 {
			t.Fatalf("killed at store %d, and %d subjobs are watched", n, len(x.w.tasks))
		}
	}
	x.look(rest)
	if len(x.w.tasks) != 2 {
		t.Fatalf("the table is whole, and %d subjobs are watched", len(x.w.tasks))
	}
}

// TestStorms: in random worlds, with the daemon and the watcher killed at any moment. After every look: what is suspended is what the board
// says does (I10: also without a daemon), and every entry ends within its timer (I7). Who is hit is core/airlock's alone (I8, I9), and
// tested there.
func TestStorms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := newWorld(t)
		x.m.slow = rapid.Bool().Draw(t, "slow")
		x.m.room = quantity.Amount(rapid.SampledFrom([]int{0, 5, 100}).Draw(t, "room")) * gib
		cfg := x.table.Config
		since := map[job.Token]time.Duration{}
		for seq := range uint64(rapid.IntRange(1, 8).Draw(t, "subjobs")) {
			x.add(seq+1, quantity.Amount(rapid.IntRange(1, 20).Draw(t, "GiB"))*gib, func(r *Row) {
				r.Priority, r.Class = rapid.Int32Range(-1, 1).Draw(t, "priority"), airlock.Class(rapid.IntRange(0, 2).Draw(t, "class"))
				r.Bound, r.Yields = rapid.IntRange(0, 5).Draw(t, "bound") == 0, rapid.Bool().Draw(t, "yields")
			})
		}
		for range rapid.IntRange(1, 60).Draw(t, "looks") {
			switch rapid.IntRange(0, 12).Draw(t, "event") {
			case 0:
				x.dead = !x.dead
			case 1: // the watcher is killed; supervisors thaw, each its own
				for _, s := range x.m.subjobs {
					_ = s.Resume()
				}
				x.begin()
				clear(since)
			case 2: // and another one comes before they have looked
				x.begin()
				clear(since)
			case 3:
				if i := rapid.IntRange(0, len(x.table.Rows)-1).Draw(t, "which"); !x.dead {
					x.table.Rows[i].Stopping = true
					x.publish()
				}
			case 4, 5, 6:
				x.m.base = quantity.Amount(rapid.IntRange(0, 90).Draw(t, "base GiB")) * gib
			}
			first := x.w.number == 0
			x.look(time.Duration(rapid.SampledFrom([]int{10, 100, 1000, 6000}).Draw(t, "ms")) * time.Millisecond)
			b := x.board()
			if first && x.w.level < airlock.Severe {
				for token, s := range x.m.subjobs {
					if s.told {
						t.Fatalf("a life begins with %v suspended", token)
					}
				}
			}
			for token, s := range x.m.subjobs {
				stand, ok := b.Of(token)
				if !ok {
					t.Fatalf("%v is not on the board", token)
				}
				if told := stand.State == airlock.Suspending || stand.State == airlock.Suspended; told != s.told {
					t.Fatalf("%v is %v, and was told to be suspended: %v", token, stand.State, s.told)
				}
				if s.ended != (stand.State == airlock.Reclaiming) {
					t.Fatalf("%v is %v, and was ended: %v", token, stand.State, s.ended)
				}
				if !s.told {
					delete(since, token)
				} else if _, known := since[token]; !known {
					since[token] = x.boot
				} else if stood := x.boot - since[token]; stood > cfg.Timer+6*time.Second {
					t.Fatalf("%v was suspended for %v", token, stood)
				}
			}
		}
	})
}

// TestALookAllocatesNothing, in a storm and at rest: with many subjobs that are suspended, go on, and are moved out.
func TestALookAllocatesNothing(t *testing.T) {
	x := newWorld(t)
	for seq := range uint64(900) {
		x.add(seq+1, 105*mib, nil)
	}
	high := false
	storm := func() {
		if x.m.base = -20 * gib; high {
			x.m.base = 0
		}
		high = !high
		x.look(10 * time.Second)
	}
	for range 5 {
		storm()
	}
	if n := testing.AllocsPerRun(100, storm); n != 0 {
		t.Errorf("a look in a storm allocates %.1f times", n)
	}
	x.m.base = 0
	if n := testing.AllocsPerRun(100, func() { x.look(rest) }); n != 0 {
		t.Errorf("a look at rest allocates %.1f times", n)
	}
	if len(x.acts()) == 0 {
		t.Fatal("there was no storm")
	}
}
