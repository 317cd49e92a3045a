package airlock

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	gib = quantity.Amount(1) << 30
	t0  = quantity.Instant(1_000_000 * time.Second)
)

// host draws one at any level, with tasks in any state.
func host(t *rapid.T) *Snapshot {
	s := &Snapshot{
		Capacity: 100 * gib, Used: quantity.Amount(rapid.IntRange(0, 101<<10).Draw(t, "used MiB")) << 20,
		Growth: quantity.Amount(rapid.SampledFrom([]int{0, 0, 0, -50, 10, 500, 4000}).Draw(t, "growth MiB/s")) << 20,
		Room:   quantity.Amount(rapid.SampledFrom([]int{0, 1, 5, 60}).Draw(t, "room GiB")) * gib,
		Stall:  rapid.SampledFrom([]int64{0, 0, 100, 400}).Draw(t, "stall"),
		Owed:   quantity.Amount(rapid.SampledFrom([]int{0, 0, 1, 3, 12}).Draw(t, "owed GiB")) * gib,
	}
	for i := range rapid.IntRange(0, 12).Draw(t, "tasks") {
		k := Task{
			Token:    job.Token{Epoch: 1, Seq: uint64(i)},
			Start:    t0.Add(-time.Duration(rapid.SampledFrom([]int{0, 1, 3, 100, 5000}).Draw(t, "ran s")) * time.Second),
			Priority: rapid.Int32Range(-1, 1).Draw(t, "priority"), Class: Class(rapid.IntRange(0, 2).Draw(t, "class")),
			Value: uint16(rapid.IntRange(0, 2).Draw(t, "value")), State: State(rapid.IntRange(0, States-1).Draw(t, "state")),
			Resident: quantity.Amount(rapid.SampledFrom([]int{0, 1, 700, 3000, 20000}).Draw(t, "resident MiB")) << 20,
			Growth:   quantity.Amount(rapid.SampledFrom([]int{0, 0, -5, 40, 2000}).Draw(t, "its growth MiB/s")) << 20,
			Planned:  quantity.Amount(rapid.SampledFrom([]int{0, 1, 800, 3000, 10000}).Draw(t, "planned MiB")) << 20,
			Entries:  uint8(rapid.IntRange(0, 3).Draw(t, "entries")), Bound: rapid.IntRange(0, 5).Draw(t, "bound") == 0,
			Yields: rapid.Bool().Draw(t, "yields"),
		}
		switch k.State {
		case Suspended:
			k.Parked = k.Resident
			k.Resident = 0
			fallthrough
		case Suspending, Readdressing:
			k.Since = t0.Add(-time.Duration(rapid.IntRange(0, 40).Draw(t, "stood s")) * time.Second)
		default:
		}
		if rapid.IntRange(0, 4).Draw(t, "was suspended") == 0 {
			k.Resumed = t0.Add(-time.Duration(rapid.IntRange(0, 10).Draw(t, "resumed before s")) * time.Second)
		}
		s.Tasks = append(s.Tasks, k)
	}
	return s
}

func config(t *rapid.T) Config {
	return Config{Order: Order(rapid.IntRange(0, 1).Draw(t, "order")), Outgrown: Outgrown(rapid.IntRange(0, 1).Draw(t, "outgrown")),
		MostTasks: rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "most"), MostBytes: rapid.SampledFrom([]int64{20, 500}).Draw(t,
			"most bytes")}.WithDefaults()
}

