package nvml

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/inventorytest"
)

func noName(int) string { return "" }

func opened(t *testing.T, lib library, spec string) *Inventory {
	t.Helper()
	inv, err := open(lib, spec, noName)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inv.Close() })
	return inv
}

func TestConformance(t *testing.T) {
	inventorytest.Run(t, func(t *testing.T) inventory.Inventory {
		inv, err := open(machine(), Spec, noName)
		if err != nil {
			t.Fatal(err)
		}
		return inv
	})
}

func list(t *testing.T, inv *Inventory) []string {
	t.Helper()
	all, err := inv.Slices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s %s %s %dMi %d %v", s.ID, s.Device, s.Profile, s.Capacity[trp.Memory]>>20, s.Speed, s.Shared))
	}
	return out
}

func TestSlicesOfAMachine(t *testing.T) {
	inv := opened(t, machine(), Spec)
	want := []string{
		"gpu0/1c.2g.20gb@0.1 MIG-3 1c.2g.20gb 19968Mi 142 true",
		"gpu0/1g.9gb@gi7 MIG-2 1g.9gb 9856Mi 142 false",
		"gpu0/3g.40gb@4 MIG-1 3g.40gb 40192Mi 428 false",
		"gpu1 GPU-bb gpu 143360Mi 1000 false",
	}
	if got := list(t, inv); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if got := inv.GPUs(); !slices.Equal(got, []string{"GPU-aa", "GPU-bb"}) {
		t.Errorf("GPUs %v", got)
	}
	if got := inv.Describe(); got != "gpu1 NVIDIA H200 (gpu); gpu0 NVIDIA A100-SXM4-80GB (3g.40gb, 1g.9gb, 1c.2g.20gb), NVIDIA driver "+
		"580.1" {
		t.Errorf("described as %q", got)
	}
}

// A driver that does not say how large the whole is leaves what the tables and the profile's name say, and no whole GPU.
func TestSpeedWithoutTheWhole(t *testing.T) {
	lib := machine()
	lib.gpus[1].silent = 98
	var got []string
	for _, s := range list(t, opened(t, lib, "nvml:0")) {
		got = append(got, strings.Fields(s)[2]+" "+strings.Fields(s)[4])
	}
	if want := []string{"1c.2g.20gb 142", "1g.9gb 142", "3g.40gb 428"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlyTheGPUsAskedFor(t *testing.T) {
	for spec, want := range map[string]string{"nvml:1": "GPU-bb", "nvml:GPU-aa": "GPU-aa", " nvml: 0 , GPU-aa": "GPU-aa"} {
		if got := opened(t, machine(), spec).GPUs(); !slices.Equal(got, []string{want}) {
			t.Errorf("%q offers %v, want %s", spec, got, want)
		}
	}
	_, err := open(machine(), "nvml:1,9,GPU-zz", noName)
	if errkind.Of(err) != errkind.NotFound || !strings.Contains(err.Error(), "no usable GPU 9, GPU-zz") ||
		!strings.Contains(err.Error(), "gpu1 NVIDIA H200") {
		t.Errorf("unknown GPUs: %v", err)
	}
	for _, spec := range []string{"", "nvml:", "nvml:,", "nvmlx", "sim:x"} {
		if _, err := open(machine(), spec, noName); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %v", spec, err)
		}
		if _, err := Open(spec); errkind.Of(err) != errkind.Invalid {
			t.Errorf("Open(%q): %v", spec, err)
		}
	}
}

func TestALostGPUDoesNotTakeTheOthers(t *testing.T) {
	lib := machine()
	lib.gpus[0].err = unavailable("GPU is lost")
	inv := opened(t, lib, Spec)
	if got := inv.GPUs(); !slices.Equal(got, []string{"GPU-aa"}) {
		t.Errorf("GPUs %v", got)
	}
	if !strings.HasSuffix(inv.Describe(), "; GPU 0 left out: GPU is lost") {
		t.Errorf("described as %q", inv.Describe())
	}
	// It comes back, but nobody holds its lock: it stays out.
	lib.gpus[0].err = nil
	if got := list(t, inv); len(got) != 3 {
		t.Errorf("offers %q", got)
	}
	lib.gpus[1].err = unavailable("GPU is lost")
	if _, err := inv.Slices(t.Context()); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("all lost: %v", err)
	}
}

