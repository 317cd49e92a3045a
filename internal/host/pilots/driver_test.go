package pilots

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/provider"
	"sluice.dev/sluice/internal/edge/provider/fake"
)

// A pilot from its ask to its end, as the zone is told of it.
func TestThePathOfAPilot(t *testing.T) {
	w := testWorld(t)
	name := w.ask()
	if p := w.pilot(name); p.State != 0 {
		t.Errorf("a sight from before the ask has %+v", p)
	}
	is := func(want supply.State) {
		t.Helper()
		w.pass(seconds(5))
		w.tick()
		if p := w.pilot(name); p.State != want {
			t.Errorf("state %v, want %v: %+v", p.State, want, p)
		}
	}
	is(supply.Waiting)
	if show := w.driver.Show(); len(show.Pilots) != 1 || show.Pilots[0].State != "waiting" || show.Pilots[0].Why != "Priority" {
		t.Errorf("people see %+v", show.Pilots)
	}
	w.host.Start(name)
	is(supply.Starting)
	if !w.cluster.join(name) {
		t.Fatal("its token is no good")
	}
	is(supply.Joined)
	p := w.pilot(name)
	if p.Asked != quantity.At(t0) || p.Started != quantity.At(t0.Add(seconds(5))) || p.Until != p.Started.Add(10*time.Minute) ||
		p.Length != 10*time.Minute || p.Joined == 0 || p.Idle != 0 {
		t.Errorf("%+v", p)
	}
	w.order(supply.Order{Idle: []string{name}})
	first := w.now
	is(supply.Joined)
	w.order(supply.Order{Idle: []string{name}})
	is(supply.Joined)
	if p = w.pilot(name); p.Idle != quantity.At(first) {
		t.Errorf("idle since %v, want %v", p.Idle.Time(), first)
	}
	w.order(supply.Order{})
	if is(supply.Joined); w.pilot(name).Idle != 0 {
		t.Error("a pilot that works is called idle")
	}
	w.cluster.leave(name)
	is(supply.Leaving)
	w.host.End(name, false)
	w.looks(1, seconds(5))
	if e := w.ending(name); e.How != supply.Done || e.Joined == 0 || len(w.sight().Pilots) != 0 {
		t.Errorf("ended %+v, still there %+v", e, w.sight().Pilots)
	}
}

