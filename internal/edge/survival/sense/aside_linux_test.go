package sense

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

const gib = quantity.Amount(1) << 30

// testdata is what a machine of 200 GiB says, 20 GiB of them available, with 64 GiB in huge pages of 2 MiB and 48 GiB in those of 1 GiB;
// and a ZFS whose cache has 98 GiB and a bit, of which it keeps 6.
func testdata(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// says replaces the line of a file that begins so; with nothing it is left out.
func says(t testing.TB, text, line, with string) string {
	t.Helper()
	at := strings.Index("\n"+text, "\n"+line)
	if at < 0 {
		t.Fatalf("no line begins with %q", line)
	}
	end := at + strings.IndexByte(text[at:], '\n') + 1
	return text[:at] + with + text[end:]
}

// newZFS is a machine with such a cache, which its host finds at its first look.
func newZFS(t *testing.T, meminfo, arcstats string) *kernel {
	t.Helper()
	k := newKernel(t)
	k.h.machines = true
	k.write(filepath.Join(k.root, "meminfo"), meminfo)
	t.Chdir(k.root)
	k.h.arc.path.add("arcstats")
	if arcstats == "" {
		return k
	}
	if err := os.WriteFile("arcstats", []byte(arcstats), 0o600); err != nil { // as it is: the last line may have no end
		t.Fatal(err)
	}
	return k
}

// TestHugePagesAreNoMemory: what is set aside for them nobody else can have, and who has it does not take it from anybody: it is neither
// used nor there.
func TestHugePagesAreNoMemory(t *testing.T) {
	text := testdata(t, "meminfo")
	old := says(t, text, "Hugetlb:", "")
	available := func(text, kB string) string { return says(t, text, "MemAvailable:", "MemAvailable:   "+kB+" kB\n") }
	for _, c := range []struct {
		name, text     string
		capacity, used quantity.Amount
	}{
		{"of all sizes", text, 88, 68},
		{"a kernel before 4.16 says those of one size", old, 136, 116},
		{"none", says(t, text, "Hugetlb:", "Hugetlb:               0 kB\n"), 200, 180},
		{"none in an old kernel", says(t, old, "HugePages_Total:", "HugePages_Total:       0\n"), 200, 180},
		{"a kernel without them", says(t, says(t, old, "HugePages_Total:", ""), "Hugepagesize:", ""), 200, 180},
		{"the others are all available", available(text, "92274688"), 88, 0},
		{"more than is not available, read at another moment", available(text, "104857600"), 100, 0},
		{"more than there is", says(t, text, "Hugetlb:", "Hugetlb: 99999999999999999999 kB\n"), 20, 0},
		{"more than there is, in an old kernel", says(t, old, "HugePages_Total:", "HugePages_Total: 9000000000000000\n"), 20, 0},
	} {
		k := newKernel(t)
		k.h.machines = true
		k.write(filepath.Join(k.root, "meminfo"), c.text)
		if m := k.sense(); m.Capacity != c.capacity*gib || m.Used != c.used*gib {
			t.Errorf("%s: %d of %d MiB are used, want %d of %d GiB", c.name, m.Used/mib, m.Capacity/mib, c.used, c.capacity)
		}
	}
}

// TestWhatZFSGivesBackIsNotUsed: its cache but for the least that it keeps, and for what else of it the kernel counts as available itself.
func TestWhatZFSGivesBackIsNotUsed(t *testing.T) {
	meminfo := says(t, testdata(t, "meminfo"), "Hugetlb:", "Hugetlb: 0 kB\n") // 180 of 200 GiB
	text := testdata(t, "arcstats")
	is := func(line, value string) string { return says(t, text, line+" ", line+"   4    "+value+"\n") }
	for _, c := range []struct {
		name, text string
		used       quantity.Amount
	}{
		{"no ZFS", "", 180 * gib},
		{"above the least", text, 88*gib - 123456},
		{"a read says a page at most", text[:strings.LastIndexByte(text[:4096], '\n')+1], 88*gib - 123456},
		{"as small as it gets", is("size", "6442450944"), 180 * gib},
		{"smaller", is("size", "1048576"), 180 * gib},
		{"names of files, which the kernel counts", is("data_size", "0"), 165 * gib},
		{"it does not say the least", says(t, text, "c_min ", ""), 180 * gib},
		{"it does not say how much", says(t, text, "size ", ""), 180 * gib},
		{"cut off in the midst of a number", text[:strings.Index(text, "\nmetadata_size ")+len("\nmetadata_size                   4    "+
			"1610")], 100 * gib},
		{"more than is used", is("size", "18446744073709551615"), 85 * gib},
		{"more than is used of all", says(t, is("size", "18446744073709551615"), "data_size ", "data_size 4 18446744073709551615\n"), 0},
		{"no numbers", "size 4 \nc_min 4 -\ndata_size\n", 180 * gib},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := newZFS(t, meminfo, c.text)
			if m := k.sense(); m.Capacity != 200*gib || m.Used != c.used {
				t.Errorf("%d of %d MiB are used, want %d", m.Used/mib, m.Capacity/mib, c.used/mib)
			}
		})
	}
}

