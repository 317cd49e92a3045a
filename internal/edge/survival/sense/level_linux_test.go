package sense

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

const mib = quantity.Amount(1) << 20

// kernel is a machine whose files say what the test has them say.
type kernel struct {
	*testing.T
	root string
	h    Host
	now  time.Duration
}

// newKernel is a machine of 200 GiB with control groups of version 2 one below the other, without limits.
func newKernel(t *testing.T, groups ...string) *kernel {
	t.Helper()
	k := &kernel{T: t, root: t.TempDir()}
	k.machine(0)
	dir := k.root
	for _, name := range groups {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"memory.max": "max", "memory.high": "max", "memory.current": "0", "memory.stat": "",
			"memory.swap.max": "max", "memory.swap.current": "0"} {
			k.write(filepath.Join(dir, file), text)
		}
	}
	var err error
	if k.h.meminfo, err = OpenFile(filepath.Join(k.root, "meminfo"), unix.O_RDONLY); err != nil {
		t.Fatal(err)
	}
	k.h.openLevels(dir, k.root)
	t.Cleanup(k.h.Close)
	return k
}

func (k *kernel) write(path, text string) {
	k.Helper()
	if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
		k.Fatal(err)
	}
}

// machine sets what is used of it; it has 64 GiB of swap, all of it free.
func (k *kernel) machine(used quantity.Amount) {
	k.Helper()
	all := 200 << 10 * mib
	k.write(filepath.Join(k.root, "meminfo"), fmt.Sprintf("MemTotal: %d kB\nMemAvailable: %d kB\nSwapFree: %d kB", all>>10, (all-used)>>10,
		64<<20))
}

// group sets a file of a group to a number.
func (k *kernel) group(path, file string, v quantity.Amount) {
	k.Helper()
	k.write(filepath.Join(k.root, path, file), fmt.Sprint(int64(v)))
}

// sense looks at it a quarter of a second later.
func (k *kernel) sense() (m survival.Memory) {
	k.Helper()
	k.now += 250 * time.Millisecond
	if err := k.h.Sense(k.now, true, &m); err != nil {
		k.Fatal(err)
	}
	return m
}

// TestGrowthIsOfOneMemory: which of two memories is the shorter changes again and again, and neither grows by what lies between them.
func TestGrowthIsOfOneMemory(t *testing.T) {
	k := newKernel(t, "a")
	k.group("a", "memory.max", 4096*mib)
	crossed := map[quantity.Amount]bool{}
	for i := range 40 {
		k.machine(100 << 10 * mib) // half of it
		k.group("a", "memory.current", 2048*mib+quantity.Amount(i%2*16-8)*mib)
		m := k.sense()
		crossed[m.Capacity] = true
		if m.Growth > 16*mib || m.Growth < -16*mib {
			t.Fatalf("look %d: %d of %d MiB used, growing by %d MiB/s", i, m.Used/mib, m.Capacity/mib, m.Growth/mib)
		}
	}
	if len(crossed) != 2 {
		t.Errorf("only %v was ever the shorter", crossed)
	}
}

// TestTheShortestMemoryCounts: of all groups above each other and the machine, by what is used and what will be soon; limits may be set at
// any time.
func TestTheShortestMemoryCounts(t *testing.T) {
	k := newKernel(t, "a", "b")
	k.machine(100 << 10 * mib)
	k.group("a/b", "memory.current", 900*mib)
	k.group("a", "memory.current", 1900*mib)
	is := func(why string, capacity, used quantity.Amount) {
		t.Helper()
		if m := k.sense(); m.Capacity != capacity*mib || m.Used != used*mib {
			t.Errorf("%s: %d of %d MiB used, want %d of %d", why, m.Used/mib, m.Capacity/mib, used, capacity)
		}
	}
	is("no group has a limit", 200<<10, 100<<10)
	k.group("a/b", "memory.max", 1000*mib)
	is("the group has", 1000, 900)
	k.group("a", "memory.max", 2000*mib)
	is("and the one above is fuller", 2000, 1900)
	k.group("a", "memory.max", 400<<10*mib)
	is("which has more than the machine", 1000, 900)
	k.machine(199 << 10 * mib)
	is("and the machine is fuller", 200<<10, 199<<10)
	if m := k.sense(); m.Least != 1000*mib {
		t.Errorf("more than %d MiB nobody here ever has, and it says %d", 1000, m.Least/mib)
	}
	k.machine(100 << 10 * mib)
	k.group("a/b", "memory.current", 10*mib)
	for range 10 {
		k.sense()
	}
	for used := quantity.Amount(10); used < 490; used += 60 {
		k.group("a/b", "memory.current", used*mib)
		k.sense()
	}
	k.group("a/b", "memory.current", 490*mib)
	is("the group is less full, and will be in two seconds", 1000, 490)
}

