package history

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Options of a book. The zero value takes everything from the log.
type Options struct {
	// Zone is where clocks without an offset stand. nil: UTC, which is said as an assumption if a reader needs it.
	Zone *time.Location
	// GPUs is how many devices there are, for logs that do not say where jobs ran; 0: as many as the log says.
	GPUs int
	// Step is called before each step of Close that may take seconds, with what it does. Its error ends Close, and is what Close returns.
	// nil: nothing is called.
	Step func(doing string) error
}

// Book collects rows.
type Book struct {
	options Options
	files   []string

	names  table
	kinds  table
	ids    arena
	loads  lists[Part]
	places lists[int32]
	nodes  table

	// rows come in pieces: a slice of all would be copied again and again while it grows. added is how many came.
	rows    [][]Row
	added   int64
	batches [][]BatchRow
	told    []NodeRow
	away    []AwayRow

	oddities map[string]*oddity
	assumed  map[string]bool
	problems []string
	clusters map[string]bool
	// zoned: a reader needed the zone. single is assumed if no job has two runs.
	zoned  bool
	single string
	nth    map[uint64]uint64
	// watched are the times in which somebody looked at the cluster, in no order.
	watched []Gap
	// whole are the files that begin with the first submission. machine is how many devices the head of a log says there are.
	whole   map[uint32]bool
	machine int
	samples Samples
}

// NewBook is an empty book.
func NewBook(o Options) *Book {
	b := &Book{options: o, oddities: map[string]*oddity{}, assumed: map[string]bool{}, clusters: map[string]bool{},
		whole: map[uint32]bool{}}
	b.samples.book = b
	b.loads.bytes, b.places.bytes = partBytes, numberBytes
	b.names.add(nil)
	b.loads.add(nil)
	b.places.add(nil)
	return b
}

// File numbers a file whose rows follow, for places.
func (b *Book) File(name string) uint32 {
	b.files = append(b.files, name)
	return uint32(len(b.files) - 1)
}

// Name keeps a text that comes again and again.
func (b *Book) Name(text []byte) Name { return Name(b.names.add(text)) }

// ID keeps a text that hardly comes again.
func (b *Book) ID(text []byte) string { return b.ids.keep(text) }

// Kind numbers a kind of device by its name.
func (b *Book) Kind(name []byte) int32 { return int32(b.kinds.add(name)) }

// Node numbers a node by its name.
func (b *Book) Node(name []byte) int32 { return int32(b.nodes.add(name)) }

// Load numbers what a run asks for or holds. Parts of one kind must stand once.
func (b *Book) Load(parts []Part) int32 {
	slices.SortFunc(parts, func(x, y Part) int {
		return cmp.Or(cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Milli, y.Milli), cmp.Compare(x.Count, y.Count))
	})
	return b.loads.add(parts)
}

// Place numbers a set of nodes.
func (b *Book) Place(nodes []int32) int32 {
	slices.Sort(nodes)
	return b.places.add(slices.Compact(nodes))
}

// Add puts a row into the book.
func (b *Book) Add(r *Row) {
	b.rows = push(b.rows, *r)
	b.added++
}

// Nth counts rows that a reader can't tell from each other: 1 for the first of this number. It is what Row.Index is for where the log
// numbers nothing.
func (b *Book) Nth(raw uint64) uint64 {
	if b.nth == nil {
		b.nth = map[uint64]uint64{}
	}
	b.nth[raw]++
	return b.nth[raw]
}

// Batch says when the script of a job ran.
func (b *Book) Batch(r BatchRow) { b.batches = push(b.batches, r) }

// Tell says what is known of a node. What several rows say of one is joined.
func (b *Book) Tell(n NodeRow) {
	b.Node([]byte(n.Name))
	b.told = append(b.told, n)
}

// Whole says that a file has every job that was submitted since it begins, as an archive's trace, and not those that ran in a window
// of time, as sacct's output.
func (b *Book) Whole(file uint32) { b.whole[file] = true }

