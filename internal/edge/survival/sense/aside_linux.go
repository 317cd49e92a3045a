package sense

import (
	"bytes"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

const (
	arcstats = "/proc/spl/kstat/zfs/arcstats"
	// arcPatience is how often ZFS is looked for where there is none: its module may be loaded at any time.
	arcPatience = time.Minute
)

// aside takes off what is not really used of a machine's memory: huge pages, which are set aside and nobody else can have, of all of it,
// and of the rest what ZFS gives back when asked. MemAvailable has neither. The files are read one after the other, so that neither is
// taken to be more than what is not available.
func aside(m *survival.Memory, huge, arc quantity.Amount) {
	huge = min(huge, max(0, m.Used))
	m.Capacity -= huge
	m.Used = max(0, m.Used-huge-arc)
}

// hugetlb is what is set aside for huge pages, in use or not, by what /proc/meminfo says. Of a kernel before 4.16 it is those of the usual
// size alone.
func hugetlb(meminfo []byte) quantity.Amount {
	if kib, said := Field(meminfo, "Hugetlb:"); said {
		return quantity.Amount(min(kib, math.MaxInt64>>10)) << 10
	}
	pages, _ := Field(meminfo, "HugePages_Total:")
	kib, _ := Field(meminfo, "Hugepagesize:")
	return quantity.Amount(min(quantity.MulDiv(pages, kib, 1), math.MaxInt64>>10)) << 10
}

// arc is ZFS's cache, which the kernel counts as used. Its path is set once.
type arc struct {
	path path
	file File
	next time.Duration // when it is looked for again
}

// shrinks is how much it gives back, as it is now.
func (a *arc) shrinks(now time.Duration, buf []byte) quantity.Amount {
	if !a.file.Is() {
		if now < a.next {
			return 0
		}
		a.next = now + arcPatience
		fd, err := a.path.open(unix.O_RDONLY)
		if err != nil {
			return 0
		}
		a.file = File{fd: fd, open: true}
	}
	text, err := a.file.Read(buf)
	if err != nil { // the module is gone, and may come again
		a.file.Close()
		return 0
	}
	return shrinks(text)
}

// shrinks is the memory that ZFS gives back when memory is short, by its arcstats: all above its minimum (size above c_min, as in htop),
// and of that only data and metadata. The rest are objects that the kernel counts as available already with newer OpenZFS (its #16385).
func shrinks(arcstats []byte) quantity.Amount {
	size, sized := kstat(arcstats, "size ")
	least, bounded := kstat(arcstats, "c_min ")
	if !sized || !bounded {
		return 0
	}
	data, _ := kstat(arcstats, "data_size ")
	metadata, _ := kstat(arcstats, "metadata_size ")
	return quantity.Amount(max(0, min(size-least, data+min(metadata, math.MaxInt64-data))))
}

// kstat is the number behind a name and its type ("size   4    105226821440"), of a line that is there whole; false: there is none.
func kstat(text []byte, name string) (int64, bool) {
	line, _ := behind(text[:bytes.LastIndexByte(text, '\n')+1], name)
	line = bytes.TrimLeft(line, " ")
	kind := bytes.IndexByte(line, ' ')
	if kind < 0 {
		return 0, false
	}
	return Number(line[kind:])
}

// kernels says whether a file is the kernel's own. LXCFS puts another over /proc/meminfo, which says of a container's memory what it can,
// and of the rest what is true of the machine.
func (f *File) kernels() bool {
	var fs unix.Statfs_t
	return unix.Fstatfs(f.fd, &fs) == nil && fs.Type == unix.PROC_SUPER_MAGIC
}
