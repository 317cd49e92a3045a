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
			Token: job.Token{Epoch: 1, Seq: uint64(i)}, Start: t0.Add(-time.Duration(rapid.SampledFrom([]int{0, 1, 3, 100, 5000}).Draw(t, "ran s")) * time.Second),
			Priority: rapid.Int32Range(-1, 1).Draw(t, "priority"), Class: Class(rapid.IntRange(0, 2).Draw(t, "class")),
			Value: uint16(rapid.IntRange(0, 2).Draw(t, "value")), State: State(rapid.IntRange(0, States-1).Draw(t, "state")),
			Resident: quantity.Amount(rapid.SampledFrom([]int{0, 1, 700, 3000, 20000}).Draw(t, "resident MiB")) << 20,
			Growth:   quantity.Amount(rapid.SampledFrom([]int{0, 0, -5, 40, 2000}).Draw(t, "its growth MiB/s")) << 20,
			Planned:  quantity.Amount(rapid.SampledFrom([]int{0, 1, 800, 3000, 10000}).Draw(t, "planned MiB")) << 20,
			Entries:  uint8(rapid.IntRange(0, 3).Draw(t, "entries")), Bound: rapid.IntRange(0, 5).Draw(t, "bound") == 0, Yields: rapid.Bool().Draw(t, "yields"),
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
	return Config{Order: Order(rapid.IntRange(0, 1).Draw(t, "order")), Outgrown: Outgrown(rapid.IntRange(0, 1).Draw(t, "outgrown")), MostTasks: rapid.SampledFrom([]int{1, 3, 64}).Draw(t, "most"), MostBytes: rapid.SampledFrom([]int64{20, 500}).Draw(t, "most bytes")}.WithDefaults()
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

// prefix is what brute force makes victims of: the lowest, as many as are needed, by what ending or suspending each would bring.
func prefix(c *Config, d *Decision, s *Snapshot) (want []Action, blocked int) {
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
	least, ahead := s.Capacity/1000, func(g quantity.Amount) quantity.Amount { return 2 * max(0, g) }
	line, room, parked, got := s.Capacity*85/100, d.Room, d.ParkedTasks, s.Owed
	if d.Level == Emergency {
		line = s.Capacity * 92 / 100
	}
	need := max(1, d.Used+ahead(s.Growth)-line)
	overtime := map[int]bool{}
	for _, a := range d.Actions {
		overtime[a.Task] = a.Cause == Overtime
		if d.Level == Emergency && a.Cause == Overtime {
			got += a.Relief
		}
	}
	for i := range s.Tasks {
		switch k := &s.Tasks[i]; {
		case k.State == Reclaiming || k.State.Leaves() && d.Level == Severe:
			got += k.Resident
		case k.State == Suspending && d.Level == Severe:
			got += min(k.Resident, d.Room)
			room -= min(room, k.Resident)
		}
	}
	missing, foresees := d.Used+5*ahead(s.Growth)-s.Capacity-s.Owed, d.Level == Guarded || d.Level == Severe
	for i := range s.Tasks {
		if k := &s.Tasks[i]; k.State.Leaves() {
			missing -= k.Resident + 5*ahead(k.Growth)
		}
	}
	asked := map[int]bool{}
	for _, i := range order {
		k := &s.Tasks[i]
		if k.State != Running && k.State != Resuming {
			continue
		}
		foresees = foresees && missing > 0 && k.Planned > 0 && 8*(k.Resident+k.Parked) > 9*k.Planned
		if gives := k.Resident + 5*ahead(k.Growth); foresees && gives >= least {
			if foresees = k.Yields; foresees {
				asked[i] = true
				want = append(want, Action{Task: i, Step: Readdress, Relief: k.Resident + ahead(k.Growth)})
				missing -= gives
				got += k.Resident
			}
		}
	}
	if d.Level < Severe {
		return want, -1
	}
	for _, i := range order {
		k := &s.Tasks[i]
		if got >= need {
			break
		}
		if asked[i] {
			continue
		}
		if d.Level == Emergency {
			if k.State != Reclaiming && k.Resident >= least && !overtime[i] {
				got += k.Resident
				want = append(want, Action{Task: i, Step: Reclaim, Relief: k.Resident})
			}
			continue
		}
		if k.State != Running && k.State != Resuming || k.Resident+ahead(k.Growth) < least {
			continue
		}
		moved := min(k.Resident, room)
		if moved+ahead(k.Growth) >= least && !k.Bound && k.Entries < c.Entries && parked < c.MostTasks {
			want = append(want, Action{Task: i, Step: Suspend, Relief: moved + ahead(k.Growth)})
			room, parked, got = room-moved, parked+1, got+moved+ahead(k.Growth)
		} else if k.Yields {
			want = append(want, Action{Task: i, Step: Readdress, Relief: k.Resident + ahead(k.Growth)})
			got += k.Resident + ahead(k.Growth)
		} else {
			return want, i
		}
	}
	return want, -1
}