// below is the order of survival, field by field: which of two tasks is hit first.
func below(c *Config, x, y *Task) bool {
	band := func(n int64) int { return bits.Len64(uint64(n)) }
	first, second := cmp.Compare(x.Priority, y.Priority), cmp.Compare(x.Class, y.Class)
	if c.Order == ClassFirst {
		first, second = second, first
	}
	kept := func(t *Task) int {
		if c.Outgrown == OutgrownFirst && t.Planned > 0 && 8*(t.Resident+t.Parked) > 9*t.Planned {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(kept(x), kept(y)), first, second, cmp.Compare(x.Value, y.Value),
		cmp.Compare(band(1+int64(t0.Sub(x.Start)/time.Second)), band(1+int64(t0.Sub(y.Start)/time.Second))),
		-cmp.Compare(band(1+int64((x.Resident+x.Parked)>>20)), band(1+int64((y.Resident+y.Parked)>>20))),
		x.Token.Compare(y.Token)) < 0
}

func TestTheKeyIsTheOrderOfItsFields(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, s := config(t), host(t)
		for i := range s.Tasks {
			for j := range s.Tasks {
				if got, want := o.Outranks(t0, &s.Tasks[j], &s.Tasks[i]), below(&o, &s.Tasks[i], &s.Tasks[j]); got != want {
					t.Fatalf("%+v below %+v: %v, want %v", s.Tasks[i], s.Tasks[j], got, want)
				}
			}
		}
	})
}

// ascending is the order of survival, the lowest first.
func ascending(c *Config, s *Snapshot) []int {
	order := make([]int, 0, len(s.Tasks))
	for i := range s.Tasks {
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int {
		if below(c, &s.Tasks[i], &s.Tasks[j]) {
			return -1
		}
		return 1
	})
	return order
}

// ahead is what grows within the horizon.
func ahead(g quantity.Amount) quantity.Amount { return 2 * max(0, g) }

// victims are what brute force makes of a host at a level: the lowest of those that can give way, as many as are needed, by what ending or
// suspending each would bring. blocked is the lowest that can't; swift the memory that is being freed, without that of tasks asked for a
// checkpoint above one that can't.
func victims(c *Config, level Level, d *Decision, s *Snapshot) (want []Action, blocked int, swift quantity.Amount) {
	order, blocked := ascending(c, s), -1
	least := s.Capacity / 1000
	line, room, parked, got := s.Capacity*85/100, d.Room, d.ParkedTasks, s.Owed
	if level == Emergency {
		line = s.Capacity * 92 / 100
	}
	need, slow := max(1, d.Used+ahead(s.Growth)-line), quantity.Amount(0)
	overtime := map[int]bool{}
	for _, a := range d.Actions {
		if overtime[a.Task] = a.Cause == Overtime && a.Step == Reclaim; level == Emergency && overtime[a.Task] {
			got += a.Relief
		}
	}
	for i := range s.Tasks {
		switch k := &s.Tasks[i]; {
		case k.State == Reclaiming || k.State.Leaves() && level == Severe:
			got += k.Resident
		case k.State == Suspending && level == Severe:
			got += min(k.Resident, d.Room)
			room -= min(room, k.Resident)
		}
	}
	missing := d.Used + 5*ahead(s.Growth) - s.Capacity - s.Owed
	for i := range s.Tasks {
		if k := &s.Tasks[i]; k.State.Leaves() {
			missing -= k.Resident + 5*ahead(k.Growth)
		}
	}
	asked, passed := map[int]bool{}, false
	for _, i := range order {
		k := &s.Tasks[i]
		gives := k.Resident + 5*ahead(k.Growth)
		if level != Guarded && level != Severe || k.State != Running && k.State != Resuming || missing <= 0 || gives < least {
			continue
		}
		if !k.Yields || k.Planned == 0 || 8*(k.Resident+k.Parked) <= 9*k.Planned {
			passed = true
			continue
		}
		asked[i] = true
		want = append(want, Action{Task: i, Step: Readdress, Relief: k.Resident + ahead(k.Growth)})
		missing -= gives
		if got += k.Resident; passed {
			slow += k.Resident
		}
	}
	if level < Severe {
		return want, -1, 0
	}
	for _, i := range order {
		k := &s.Tasks[i]
		if got >= need {
			break
		}
		if asked[i] {
			continue
		}
		if level == Emergency {
			if k.State != Reclaiming && k.Resident >= least && !overtime[i] {
				got += k.Resident
				want = append(want, Action{Task: i, Step: Reclaim, Relief: k.Resident})
			}
			continue
		}
		all, moved := k.Resident+ahead(k.Growth), min(k.Resident, room)
		switch stands := moved + ahead(k.Growth); {
		case k.State != Running && k.State != Resuming || all < least:
		case stands >= least && !k.Bound && k.Entries < c.Entries && parked < c.MostTasks:
			want = append(want, Action{Task: i, Step: Suspend, Relief: stands})
			room, parked, got = room-moved, parked+1, got+stands
		case k.Yields:
			want = append(want, Action{Task: i, Step: Readdress, Relief: all})
			if got += all; blocked >= 0 {
				slow += all
			}
		case blocked < 0:
			blocked = i
		}
	}
	return want, blocked, got - slow
}

