package airlock

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// The capacity of a strained host is a hundred percents: each line is then a whole number of bytes.
const (
	mib     = quantity.Amount(1) << 20
	percent = 1000 * mib
)

// strained draws a host whose memory is to end soon, where most have outgrown their plan and can yield; what is used is left to
// edges. host seldom draws one
// where anybody is asked in time, and hardly ever one at the very byte at which a decision turns.
func strained(t *rapid.T) (Config, *Snapshot) {
	amount := func(name string, of ...quantity.Amount) quantity.Amount { return rapid.SampledFrom(of).Draw(t, name) }
	c := config(t)
	c.MostTasks = rapid.SampledFrom([]int{1, 2, 64}).Draw(t, "most")
	const least = 100 * mib
	s := &Snapshot{
		Capacity: 100 * percent, Growth: amount("growth", -mib, 0, 0, mib, 500*mib, 2*percent, 4*percent),
		Room: amount("room", 0, least-1, least, 2*percent, 5*percent, 60*percent), Owed: amount("owed", 0, 0, 0, mib, 2*percent),
	}
	for i := range rapid.IntRange(1, 7).Draw(t, "tasks") {
		k := Task{
			Token: job.Token{Epoch: 1, Seq: uint64(i)}, Start: t0.Add(-time.Hour), Priority: rapid.Int32Range(-1, 1).Draw(t, "priority"),
			State: rapid.SampledFrom([]State{
				Running, Running, Running, Running, Running, Running, Resuming, Suspending, Suspended, Readdressing, Reclaiming, Ending,
			}).Draw(t, "state"),
			Resident: amount("resident", 0, mib, least-1, least, least+1, percent, 3*percent, 3*percent, 20*percent),
			Growth:   amount("its growth", -mib, 0, 0, 0, 10*mib, least/2, least/2+1, percent),
			Planned:  amount("planned", 0, 1, 1, 1, 1, 20*percent), Entries: uint8(rapid.SampledFrom([]int{0, 0, 2, 3}).Draw(t, "entries")),
			Bound: rapid.IntRange(0, 2).Draw(t, "bound") == 0, Yields: rapid.IntRange(0, 3).Draw(t, "yields") > 0,
		}
		switch k.State {
		case Suspended:
			k.Parked, k.Resident = k.Resident, 0
			fallthrough
		case Suspending, Readdressing:
			k.Since = t0.Add(-time.Duration(rapid.SampledFrom([]int{1, 1, 20, 31}).Draw(t, "stood s")) * time.Second)
		case Resuming:
			k.Parked = 3 * percent
		default:
		}
		s.Tasks = append(s.Tasks, k)
	}
	return c, s
}

// edges are how much may be used where a decision turns: at each line, and where what is missing is just what the first so many
// bring who can be asked, stand
// still or end.
func edges(c *Config, s *Snapshot) (used []quantity.Amount) {
	at := func(u quantity.Amount) { used = append(used, u-1, u, u+1) }
	for _, line := range []quantity.Amount{85, 92, 97, 100} {
		at(line * percent)
		at(line*percent - ahead(s.Growth) + min(s.Room, s.Capacity*quantity.Amount(c.MostBytes)/1000))
	}
	for _, remedy := range []struct {
		line, horizon quantity.Amount // from the line on within so many horizons
		from          State           // what is under way
		can           func(*Task) bool
	}{
		{100, 5, Readdressing, func(k *Task) bool { return k.Yields && k.Planned > 0 }},
		{85, 1, Readdressing, func(*Task) bool { return true }},
		{85, 1, Readdressing, func(k *Task) bool { return k.Yields || !k.Bound }},
		{97, 1, Readdressing, func(k *Task) bool { return k.Yields || !k.Bound }},
		{92, 1, Reclaiming, func(*Task) bool { return true }},
	} {
		missing := remedy.line*percent - remedy.horizon*ahead(s.Growth) + s.Owed
		brings := func(k *Task) quantity.Amount { return k.Resident + remedy.horizon*ahead(k.Growth) }
		for i := range s.Tasks {
			if k := &s.Tasks[i]; k.State >= remedy.from {
				missing += k.Resident
				if remedy.horizon > 1 {
					missing = missing - k.Resident + brings(k)
				}
			}
		}
		at(missing)
		for _, i := range ascending(c, s) {
			if k := &s.Tasks[i]; k.State == Running || k.State == Resuming {
				if remedy.can(k) {
					missing += brings(k)
					at(missing)
				}
			}
		}
	}
	slices.Sort(used)
	return slices.Compact(used)
}

// everyHost checks what holds of any host, and of strained ones at each of their edges.
func everyHost(t *testing.T, check func(*rapid.T, Config, *Snapshot)) {
	t.Run("any", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) { check(t, config(t), host(t)) })
	})
	t.Run("strained", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			c, s := strained(t)
			for _, s.Used = range edges(&c, s) {
				check(t, c, s)
			}
		})
	})
}

// TestLessThanNothingIsNothing: a sensor that says so of what somebody has, as of one that is ending, makes no room.
func TestLessThanNothingIsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, s := strained(t)
		for _, s.Used = range edges(&c, s) {
			want := *New(c).Decide(t0, s)
			want.Actions = slices.Clone(want.Actions)
			less := *s
			less.Tasks = slices.Clone(s.Tasks)
			for i := range less.Tasks {
				if k := &less.Tasks[i]; k.Resident == 0 && k.Since == 0 {
					k.Resident = -1
				}
			}
			got := New(c).Decide(t0, &less)
			if !slices.Equal(got.Actions, want.Actions) || got.Underway != want.Underway || got.Covered != want.Covered {
				t.Fatalf("%v\nwant %v", got, &want)
			}
		}
	})
}