// How a pilot has ended is told by all that is known of it.
func TestHowPilotsEnd(t *testing.T) {
	const wait = 20 * time.Second
	cancel := func(w *world, name string) {
		w.tick()
		w.order(supply.Order{Cancel: []supply.Cancel{{Name: name, Why: "nothing is left for it"}}})
	}
	for _, c := range []struct {
		name   string
		story  func(w *world) string
		how    supply.How
		why    string
		joined bool
		// limited: by a limit of the host's.
		limited bool
	}{
		{"it leaves by itself", func(w *world) string {
			name := w.runs()
			w.cluster.leave(name)
			w.host.End(name, false)
			return name
		}, supply.Done, "", true, false},
		{"its time is over", func(w *world) string {
			name := w.runs()
			w.unlink(name)
			w.pass(10 * time.Minute)
			return name
		}, supply.Done, "", true, false},
		{"it leaves, and the host forgets it at once", func(w *world) string {
			name := w.runs()
			w.cluster.leave(name)
			w.host.End(name, false)
			w.host.Forget()
			return name
		}, supply.Done, "does not know it", true, false},
		{"it is taken back", func(w *world) string {
			name := w.runs()
			w.host.Preempt(name)
			w.unlink(name)
			w.pass(time.Minute)
			return name
		}, supply.Preempted, "", true, false},
		{"it fails", func(w *world) string {
			name := w.runs()
			w.host.End(name, true)
			w.unlink(name)
			return name
		}, supply.Failed, "", true, false},
		{"it ends before its machine joins", func(w *world) string {
			name := w.ask()
			w.host.Start(name)
			w.tick()
			w.host.End(name, false)
			return name
		}, supply.Failed, "", false, false},
		{"its machine never joins", func(w *world) string {
			name := w.ask()
			w.host.Start(name)
			w.tick()
			w.pass(5 * time.Minute)
			w.tick()
			return name
		}, supply.Failed, "has not joined within", false, false},
		{"it is given back while it waits", func(w *world) string {
			name := w.ask()
			cancel(w, name)
			return name
		}, supply.Withdrawn, "nothing is left for it", false, false},
		{"it is given back while a limit keeps it back, and the daemon starts again", func(w *world) string {
			name := w.ask()
			w.host.Limit(name, true)
			cancel(w, name)
			w.start()
			return name
		}, supply.Withdrawn, "nothing is left for it", false, true},
		{"it is given back while it waits for room below a limit", func(w *world) string {
			name := w.ask()
			w.host.Limit(name, true)
			w.tick()
			w.host.Limit(name, false)
			cancel(w, name)
			return name
		}, supply.Withdrawn, "nothing is left for it", false, false},
		{"its host can never start it", func(w *world) string {
			name := w.ask()
			w.host.Doom(name)
			return name
		}, supply.Failed, "can never start it: QOSMaxWallDurationPerJobLimit", false, false},
		{"it is given back while it runs", func(w *world) string {
			name := w.runs()
			cancel(w, name)
			w.unlink(name)
			return name
		}, supply.Done, "nothing is left for it", true, false},
		{"somebody else takes it from the queue", func(w *world) string {
			name := w.ask()
			w.tick()
			w.host.End(name, true)
			return name
		}, supply.Refused, "", false, false},
		{"the host refuses it", func(w *world) string {
			w.host.Refuse(errkind.Errorf(errkind.Exhausted, "too many of yours are here"))
			w.tick()
			w.order(supply.Order{Ask: []time.Duration{time.Hour}})
			w.tick()
			w.host.Refuse(nil)
			return w.sight().Endings[0].Name
		}, supply.Refused, "too many of yours", false, true},
		{"the host refuses it for its account", func(w *world) string {
			w.host.Refuse(errkind.Errorf(errkind.Invalid, "Invalid account"))
			w.tick()
			w.order(supply.Order{Ask: []time.Duration{time.Hour}})
			w.tick()
			w.host.Refuse(nil)
			return w.sight().Endings[0].Name
		}, supply.Refused, "Invalid account", false, false},
		{"the host has lost it", func(w *world) string {
			name := w.ask()
			w.tick()
			w.host.Crash()
			return name
		}, supply.Vanished, "does not know it", false, false},
		{"the host loses it as it runs", func(w *world) string {
			name := w.runs()
			w.unlink(name)
			w.host.End(name, false)
			w.host.Forget()
			return name
		}, supply.Vanished, "does not know it", true, false},
		{"it waits longer than its token is good", func(w *world) string {
			name := w.ask()
			w.pass(DefaultWait - time.Minute)
			if w.tick(); w.cluster.open[job.NodeID(name)].Before(w.now.Add(2 * time.Minute)) {
				w.t.Fatalf("its token has lapsed before it is given back")
			}
			w.pass(time.Minute)
			w.tick()
			return name
		}, supply.Withdrawn, "as long as its token", false, false},
		{"its machine was removed, and it hangs", func(w *world) string {
			name := w.runs()
			w.cluster.leave(name)
			w.pass(30 * time.Second)
			w.tick()
			return name
		}, supply.Done, "has left the cluster", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := testWorld(t)
			name := c.story(w)
			w.looks(4, wait)
			e := w.ending(name)
			if e.How != c.how || !strings.Contains(e.Why, c.why) || (e.Joined != 0) != c.joined || e.Limited != c.limited {
				t.Errorf("it ended %v (%q), joined %v, limited %v; want %v, %q, %v, %v", e.How, e.Why, e.Joined != 0, e.Limited,
					c.how, c.why, c.joined, c.limited)
			}
			if left := w.atHost(); len(left)+len(w.cluster.open)+len(w.recorded()) > 0 {
				t.Errorf("left: at the host %v, tokens %v, in the ledger %v", left, w.cluster.open, w.recorded())
			}
			if show := w.driver.Show(); len(show.Ended) != 1 || show.Ended[0].How != c.how.String() || show.Ended[0].Count != 1 ||
				len(show.Endings) != 1 {
				t.Errorf("people see %+v", show)
			}
		})
	}
}

// A submission whose answer is lost is counted for as long as it may still come, and is believed once it is seen.
func TestALostAnswer(t *testing.T) {
	w := testWorld(t)
	w.late = true
	name := w.ask()
	w.late = false
	w.looks(5, seconds(10))
	if p := w.pilot(name); p.State != supply.Sent {
		t.Errorf("before it is seen: %+v", p)
	}
	w.looks(2, seconds(10))
	if p := w.pilot(name); p.State != supply.Waiting {
		t.Errorf("once it is seen: %+v", p)
	}
	w.late = true
	lost := w.ask()
	w.late, w.flying = false, nil
	w.looks(12, seconds(10))
	if w.pilot(lost).Name == "" {
		t.Error("it is given up before two minutes are over")
	}
	w.looks(2, seconds(10))
	if e := w.ending(lost); e.How != supply.Vanished || len(w.cluster.open) != 1 {
		t.Errorf("%+v, open tokens %v", e, w.cluster.open)
	}
}