// Machine says how many devices there are in all, for a log that does not say where jobs ran.
func (b *Book) Machine(devices int) { b.machine = max(b.machine, devices) }

// Watch says that somebody looked at the cluster over [from, to), of which then all work is known. The history is of the time from the
// first of these to the last, and free devices are not to be had where nobody looked in between. An instant is enough: [t, t).
func (b *Book) Watch(from, to quantity.Instant) { b.watched = append(b.watched, Gap{from, to}) }

// Cluster notes whose rows these are.
func (b *Book) Cluster(name []byte) {
	if !b.clusters[string(name)] {
		b.clusters[string(name)] = true
	}
}

// Absent says when nodes are not to be had.
func (b *Book) Absent(a AwayRow) { b.away = append(b.away, a) }

// Zone is where clocks without an offset stand. Whoever asks for it has read some.
func (b *Book) Zone() *time.Location {
	b.zoned = true
	if b.options.Zone == nil {
		return time.UTC
	}
	return b.options.Zone
}

// Single notes a sentence without a full stop that is assumed if no job of the log has two runs.
func (b *Book) Single(sentence string) { b.single = sentence }

// Assume notes what is taken for true because the log does not say: a sentence without a full stop.
func (b *Book) Assume(sentence string) { b.assumed[sentence] = true }

// Problem notes what no history can be made with.
func (b *Book) Problem(format string, args ...any) {
	b.problems = append(b.problems, fmt.Sprintf(format, args...))
}

// Odd counts an oddity at a line; done says what was done about it. name is one of a few of the reader's.
func (b *Book) Odd(name, done string, at At) {
	b.odd(name, done).add(place{file: at.File, line: at.Line})
}

// Lost counts an oddity of a row that is left out with the run in it. instead says how to have it read; that the run's time counts as idle
// is said by the book.
func Lost(b *Book, name, instead string, at At) {
	b.Odd(name, instead, at)
	b.oddities[name].lost++
}

// OddMany counts an oddity of many rows at once, without a place.
func (b *Book) OddMany(name, done string, n int64) { b.odd(name, done).count += n }

// push appends to the last piece, or begins one.
func push[T any](pieces [][]T, x T) [][]T {
	const piece = 1 << 13
	if n := len(pieces); n == 0 || len(pieces[n-1]) == cap(pieces[n-1]) {
		pieces = append(pieces, make([]T, 0, piece))
	}
	last := &pieces[len(pieces)-1]
	*last = append(*last, x)
	return pieces
}

// oddity is counted, with the first three places by their order. lost are those of the count with which a run was left out.
type oddity struct {
	done   string
	count  int64
	lost   int64
	places []place
}

// place is a line of a file, or a text.
type place struct {
	file, line uint32
	text       string
}

func (b *Book) odd(name, done string) *oddity {
	o := b.oddities[name]
	if o == nil {
		o = &oddity{done: done}
		b.oddities[name] = o
	}
	return o
}

func (o *oddity) add(p place) {
	o.count++
	const most = 3
	if n := len(o.places); n == most && p.compare(o.places[n-1]) >= 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(o.places, p, place.compare)
	o.places = slices.Insert(o.places, at, p)
	o.places = o.places[:min(len(o.places), most)]
}

// remedy is what was done about it, in a book to which so many rows were added.
func (o *oddity) remedy(added int64) string {
	if o.lost == 0 {
		return o.done
	}
	return fmt.Sprintf("%d of %s left out, whose time counts as idle: %s", o.lost, Many(int(added+o.lost), "run"), o.done)
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.file, q.file), cmp.Compare(p.line, q.line), cmp.Compare(p.text, q.text))
}

func (b *Book) describe(p place) string {
	if p.text != "" {
		return p.text
	}
	return filepath.Base(b.files[p.file]) + ":" + strconv.Itoa(int(p.line))
}
