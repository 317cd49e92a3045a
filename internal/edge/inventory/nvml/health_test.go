package nvml

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/inventory"
)

// describe is what an inventory says of a GPU: its slices, errors and states.
func describe(s inventory.Sighting) string {
	v := s.Vitals
	text := fmt.Sprint(v.Slices)
	for _, x := range v.Errors {
		text += fmt.Sprintf(" xid %d on %q", x.Code, x.On)
	}
	if v.Look != nil {
		text += fmt.Sprintf(" told %v", v.Look.Told)
		for _, s := range v.Look.States {
			text += " " + s.Cause.String()
		}
	}
	if v.Life != machineLife() {
		text += " of another life"
	}
	return text
}

const (
	cut   = `[gpu0/3g.40gb@4 gpu0/1g.9gb@gi7 gpu0/1c.2g.20gb@0.1]`
	whole = `[gpu1]`
)

// watched runs Watch over a machine, and calls do with a function that lets a while pass and holds what was said of GPUs meanwhile against
// what is expected.
func watched(t *testing.T, lib *fakeLibrary, do func(after func(d time.Duration, want ...string))) {
	synctest.Test(t, func(t *testing.T) {
		inv, err := open(lib, Spec, noName)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- inv.Watch(ctx, func(job.SliceID, int) bool { return true }, func(s inventory.Sighting) {
				lib.change(func() { got = append(got, describe(s)) })
			})
		}()
		do(func(d time.Duration, want ...string) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			lib.change(func() {
				if !slices.Equal(got, want) {
					t.Errorf("said\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				got = nil
			})
		})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := inv.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestErrorsAreToldAtOnce, with the instance that they are about, and followed by a look.
func TestErrorsAreToldAtOnce(t *testing.T) {
	lib := machine()
	watched(t, lib, func(after func(time.Duration, ...string)) {
		after(time.Second, cut+" told false", whole+" told false")
		lib.tell(event{"GPU-aa", 94, 1, 0}, event{"GPU-aa", 94, 1, 0}, event{"GPU-aa", 31, 7, -1}, event{"GPU-aa", 13, 99, 0})
		after(time.Second, cut+` xid 94 on "gpu0/3g.40gb@4"`, cut+" told false", cut+` xid 31 on "gpu0/1g.9gb@gi7"`, cut+" told false",
			cut+` xid 13 on ""`, cut+" told false")
		lib.change(func() { lib.gpus[0].sick = fmt.Errorf("it says: %w", errLost) })
		lib.tell(event{"GPU-bb", 79, -1, -1})
		after(time.Second, whole+` xid 79 on ""`, whole+" told false lost")
		lib.tell(event{"GPU-of-others", 79, -1, -1}, event{"GPU-aa", 0, -1, -1})
		after(time.Second, cut+" told false")
		lib.change(func() { lib.gpus[0].sick = nil })
		lib.tell(event{UUID: "", Xid: 79}) // of which GPU nobody says
		after(time.Second, whole+" told false")
	})
}

// TestGPUsAreLookedAt: what is new is said, what is the same now and then, and what is not known not at all.
func TestGPUsAreLookedAt(t *testing.T) {
	lib := machine()
	g := lib.gpus[0]
	watched(t, lib, func(after func(time.Duration, ...string)) {
		after(time.Second, cut+" told false", whole+" told false")
		after(25 * time.Second)
		lib.change(func() { g.condition = condition{Told: true, Recovery: "a reset", RowsPending: true} })
		after(Interval, cut+" told false", whole+" told true needs-reset rows-pending")
		lib.change(func() { g.condition = condition{Told: true, Drain: true, Recovery: "a reset later", RowsFailed: true} })
		after(Interval, whole+" told true needs-drain rows-failed")
		lib.change(func() { g.condition = condition{}; g.sick = fmt.Errorf("x: %w", errReset) })
		after(Interval, whole+" told false needs-reset")
		lib.change(func() { g.sick = unavailable("a time-out") })
		after(time.Minute, cut+" told false", cut+" told false")
		lib.change(func() { g.sick = nil; g.condition = condition{Told: true} })
		after(Interval, whole+" told true")
	})
}

// TestALostGPUIsStillLookedAt, though it can't be listed any more, and the others are listened to all the same.
func TestALostGPUIsStillLookedAt(t *testing.T) {
	lib := machine()
	watched(t, lib, func(after func(time.Duration, ...string)) {
		after(time.Second, cut+" told false", whole+" told false")
		lost := fmt.Errorf("it says: %w", errLost)
		lib.change(func() { lib.gpus[0].err, lib.gpus[0].sick, lib.broken = lost, lost, lost })
		after(Interval, whole+" told false lost")
		lib.tell(event{"GPU-aa", 119, -1, -1})
		after(2*Interval, cut+` xid 119 on ""`, cut+" told false")
		lib.change(func() { lib.gpus[0].err, lib.gpus[0].sick = nil, nil })
		after(Interval, whole+" told false")
	})
}

func TestHeldSaysHowGPUsAre(t *testing.T) {
	lib := machine()
	lib.gpus[0].condition = condition{RowsPending: true}
	lib.deaf = unavailable("no events")
	inv := opened(t, lib, Spec)
	var got []string
	for _, s := range inv.Held() {
		got = append(got, describe(s))
	}
	if want := []string{cut + " told false", whole + " told false rows-pending"}; !slices.Equal(got, want) {
		t.Errorf("held %q, want %q", got, want)
	}
	if d := inv.Describe(); !strings.HasSuffix(d, "; that they fail is seen only when they are looked at: no events") {
		t.Errorf("described as %q", d)
	}
}

// TestStatesArePlain: everything that is said of a GPU says what is to be done.
func TestStatesArePlain(t *testing.T) {
	c := card{gpu: &fakeGPU{fakeUnit: fakeUnit{lib: &fakeLibrary{}}, sick: errors.Join(errLost, errReset),
		condition: condition{Told: true, Recovery: "x", RowsPending: true, RowsFailed: true}}}
	l, ok := c.look()
	if !ok || len(l.States) != 5 {
		t.Fatalf("%+v, %v", l, ok)
	}
	for _, s := range l.States {
		if f, bad := health.Worst(1, []health.State{s}); !bad || len(s.Text) < 20 {
			t.Errorf("%+v is %+v", s, f)
		}
	}
}