// TestVictimsAreTheShortestPrefix: of the order of survival, whatever the host is like, and by the cheapest step that is open to each.
func TestVictimsAreTheShortestPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := config(t), host(t)
		a := New(c)
		d := a.Decide(t0, s)
		want, blocked := prefix(&c, d, s)
		var got []Action
		for _, x := range d.Actions {
			if x.Cause == Deficit || x.Cause == Foreseen || x.Cause == Brink {
				got = append(got, Action{Task: x.Task, Step: x.Step, Relief: x.Relief})
			}
		}
		if !slices.Equal(got, want) || d.Blocked != blocked {
			t.Fatalf("%v\nvictims %+v, blocked %d\nwant    %+v, blocked %d", d, got, d.Blocked, want, blocked)
		}
	})
}

// TestEveryDecisionHolds: I8 and I9, and the bounds.
func TestEveryDecisionHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := config(t), host(t)
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
			switch x.Step {
			case Suspend:
				parked++
				bytes += min(k.Resident, x.Relief)
				if k.Bound || k.Entries >= c.Entries {
					t.Fatalf("%v is suspended, and may not be: %v", k.Token, &d)
				}
			case Reclaim:
				if x.Cause == Overtime && (k.Since == 0 || t0.Sub(k.Since) < c.Timer) || x.Cause != Overtime && d.Level != Emergency {
					t.Fatalf("%v is ended at level %v: %v", k.Token, d.Level, &d)
				}
			case Resume:
				if d.Level >= Severe {
					t.Fatalf("%v goes on at level %v", k.Token, d.Level)
				}
			case Readdress:
				if !k.Yields || d.Level == Emergency {
					t.Fatalf("%v is asked to yield at level %v and can: %v", k.Token, d.Level, k.Yields)
				}
			}
		}
		if suspends := parked > d.ParkedTasks; suspends && (parked > c.MostTasks || bytes > d.Room+2*4000<<20*quantity.Amount(len(s.Tasks))) {
			t.Fatalf("%d are suspended with %d MiB, of at most %d and %d MiB", parked, bytes>>20, c.MostTasks, d.Room>>20)
		}
		// I8: who survives outranks who doesn't, but for those whose end would help nobody.
		for i := range s.Tasks {
			if _, hit := acted[i]; hit {
				continue
			}
			for j, x := range acted {
				k := &s.Tasks[i]
				gives := k.Resident + 2*max(0, k.Growth)
				if x.Cause == Brink {
					gives = k.Resident
				}
				survives := k.State == Running || k.State == Resuming || x.Cause == Brink && k.State != Reclaiming
				if (x.Cause == Deficit || x.Cause == Foreseen || x.Cause == Brink) && survives && gives >= s.Capacity/1000 && below(&c, k, &s.Tasks[j]) {
					t.Fatalf("%+v survives, and %+v above it doesn't: %v", k, s.Tasks[j], &d)
				}
				if x.Step == Resume && k.State == Suspended && below(&c, &s.Tasks[j], k) {
					t.Fatalf("%+v goes on, and %+v above it doesn't: %v", s.Tasks[j], k, &d)
				}
			}
		}
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
		{"growing to the end within the horizon", Snapshot{Capacity: 100 * gib, Used: 50 * gib, Growth: 25 * gib}, Severe, "which is 2s to the end"},
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
		{Token: job.Token{Epoch: 1, Seq: 1}, Resident: 8 * gib, Priority: 1}, {Token: job.Token{Epoch: 1, Seq: 2}, Resident: 30 * gib, Priority: 9},
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
		"the lines": {Calm: 950}, "Brink is": {Brink: 3 * time.Second}, "Yield is": {Yield: time.Minute}, "CoolDown": {CoolDown: -1}, "Stall": {Stall: 2000},
		"MostTasks": {MostTasks: MaxTasks + 1}, "MostBytes": {MostBytes: 1001}, "Least": {Least: -1}, "no order 2": {Order: 2}, "no way 2": {Outgrown: 2},
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
	for name, s := range map[string]*Snapshot{"calm": crowd(1000, 50*gib), "severe": crowd(1000, 96*gib), "emergency": crowd(1000, 99*gib), "tried": tried} {
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
	s := Snapshot{Capacity: 100 * gib, Used: 98 * gib, Room: gib, Tasks: []Task{{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, Resident: 20 * gib, Yields: true}}}
	if d := New(Config{}).Decide(t0, &s); d.Level != Severe || len(d.Actions) != 1 || d.Actions[0].Step != Suspend {
		t.Errorf("with room for all of it: %v", d)
	}
	s.Room--
	if d := New(Config{}).Decide(t0, &s); d.Level != Emergency || len(d.Actions) != 1 || d.Actions[0].Step != Reclaim {
		t.Errorf("with room for less: %v", d)
	}
	s.Room, s.Tasks[0].Bound, s.Tasks[0].Yields = 50*gib, true, false
	if d := New(Config{}).Decide(t0, &s); d.Level != Emergency || len(d.Actions) != 1 || d.Actions[0].Step != Reclaim || d.Blocked >= 0 {
		t.Errorf("with room, and nobody who may stand still: %v", d)
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
		if got := len(d.Actions) == 1 && d.Actions[0].Task == 1 && d.Actions[0].Step == Readdress && d.Actions[0].Cause == Foreseen; got != c.want || !c.want && len(d.Actions) > 0 {
			t.Errorf("%s: %v", c.name, d)
		}
	}
}