// A pilot that its host shows again was not gone: looks that miss it count from then on.
func TestMissesDoNotAddUp(t *testing.T) {
	w := testWorld(t)
	w.late = true
	name := w.ask()
	w.late = false
	w.looks(5, seconds(10))
	if w.looks(2, seconds(10)); w.pilot(name).State != supply.Waiting {
		t.Fatalf("%+v", w.pilot(name))
	}
	w.host.Crash() // which loses it
	if w.looks(2, seconds(10)); w.pilot(name).Name == "" {
		t.Error("it is given up after two looks")
	}
	if w.looks(1, seconds(10)); w.ending(name).How != supply.Vanished {
		t.Errorf("after three looks: %+v, %+v", w.pilot(name), w.ending(name))
	}
}

// Of several copies the one counts that does most, and of two alike the first.
func TestTheCopyThatCounts(t *testing.T) {
	order := []provider.State{provider.Running, provider.Ending, provider.Waiting, provider.Ended}
	for i, best := range order {
		for _, other := range order[i:] {
			first := provider.Seen{ID: "1", State: best, Began: t0}
			second := provider.Seen{ID: "2", State: other, Began: t0.Add(time.Second)}
			for _, c := range []copies{{first, second}, {second, first}} {
				if got := c.best(); got.ID != "1" {
					t.Errorf("of %v and %v it is %v", best, other, got.State)
				}
			}
			if second.Began = t0.Add(-time.Second); best != other && (copies{second, first}).best().ID != "1" {
				t.Errorf("of %v and an earlier %v it is the latter", best, other)
			}
		}
	}
	if (copies{}).best() != nil {
		t.Error("there is none")
	}
}

// Which of two copies a machine is of nobody knows, so neither's end closes it until one is left.
func TestTheEndOfOneOfTwoCopies(t *testing.T) {
	w := testWorld(t)
	name := w.runs()
	w.host.Double(name)
	w.host.Preempt(name)
	w.looks(2, seconds(5))
	if len(w.cluster.told) != 0 {
		t.Errorf("closed: %v", w.cluster.told)
	}
	w.host.EndOne(name)
	ends := w.now.Add(fake.Grace - seconds(10))
	w.looks(1, seconds(5))
	if at, ok := w.cluster.told[job.NodeID(name)]; !ok || !at.Equal(ends) {
		t.Errorf("closed by %v, want %v", at, ends)
	}
}

// Looks that fail say nothing of who is gone.
func TestSilence(t *testing.T) {
	w := testWorld(t)
	name := w.ask()
	w.tick()
	seen := w.sight().Seen
	w.host.Silence(true)
	w.looks(100, time.Minute)
	if s := w.sight(); s.Seen != seen || !strings.Contains(s.Silent, "does not answer") || w.pilot(name).State != supply.Waiting {
		t.Errorf("%+v", s)
	}
	if show := w.driver.Show(); show.Silent == "" || show.Seen != seen {
		t.Errorf("people see %+v", show)
	}
	w.host.Silence(false)
	if w.tick(); w.sight().Silent != "" || w.pilot(name).State != supply.Waiting {
		t.Errorf("%+v", w.sight())
	}
	w.host.Silence(true)
	if !w.cluster.join(name) {
		t.Fatal("its token is no good")
	}
	joined := w.now
	w.looks(1, time.Minute) // who has joined is written down whatever the host says
	if b := w.ledger.read("pool"); len(b.Pilots) != 1 || !b.Pilots[0].Joined.Equal(joined) {
		t.Errorf("recorded: %+v, which has joined at %v", b.Pilots, joined)
	}
}