// TestHugePagesAndZFS: one is taken off after the other.
func TestHugePagesAndZFS(t *testing.T) {
	k := newZFS(t, says(t, testdata(t, "meminfo"), "Hugetlb:", "Hugetlb: 83886080 kB\n"), testdata(t, "arcstats"))
	if m := k.sense(); m.Capacity != 120*gib || m.Used != 8*gib-123456 {
		t.Errorf("%d of %d MiB are used, want 8 of 120 GiB", m.Used/mib, m.Capacity/mib)
	}
}

// TestZFSComesLate: its module is loaded when the daemon is there already. It is looked for now and then.
func TestZFSComesLate(t *testing.T) {
	text := says(t, testdata(t, "arcstats"), "size ", "size 4 16106127360\n") // 15 GiB
	k := newZFS(t, testdata(t, "meminfo"), "")
	before := k.sense().Used
	k.write("arcstats", text)
	if m := k.sense(); m.Used != before {
		t.Errorf("it was looked for again at once: %d MiB are used", m.Used/mib)
	}
	k.now += arcPatience
	if m := k.sense(); m.Used != before-9*gib {
		t.Errorf("it was not seen: %d MiB are used, want %d", m.Used/mib, (before-9*gib)/mib)
	}
}

// TestAContainersMemoryHasNoneOfIt: LXCFS puts a container's figures in the place of the machine's, and leaves its huge pages and ZFS as
// the machine's are.
func TestAContainersMemoryHasNoneOfIt(t *testing.T) {
	k := newZFS(t, testdata(t, "meminfo"), testdata(t, "arcstats"))
	k.h.machines = false
	if m := k.sense(); m.Capacity != 200*gib || m.Used != 180*gib {
		t.Errorf("%d of %d MiB are used, want 180 of 200 GiB", m.Used/mib, m.Capacity/mib)
	}
	for path, want := range map[string]bool{"/proc/self/stat": true, "meminfo": false} {
		f, err := OpenFile(path, unix.O_RDONLY)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.kernels(); got != want {
			t.Errorf("%s is the kernel's: %v", path, got)
		}
		f.Close()
	}
}

// TestAHostKnowsWhereItLooks: at the kernel's files, here too.
func TestAHostKnowsWhereItLooks(t *testing.T) {
	h, err := OpenHost("")
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	if got := string(h.arc.path.text[:h.arc.path.n]); got != "/proc/spl/kstat/zfs/arcstats" || h.machines != h.meminfo.kernels() {
		t.Errorf("it looks at %q, and takes meminfo for the machine's: %v", got, h.machines)
	}
}

// TestALookAtAllOfItAllocatesNothing, whether ZFS is there or looked for.
func TestALookAtAllOfItAllocatesNothing(t *testing.T) {
	for name, text := range map[string]string{"zfs": testdata(t, "arcstats"), "none": ""} {
		t.Run(name, func(t *testing.T) {
			k := newZFS(t, says(t, testdata(t, "meminfo"), "Hugetlb:", ""), text)
			var m survival.Memory
			if n := testing.AllocsPerRun(100, func() {
				k.now += arcPatience
				_ = k.h.Sense(k.now, true, &m)
			}); n > 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// FuzzAside: whatever the files say, what is taken off is not negative, and what is left makes sense where the rest does.
func FuzzAside(f *testing.F) {
	f.Add([]byte(testdata(f, "meminfo")), []byte(testdata(f, "arcstats")))
	f.Add([]byte("HugePages_Total: 9223372036854775807\nHugepagesize: 9223372036854775807 kB\n"),
		[]byte("size 4 9\nc_min 4 1\ndata_size 4 9223372036854775807\nmetadata_size 4 9223372036854775807\n"))
	f.Add([]byte("Hugetlb: "), []byte("size 4\nc_min\n"))
	f.Fuzz(func(t *testing.T, meminfo, arcstats []byte) {
		huge, arc := hugetlb(meminfo), shrinks(arcstats)
		if huge < 0 || arc < 0 {
			t.Fatalf("%d B of huge pages, %d B of ZFS", huge, arc)
		}
		if whole := bytes.LastIndexByte(arcstats, '\n') + 1; arc != shrinks(arcstats[:whole]) {
			t.Fatalf("half a line counted: %d B", arc)
		}
		m := survival.Memory{Capacity: 10 * gib, Used: 4 * gib}
		aside(&m, huge, arc)
		if m.Used < 0 || m.Used > 4*gib || m.Capacity-m.Used < 6*gib || m.Capacity > 10*gib || m.Capacity < 6*gib {
			t.Fatalf("%d of %d B are used", m.Used, m.Capacity)
		}
	})
}

// BenchmarkSense is one look at a machine with huge pages and ZFS.
func BenchmarkSense(b *testing.B) {
	h := Host{machines: true}
	defer h.Close()
	var err error
	if h.meminfo, err = OpenFile("testdata/meminfo", unix.O_RDONLY); err != nil {
		b.Fatal(err)
	}
	h.arc.path.add("testdata/arcstats")
	var m survival.Memory
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := h.Sense(time.Duration(i)*time.Millisecond, true, &m); err != nil {
			b.Fatal(err)
		}
	}
}