// TestVictimsAreTheShortestPrefix: of the order of survival without those that can't give way, whatever the host is like, and by the
// cheapest step that is open to each; at the emergency line of the order as it is, unless what is above it can be moved out.
func TestVictimsAreTheShortestPrefix(t *testing.T) {
	everyHost(t, func(t *rapid.T, c Config, s *Snapshot) {
		d := New(c).Decide(t0, s)
		level := c.Read(s).Level
		if level == Emergency {
			above := d.Used + ahead(s.Growth) - s.Capacity*97/100
			if _, _, swift := victims(&c, Severe, d, s); above <= d.Room && swift >= above {
				level = Severe
			}
		}
		want, blocked, _ := victims(&c, level, d, s)
		var got []Action
		for _, x := range d.Actions {
			if x.Cause == Deficit || x.Cause == Foreseen || x.Cause == Brink {
				got = append(got, Action{Task: x.Task, Step: x.Step, Relief: x.Relief})
			}
		}
		if !slices.Equal(got, want) || d.Blocked != blocked || d.Level != level {
			t.Fatalf("%v\nvictims %+v, blocked %d\nwant    %+v, blocked %d, at level %v", d, got, d.Blocked, want, blocked, level)
		}
	})
}

// mayStand says whether a task may be suspended, with so much room outside and so many that are suspended.
func mayStand(c *Config, k *Task, least, room quantity.Amount, parked int) bool {
	return min(k.Resident, room)+ahead(k.Growth) >= least && !k.Bound && k.Entries < c.Entries && parked < c.MostTasks
}

// TestEveryDecisionHolds: I7 to I9, and the bounds.
func TestEveryDecisionHolds(t *testing.T) {
	everyHost(t, func(t *rapid.T, c Config, s *Snapshot) {
		a := New(c)
		d := *a.Decide(t0, s)
		d.Actions = slices.Clone(d.Actions)
		acted := map[int]Action{}
		parked, bytes := d.ParkedTasks, quantity.Amount(0)
		for _, x := range d.Actions {
			k := &s.Tasks[x.Task]
			if _, twice := acted[x.Task]; twice || x.Token != k.Token {
				t.Fatalf("%v is acted on twice, or is another: %v", k.Token, &d)
			}
			acted[x.Task] = x
			over := k.Since != 0 && t0.Sub(k.Since) >= c.Timer
			switch x.Step {
			case Suspend:
				parked++
				bytes += min(k.Resident, x.Relief)
				if k.Bound || k.Entries >= c.Entries {
					t.Fatalf("%v is suspended, and may not be: %v", k.Token, &d)
				}
			case Reclaim:
				if x.Cause == Overtime && !over || x.Cause != Overtime && d.Level != Emergency {
					t.Fatalf("%v is ended at level %v: %v", k.Token, d.Level, &d)
				}
			case Resume:
				if x.Cause == Overtime && !over || x.Cause != Overtime && d.Level >= Severe {
					t.Fatalf("%v goes on at level %v", k.Token, d.Level)
				}
			case Readdress:
				if !k.Yields || d.Level == Emergency {
					t.Fatalf("%v is asked to yield at level %v and can: %v", k.Token, d.Level, k.Yields)
				}
				if x.Cause == Cramped && (!k.Outgrown() || d.Level != Calm || d.Used+k.Parked < s.Capacity*92/100) {
					t.Fatalf("%v is asked to yield, and might go on: %v", k.Token, &d)
				}
			}
		}
		if suspends := parked > d.ParkedTasks; suspends &&
			(parked > c.MostTasks || bytes > d.Room+2*4000<<20*quantity.Amount(len(s.Tasks))) {
			t.Fatalf("%d are suspended with %d MiB, of at most %d and %d MiB", parked, bytes>>20, c.MostTasks, d.Room>>20)
		}
		holdsTheOrder(t, &c, s, &d, acted)
		// I9: the same in whatever order the tasks stand.
		mixed := *s
		mixed.Tasks = rapid.Permutation(s.Tasks).Draw(t, "mixed")
		said := func(d *Decision) (out []string) {
			for _, x := range d.Actions {
				out = append(out, x.Token.String()+x.Step.String()+x.Cause.String())
			}
			slices.Sort(out)
			return out
		}
		if first, second := said(&d), said(New(c).Decide(t0, &mixed)); !slices.Equal(first, second) {
			t.Fatalf("the same host, told in another order: %v, %v", first, second)
		}
		if again := a.Decide(t0, s); !slices.Equal(again.Actions, d.Actions) {
			t.Fatalf("asked again it decides otherwise: %v, %v", again, &d)
		}
	})
}