// TestWhereTheKernelHoldsAGroupBackMemoryIsShort: at its memory.high every task there waits for memory to be found, and goes on with next
// to none. That is over the severe line and not over the emergency line: nothing is ended there but by us.
func TestWhereTheKernelHoldsAGroupBackMemoryIsShort(t *testing.T) {
	k := newKernel(t, "a", "b")
	k.machine(100 << 10 * mib)
	k.group("a", "memory.high", 950*mib)
	k.group("a", "memory.max", 1200*mib)
	c := airlock.Config{}.WithDefaults()
	for _, x := range []struct {
		used, high, most quantity.Amount // in MiB
		capacity         quantity.Amount
		level            airlock.Level
	}{
		{700, 950, 1200, 1000, airlock.Calm}, {850, 950, 1200, 1000, airlock.Guarded}, {950, 950, 1200, 1000, airlock.Severe},
		{969, 950, 1200, 1000, airlock.Severe}, {990, 950, 1000, 1000, airlock.Emergency},
		{600, 950, 650, 650, airlock.Severe}, // the limit is the shorter one
		{950, 0, 1200, 1200, airlock.Calm},   // no word of it
	} {
		k.group("a", "memory.max", x.most*mib)
		if k.group("a", "memory.high", x.high*mib); x.high == 0 {
			k.write(filepath.Join(k.root, "a/memory.high"), "max")
		}
		k.group("a", "memory.current", x.used*mib)
		for range 40 {
			k.sense() // until it has not grown of late
		}
		m := k.sense()
		got := c.Read(&airlock.Snapshot{Capacity: m.Capacity, Used: m.Used, Growth: m.Growth})
		if m.Capacity != x.capacity*mib || m.Used != x.used*mib || got.Level != x.level || m.Least != x.capacity*mib {
			t.Errorf("%d MiB used, high %d, max %d: %d of %d MiB used, %d at the least: %v; want %d and %v", x.used, x.high, x.most,
				m.Used/mib, m.Capacity/mib, m.Least/mib, &got, x.capacity, x.level)
		}
	}
}

// TestWhatTheKernelCanTakeBackIsNotUsed: pages of files, however often they were read, and caches of the kernel; tmpfs and what is locked
// are used.
func TestWhatTheKernelCanTakeBackIsNotUsed(t *testing.T) {
	k := newKernel(t, "a")
	k.group("a", "memory.max", 1000*mib)
	k.group("a", "memory.current", 990*mib)
	stat := func(anon, shmem, unevictable, inactive, active, slab quantity.Amount) {
		k.write(filepath.Join(k.root, "a/memory.stat"),
			fmt.Sprintf("anon %d\nfile %d\nshmem %d\ninactive_file %d\nactive_file %d\nunevictable %d\nslab_reclaimable "+
				"%d\nslab_unreclaimable 5",
				anon*mib, (shmem+inactive+active)*mib, shmem*mib, inactive*mib, active*mib, unevictable*mib, slab*mib))
	}
	for _, c := range []struct {
		name                                            string
		anon, shmem, locked, inactive, active, slab, is quantity.Amount
	}{
		{"anonymous", 990, 0, 0, 0, 0, 0, 990},
		{"read once", 90, 0, 0, 900, 0, 0, 90},
		{"read twice", 90, 0, 0, 0, 900, 0, 90},
		{"a million names", 90, 0, 0, 0, 0, 900, 90},
		{"tmpfs", 90, 900, 0, 0, 0, 0, 990},
		{"locked", 90, 0, 900, 0, 0, 0, 990},
		{"more than there is, read at another moment", 0, 0, 0, 600, 600, 0, 0},
	} {
		stat(c.anon, c.shmem, c.locked, c.inactive, c.active, c.slab)
		if m := k.sense(); c.is > 0 && m.Used != c.is*mib || c.is == 0 && m.Capacity != 200<<10*mib && m.Used != 0 {
			t.Errorf("%s: %d of %d MiB are used, want %d", c.name, m.Used/mib, m.Capacity/mib, c.is)
		}
	}
}

// TestThereIsRoomForWhatMayBeSwapped: as far as every group above lets it.
func TestThereIsRoomForWhatMayBeSwapped(t *testing.T) {
	k := newKernel(t, "a", "b")
	room := func(why string, want quantity.Amount) {
		t.Helper()
		if m := k.sense(); m.Room != want*mib {
			t.Errorf("%s: room for %d MiB, want %d", why, m.Room/mib, want)
		}
	}
	room("no group has a limit", 64<<10)
	k.group("a/b", "memory.swap.max", 500*mib)
	k.group("a/b", "memory.swap.current", 100*mib)
	room("the group has", 400)
	k.group("a", "memory.swap.max", 250*mib)
	k.group("a", "memory.swap.current", 200*mib)
	room("the one above has less left", 50)
	k.group("a", "memory.swap.max", 150*mib)
	room("and was given less than it has", 0)
	k.group("a", "memory.swap.max", 0)
	k.group("a", "memory.swap.current", 0)
	room("it may not swap", 0)
}

// TestALookAllocatesNothing: there is no memory left when it is needed.
func TestALookAllocatesNothing(t *testing.T) {
	k := newKernel(t, "a", "b")
	k.group("a", "memory.max", 1000*mib)
	k.group("a/b", "memory.swap.max", 1000*mib)
	var m survival.Memory
	if n := testing.AllocsPerRun(100, func() {
		k.now += 20 * time.Millisecond
		_ = k.h.Sense(k.now, true, &m)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