func TestOpenThatFailsLeavesNothingOpen(t *testing.T) {
	lib := machine()
	lib.gpus = lib.gpus[1:]
	lib.gpus[0].instances = [7]*fakeInstance{}
	if _, err := open(lib, Spec, noName); errkind.Of(err) != errkind.NotFound || lib.shutdown != 1 {
		t.Errorf("MIG without instances: %v, shut down %d times", err, lib.shutdown)
	}
	gone := errkind.Errorf(errkind.Unsupported, "no driver")
	inv, err := offer(&fakeLibrary{initErr: gone}, Spec, noName)
	if !errors.Is(err, gone) || errkind.Of(err) != errkind.Unsupported {
		t.Errorf("no driver: %v", err)
	}
	if inv != nil {
		t.Errorf("no driver, and yet an inventory to close: %#v", inv)
	}
}

func TestMinorNumberFallsBackToTheIndex(t *testing.T) {
	lib := machine()
	lib.gpus[0].minorErr = errkind.Errorf(errkind.Unsupported, "no device files")
	lib.gpus = lib.gpus[:1]
	if got := list(t, opened(t, lib, Spec)); !strings.HasPrefix(got[0], "gpu0 ") {
		t.Errorf("offers %q", got)
	}
}

func TestWatchReportsOthersOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lib := machine()
		inv, err := open(lib, Spec, func(pid int) string {
			if pid == 7 {
				return "python3"
			}
			return ""
		})
		if err != nil {
			t.Fatal(err)
		}
		whole := &lib.gpus[0].fakeUnit
		part := &lib.gpus[1].instances[0].fakeUnit
		ours := func(s job.SliceID, pid int) bool { return s == "gpu1" && pid == 100 }
		var got []inventory.Sighting
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- inv.Watch(ctx, ours, func(s inventory.Sighting) {
				if s.Vitals == nil {
					lib.change(func() { got = append(got, s) })
				}
			})
		}()
		// after lets a round pass and says what was reported meanwhile.
		after := func(what string, want ...inventory.Sighting) {
			t.Helper()
			time.Sleep(Interval)
			synctest.Wait()
			lib.change(func() {
				if !slices.EqualFunc(got, want, func(a, b inventory.Sighting) bool { return reflect.DeepEqual(a, b) }) {
					t.Errorf("%s: %+v, want %+v", what, got, want)
				}
				got = nil
			})
		}
		set := func(u *fakeUnit, err error, pids ...int) {
			lib.change(func() {
				u.processes, u.procErr = nil, err
				for _, pid := range pids {
					u.processes = append(u.processes, process{PID: pid, Memory: int64(pid) << 20})
				}
			})
		}
		synctest.Wait()
		set(whole, nil, 100)
		after("ours alone")
		set(whole, nil, 100, 7)
		after("one look is not enough")
		after("twice is", inventory.Sighting{Slice: "gpu1", Present: true, Text: "process 7 (python3) with 7Mi"})
		after("and said once")
		set(whole, unavailable("GPU is lost"))
		after("no answer changes nothing")
		set(whole, nil, 100)
		after("it left", inventory.Sighting{Slice: "gpu1", Text: "no foreign process any more"})
		set(part, nil, 100)
		after("a short look-in")
		set(part, nil)
		after("was not worth a word")
		set(part, nil, 5, 4, 3, 2)
		lib.change(func() { part.processes[3].Memory = -1 })
		after("many")
		after("are counted", inventory.Sighting{Slice: "gpu0/3g.40gb@4", Present: true, Text: "process 2, process 3 with 3Mi, process 4 " +
			"with 4Mi, and 1 more"})
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestCommandName(t *testing.T) {
	if got := commandName(1 << 30); got != "" {
		t.Errorf("a process that is not there is %q", got)
	}
}