// holdsTheOrder is I7 and I8. Who survives outranks all that are ended, but for those whose end would help nobody, and for who was asked to
// yield and has not in time. Who gives way short of that is the lowest that can.
func holdsTheOrder(t *rapid.T, c *Config, s *Snapshot, d *Decision, acted map[int]Action) {
	order, least := ascending(c, s), s.Capacity/1000
	over := func(k *Task) bool {
		return (k.State == Suspending || k.State == Suspended || k.State == Readdressing) && k.Since != 0 && t0.Sub(k.Since) >= c.Timer
	}
	room, parked := d.Room, d.ParkedTasks
	for i := range s.Tasks {
		k := &s.Tasks[i]
		if k.State == Suspending {
			room -= min(room, k.Resident)
		}
		if x := acted[i]; over(k) && x.Step != Reclaim && x.Step != Resume {
			t.Fatalf("I7: the time of %+v is over, and it is told %v: %v", *k, x.Step, d)
		}
	}
	// Of those that were passed so far, the lowest: that has memory and is not ended, that does not end for its time either, that could
	// give way, and could leave in time.
	var alive, stays, able, leaver *Task
	lowest := func(at **Task, k *Task, is bool) {
		if *at == nil && is {
			*at = k
		}
	}
	for _, i := range order {
		k, x := &s.Tasks[i], acted[i]
		var low *Task
		switch {
		case x.Cause == Brink:
			low = alive
		case x.Cause == Overtime && x.Step == Reclaim && k.State != Readdressing:
			low = stays
		case x.Cause == Deficit:
			low = able
		case x.Cause == Foreseen:
			low = leaver
		case x.Cause == Overtime && x.Step == Resume && stays == nil:
			t.Fatalf("%+v goes on when its time is over, and nobody below it stays: %v", *k, d)
		}
		if low != nil {
			t.Fatalf("I8: %+v survives, and %+v above it is told to %v: %v", *low, *k, x.Step, d)
		}
		runs := k.State == Running || k.State == Resuming
		stands := mayStand(c, k, least, room, parked)
		if x.Step == Suspend {
			room, parked = room-min(room, k.Resident), parked+1
		}
		lowest(&alive, k, x.Step != Reclaim && k.State != Reclaiming && k.Resident >= least)
		lowest(&stays, k, !k.State.Leaves() && !over(k) && k.Resident+k.Parked >= least)
		lowest(&able, k, runs && x.Step == 0 && k.Resident+ahead(k.Growth) >= least && (k.Yields || stands))
		lowest(&leaver, k, runs && x.Step == 0 && k.Resident+5*ahead(k.Growth) >= least && k.Yields && k.Outgrown())
	}
	for i, x := range acted { // and who goes on for room is the highest that is suspended
		for j := range s.Tasks {
			if _, hit := acted[j]; hit || x.Step != Resume || x.Cause == Overtime || s.Tasks[j].State != Suspended {
				continue
			}
			if below(c, &s.Tasks[i], &s.Tasks[j]) {
				t.Fatalf("%+v goes on, and %+v above it doesn't: %v", s.Tasks[i], s.Tasks[j], d)
			}
		}
	}
}