// A machine that is linked is there, whatever its host says, and one that the host ends early is sold no longer than that.
func TestMachinesAndTheirHost(t *testing.T) {
	w := testWorld(t)
	name := w.runs()
	w.host.End(name, false)
	w.host.Forget()
	w.looks(10, time.Minute)
	if p := w.pilot(name); p.State != supply.Joined {
		t.Errorf("a linked machine whose host has lost it: %+v", p)
	}
	other := w.runs()
	m := w.cluster.all[job.NodeID(other)]
	m.Until = w.now.Add(10 * time.Minute)
	w.cluster.all[job.NodeID(other)] = m
	w.looks(2, seconds(5))
	if len(w.cluster.told) != 0 {
		t.Errorf("closed before its time: %v", w.cluster.told)
	}
	w.host.Preempt(other)
	ends := w.now.Add(fake.Grace)
	w.looks(2, seconds(5))
	if at := w.cluster.told[job.NodeID(other)]; !at.Equal(ends) || w.pilot(other).State != supply.Leaving {
		t.Errorf("closed by %v, want %v; %+v", at, ends, w.pilot(other))
	}
}

// A pilot that its host puts back into the queue waits again, as one that was never begun, and has all its time to join once it is begun
// again.
func TestAPilotThatIsPutBack(t *testing.T) {
	w := testWorld(t)
	name := w.ask()
	w.host.Start(name)
	w.looks(4, time.Minute)
	w.host.Requeue(name)
	w.looks(1, time.Minute)
	if p := w.pilot(name); p.State != supply.Waiting || p.Started != 0 || p.Until != 0 {
		t.Errorf("put back: %+v", p)
	}
	w.looks(1, time.Hour)
	w.host.Start(name)
	began := w.now
	w.looks(1, time.Minute)
	if p := w.pilot(name); p.State != supply.Starting || p.Started != quantity.At(began) {
		t.Errorf("begun again at %v: %+v", began, p)
	}
	if !w.cluster.join(name) {
		t.Fatal("its token is no good")
	}
	w.host.Requeue(name)
	w.looks(1, time.Minute)
	if p := w.pilot(name); p.State != supply.Joined || p.Started != quantity.At(began) {
		t.Errorf("put back once its machine has joined: %+v", p)
	}
	other := w.ask()
	w.host.Start(other)
	w.looks(1, time.Minute)
	w.host.Requeue(other)
	w.pass(DefaultWait)
	w.looks(2, seconds(30))
	if e := w.ending(other); e.How != supply.Withdrawn {
		t.Errorf("one that waits longer than its token is good: %+v", e)
	}
}

// A host whose clock is not the head's says that a pilot began before it was asked for, or ends in an hour from now. Neither is so: by the
// first a start would cost an hour, by the second a failure would.
func TestAHostWithAnotherClock(t *testing.T) {
	for _, wrong := range []time.Duration{-time.Hour, time.Hour} {
		w := testWorld(t)
		w.host = fake.New(func() time.Time { return w.now.Add(wrong) })
		w.start()
		name := w.ask()
		w.looks(4, time.Minute)
		before := w.now
		w.pass(seconds(5))
		w.host.Start(name)
		w.looks(1, seconds(5))
		if p := w.pilot(name); p.Started < quantity.At(before) || p.Started > quantity.At(w.now) {
			t.Errorf("%v: began at %v, which was between %v and %v", wrong, p.Started.Time(), before, w.now)
		}
		w.host.End(name, true)
		w.looks(1, seconds(5))
		if e := w.ending(name); e.How != supply.Failed || e.Ended < e.Started || e.Ended > quantity.At(w.now) {
			t.Errorf("%v: %+v", wrong, e)
		}
	}
}

// What nobody counts is ended: a revenant, and what an older copy of the ledger does not know. Another pool's pilots stay.
func TestRevenants(t *testing.T) {
	w := testWorld(t)
	name := w.ask()
	w.host.Save()
	w.tick()
	w.order(supply.Order{Cancel: []supply.Cancel{{Name: name, Why: "x"}}})
	w.looks(1, seconds(5))
	if e := w.ending(name); e.How != supply.Withdrawn {
		t.Fatalf("%+v", e)
	}
	w.host.Crash()
	if !slices.Contains(w.atHost(), name) {
		t.Fatal("the host did not bring it back")
	}
	w.host.Start(name)
	if w.cluster.join(name) {
		t.Error("a revenant joins")
	}
	w.looks(8, seconds(5))
	if there := w.atHost(); len(there) != 0 {
		t.Errorf("%v is still there", there)
	}
	counted := w.ask()
	stranger := provider.Pilot{Name: "pool-b-abcdefgh", Length: time.Minute, Head: "h:1", Token: "t"}
	if err := w.host.Provider("mark0001").Submit(t.Context(), stranger); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(w.dir, FileName)); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.looks(2, seconds(5))
	if there := w.atHost(); !slices.Equal(there, []string{stranger.Name}) {
		t.Errorf("at the host is %v, want the other pool's alone, not %s", there, counted)
	}
}