func TestTheLines(t *testing.T) {
	c := Config{}.WithDefaults()
	for _, x := range []struct {
		name   string
		s      Snapshot
		want   Level
		saying string
	}{
		{"a host whose memory is not known", Snapshot{Used: gib, Growth: gib}, Calm, ""},
		{"below the calm line", Snapshot{Capacity: 100 * gib, Used: 84 * gib}, Calm, "85"},
		{"at it", Snapshot{Capacity: 100 * gib, Used: 85 * gib}, Guarded, "(85.0%)"},
		{"at the severe line", Snapshot{Capacity: 100 * gib, Used: 92 * gib}, Severe, "(92.0%)"},
		{"at the emergency line", Snapshot{Capacity: 100 * gib, Used: 97 * gib}, Emergency, "(97.0%)"},
		{"growing to the end within the horizon", Snapshot{Capacity: 100 * gib, Used: 50 * gib, Growth: 25 * gib}, Severe,
			"which is 2s to the end"},
		{"a little slower", Snapshot{Capacity: 100 * gib, Used: 50 * gib, Growth: 24 * gib}, Calm, ""},
		{"within the brink", Snapshot{Capacity: 100 * gib, Used: 50 * gib, Growth: 250 * gib}, Emergency, "which is 200ms to the end"},
		{"stalling", Snapshot{Capacity: 100 * gib, Used: 50 * gib, Stall: 200}, Severe, "stalled for 20.0% of the time"},
		{"full", Snapshot{Capacity: 100 * gib, Used: 100 * gib}, Emergency, "(100.0%)"},
	} {
		r := c.Read(&x.s)
		if r.Level != x.want {
			t.Errorf("%s is %v, want %v", x.name, r.Level, x.want)
		}
		if said := r.String(); x.want != Calm && (!strings.Contains(said, x.saying) || !strings.HasPrefix(said, x.want.String())) {
			t.Errorf("%s says %q, want %q in it", x.name, said, x.saying)
		}
	}
}

// crowd is a host over a line, with so many tasks of all kinds.
func crowd(n int, used quantity.Amount) *Snapshot {
	s := &Snapshot{Capacity: 100 * gib, Used: used, Room: 50 * gib}
	for i := range n {
		k := uint64(i) * 0x9E3779B97F4A7C15
		s.Tasks = append(s.Tasks, Task{
			Token: job.Token{Epoch: 1, Seq: uint64(i)}, Start: t0.Add(-time.Duration(k>>40) * time.Millisecond), Resident: 100 << 20,
			Priority: int32(k>>60) - 8, Class: Class(k >> 58 & 3 % 3), Value: uint16(k >> 50 & 7), Yields: k>>49&1 == 0,
		})
	}
	return s
}

func TestADecisionAllocatesNothing(t *testing.T) {
	for _, used := range []quantity.Amount{50 * gib, 96 * gib, 99 * gib} {
		a, s := New(Config{}), crowd(1000, used)
		if n := testing.AllocsPerRun(50, func() { a.Decide(t0, s) }); n != 0 {
			t.Errorf("a decision with %d GiB used allocates %v times", used/gib, n)
		}
	}
}

func TestADecisionExplainsItself(t *testing.T) {
	s := &Snapshot{Capacity: 100 * gib, Used: 94 * gib, Room: 20 * gib, Tasks: []Task{
		{Token: job.Token{Epoch: 1, Seq: 1}, Resident: 8 * gib, Priority: 1}, {Token: job.Token{Epoch: 1, Seq: 2}, Resident: 30 * gib,
			Priority: 9},
		{Token: job.Token{Epoch: 1, Seq: 3}, Resident: 6 * gib, Priority: 2},
	}}
	want := "severe: 96256 of 102400 MiB used (94.0%); 9216 MiB are to be made free, 0 MiB will be, these steps make 14336 MiB; " +
		"suspend 1-1 (8192 MiB), since memory is short; suspend 1-3 (6144 MiB), since memory is short"
	if got := New(Config{}).Decide(t0, s).String(); got != want {
		t.Errorf("it says\n%s\nwant\n%s", got, want)
	}
}