// Orders count that answer the newest sight, once, and never beyond the limit.
func TestOrders(t *testing.T) {
	w := testWorld(t)
	w.tick()
	old := w.sight().Number
	w.tick()
	ask := func(number uint64, n int) int {
		o := &supply.Order{Pool: "pool", Number: number, Ask: slices.Repeat([]time.Duration{time.Hour}, n), Why: "work waits"}
		w.driver.Ordered(o)
		w.driver.Obey(t.Context())
		return len(w.recorded())
	}
	if n := ask(old, 1); n != 0 {
		t.Errorf("%d pilots by an order to an older sight", n)
	}
	if n := ask(old+1, 1); n != 1 {
		t.Errorf("%d pilots by an order for one", n)
	}
	if n := ask(old+1, 1); n != 1 {
		t.Errorf("%d pilots once the order is repeated", n)
	}
	w.tick()
	if n := ask(old+2, 9); n != w.pool.Most {
		t.Errorf("%d pilots, want the limit of %d", n, w.pool.Most)
	}
	if show := w.driver.Show(); show.Why != "work waits" || show.Decided != quantity.At(w.now) {
		t.Errorf("%+v", show)
	}
	w.host.Silence(true)
	w.driver.Tick(t.Context())
	w.order(supply.Order{Cancel: []supply.Cancel{{Name: w.recorded()[0], Why: "x"}}})
	w.host.Silence(false)
	w.looks(1, seconds(5)) // what the host has not heard it is told again
	if there := w.atHost(); len(there) != w.pool.Most-1 {
		t.Errorf("at the host: %v", there)
	}
}

// A pause holds over a start, reaches the zone, and stops an order that was not obeyed yet.
func TestPause(t *testing.T) {
	w := testWorld(t)
	w.tick()
	w.driver.Ordered(&supply.Order{Pool: "pool", Number: w.sight().Number, Ask: []time.Duration{time.Hour}})
	if err := w.driver.Pause("ada", "maintenance"); err != nil {
		t.Fatal(err)
	}
	if w.driver.Obey(t.Context()); len(w.recorded()) != 0 {
		t.Error("an order is obeyed that came before the pause")
	}
	w.start()
	if s := w.tick(); s.Pool.Paused != "ada: maintenance" {
		t.Errorf("paused by %q", s.Pool.Paused)
	}
	if w.order(supply.Order{Ask: []time.Duration{time.Hour}}); len(w.recorded()) != 0 {
		t.Error("a paused pool has asked")
	}
	if err := w.driver.Resume(); err != nil {
		t.Fatal(err)
	}
	if s := w.tick(); s.Pool.Paused != "" {
		t.Errorf("paused by %q", s.Pool.Paused)
	}
}

// After a start pilots are Sent until the host shows them; what it does not show is given up as ever.
func TestRestart(t *testing.T) {
	w := testWorld(t)
	name := w.ask()
	w.tick()
	w.start()
	w.host.Silence(true)
	if w.tick(); w.pilot(name).State != supply.Sent {
		t.Errorf("%+v", w.pilot(name))
	}
	w.host.Silence(false)
	if w.tick(); w.pilot(name).State != supply.Waiting {
		t.Errorf("%+v", w.pilot(name))
	}
}

func TestTry(t *testing.T) {
	w := testWorld(t)
	w.tick()
	try, err := w.driver.Try(t.Context())
	if err != nil || !try.Taken || try.Wanted || try.Length != 10*time.Minute || try.Command == "" {
		t.Errorf("%+v, %v", try, err)
	}
	w.driver.Ordered(&supply.Order{Pool: "pool", Number: w.sight().Number, Ask: []time.Duration{time.Hour}, Why: "work waits"})
	w.host.Refuse(errkind.Errorf(errkind.Denied, "no such account"))
	if try, err = w.driver.Try(t.Context()); err != nil || try.Taken || !try.Wanted || try.Length != time.Hour || try.Provider.Why == "" ||
		!strings.Contains(try.Why, "no such account") {
		t.Errorf("%+v, %v", try, err)
	}
	w.host.Silence(true)
	if _, err = w.driver.Try(t.Context()); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("%v", err)
	}
	if len(w.recorded())+len(w.atHost()) > 0 {
		t.Error("a trial has asked for a pilot")
	}
}