func TestConfig(t *testing.T) {
	if err := (Config{}).WithDefaults().Validate(); err != nil {
		t.Error(err)
	}
	for what, c := range map[string]Config{
		"the lines": {Calm: 950}, "Brink is": {Brink: 3 * time.Second}, "Yield is": {Yield: time.Minute}, "CoolDown": {CoolDown: -1},
		"Stall":     {Stall: 2000},
		"MostTasks": {MostTasks: MaxTasks + 1}, "MostBytes": {MostBytes: 1001}, "Least": {Least: -1}, "no order 2": {Order: 2},
		"no way 2": {Outgrown: 2},
	} {
		if err := c.WithDefaults().Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	tried := crowd(1000, 99*gib) // every remedy is, one after another
	tried.Growth, tried.Room = gib, 0
	for i := range tried.Tasks {
		tried.Tasks[i].Planned, tried.Tasks[i].Yields = 1<<20, true
	}
	for name, s := range map[string]*Snapshot{"calm": crowd(1000, 50*gib), "severe": crowd(1000, 96*gib), "emergency": crowd(1000, 99*gib),
		"tried": tried} {
		b.Run(name, func(b *testing.B) {
			a := New(Config{})
			b.ReportAllocs()
			for b.Loop() {
				a.Decide(t0, s)
			}
		})
	}
}

// TestNothingIsEndedThatHasRoomOutside: at the emergency line what is above it is moved out, if all of that has room there. Where one
// byte has not the lowest is ended.
func TestNothingIsEndedThatHasRoomOutside(t *testing.T) {
	s := Snapshot{Capacity: 100 * gib, Used: 98 * gib, Room: gib,
		Tasks: []Task{{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 20 * gib, Yields: true}}}
	if d := New(Config{}).Decide(t0, &s); d.Level != Severe || len(d.Actions) != 1 || d.Actions[0].Step != Suspend {
		t.Errorf("with room for all of it: %v", d)
	}
	s.Room--
	if d := New(Config{}).Decide(t0, &s); d.Level != Emergency || len(d.Actions) != 1 || d.Actions[0].Step != Reclaim {
		t.Errorf("with room for less: %v", d)
	}
	s.Room, s.Tasks[0].Bound, s.Tasks[0].Yields = 50*gib, true, false
	if d := New(Config{}).Decide(t0, &s); d.Level != Emergency || len(d.Actions) != 1 || d.Actions[0].Step != Reclaim || d.Blocked >= 0 {
		t.Errorf("with room, and nobody who may be suspended: %v", d)
	}
}

// TestWhoHasOutgrownItsPlanIsAskedWhileItCanLeaveACheckpoint, also below the severe line; nobody else is.
func TestWhoHasOutgrownItsPlanIsAskedWhileItCanLeaveACheckpoint(t *testing.T) {
	grows := Task{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 20 * gib, Planned: 8 * gib, Growth: gib, Yields: true}
	keeps := Task{Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, Resident: 8 * gib, Planned: 8 * gib, Yields: true}
	for _, c := range []struct {
		name   string
		used   quantity.Amount
		change func(*Task)
		want   bool
	}{
		{"memory ends in less than that takes", 90*gib + 1, func(*Task) {}, true},
		{"memory ends as it is over", 90 * gib, func(*Task) {}, false},
		{"it is calm", 84 * gib, func(g *Task) { g.Growth = 0 }, false},
		{"it has kept to its plan", 91 * gib, func(g *Task) { g.Planned = 20 * gib }, false},
		{"it can't yield", 91 * gib, func(g *Task) { g.Yields = false }, false},
		{"it was asked", 91 * gib, func(g *Task) { g.State, g.Since = Readdressing, t0 }, false},
	} {
		g := grows
		c.change(&g)
		s := Snapshot{Capacity: 100 * gib, Used: c.used, Growth: gib, Tasks: []Task{keeps, g}}
		d := New(Config{}).Decide(t0, &s)
		if got := len(d.Actions) == 1 && d.Actions[0].Task == 1 && d.Actions[0].Step == Readdress &&
			d.Actions[0].Cause == Foreseen; got != c.want || !c.want && len(d.Actions) > 0 {
			t.Errorf("%s: %v", c.name, d)
		}
	}
}
