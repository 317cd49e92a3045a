package watch

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Table is what the daemon tells the watcher: how it is to decide, and the subjobs that there are.
type Table struct {
	Config airlock.Config
	// Wall is the node's clock when the kernel's (CLOCK_BOOTTIME) was Boot.
	Wall quantity.Instant
	Boot time.Duration
	// Rows by token, each once; at most airlock.MaxTasks.
	Rows []Row
	// Base is the folder of all control groups. It is written once; a group outside it is written as none.
	Base string
}

// Row is one subjob, as its lease ranks it; Planned is its probable peak, 0: not known.
type Row struct {
	Token    job.Token
	Start    quantity.Instant
	Planned  quantity.Amount
	Priority int32
	Value    uint16
	Class    airlock.Class
	// Bound and Yields as airlock.Task has them. Stopping: somebody has asked it to end, and it is not to be suspended.
	Bound, Yields, Stopping bool
	// Init and InitStarted name the process that it hangs below. Group is its control group's folder below the table's Base; empty: none.
	Init        int
	InitStarted uint64
	Group       string
}

const (
	// groupBytes is the longest name of a control group, baseBytes of the folder of all of them. Longer ones go over as none.
	groupBytes = 136
	baseBytes  = 512

	configWords = 15
	headWords   = configWords + 2 + 1 + baseBytes/8 // with clock and base
	rowWords    = 8 + groupBytes/8
	tableWords  = headWords + airlock.MaxTasks*rowWords
)

// Flags of a row.
const (
	rowBound = 1 << iota
	rowYields
	rowStopping
	rowFlags = rowBound | rowYields | rowStopping
)

// encode appends the table's words to room.
func (t *Table) encode(room []uint64) []uint64 {
	c := &t.Config
	w := append(room, uint64(c.Severe), uint64(c.Calm), uint64(c.Emergency), uint64(c.Horizon), uint64(c.Brink), uint64(c.Stall),
		uint64(c.Timer), uint64(c.Yield),
		uint64(c.Entries), uint64(c.CoolDown), uint64(c.MostTasks), uint64(c.MostBytes), uint64(c.Least), uint64(c.Order),
		uint64(c.Outgrown),
		uint64(t.Wall), uint64(t.Boot))
	base := t.Base
	if len(base) > baseBytes {
		base = ""
	}
	w = appendText(w, base, baseBytes)
	for i := range t.Rows[:min(len(t.Rows), airlock.MaxTasks)] {
		r := &t.Rows[i]
		flags := uint64(0)
		for b, set := range [...]bool{r.Bound, r.Yields, r.Stopping} {
			if set {
				flags |= 1 << b
			}
		}
		group := r.Group
		if base == "" || len(group) > groupBytes {
			group = ""
		}
		w = append(w, uint64(r.Token.Epoch)|flags<<32|uint64(r.Class)<<40, r.Token.Seq, uint64(r.Start),
			uint64(uint32(r.Priority))|uint64(r.Value)<<32, uint64(r.Init), r.InitStarted, uint64(r.Planned))
		w = appendText(w, group, groupBytes)
	}
	return w
}

// decode reads words into a table, and says whether they are one. It makes no string that is in known already, so that what was not
// changed takes no memory.
func (t *Table) decode(w []uint64, known map[string]string) bool {
	if len(w) < headWords || (len(w)-headWords)%rowWords != 0 || len(w) > tableWords {
		return false
	}
	number := func(i int) int64 { return int64(w[i]) }
	t.Config = airlock.Config{
		Severe: number(0), Calm: number(1), Emergency: number(2), Horizon: time.Duration(number(3)), Brink: time.Duration(number(4)),
		Stall: number(5),
		Timer: time.Duration(number(6)), Yield: time.Duration(number(7)), Entries: uint8(w[8]), CoolDown: time.Duration(number(9)),
		MostTasks: int(number(10)), MostBytes: number(11), Least: number(12), Order: airlock.Order(w[13]),
		Outgrown: airlock.Outgrown(w[14]),
	}
	if w[8] == 0 || w[8] > 255 || w[13] > 255 || w[14] > 255 || t.Config.Validate() != nil {
		return false
	}
	t.Wall, t.Boot = quantity.Instant(w[15]), time.Duration(w[16])
	base, ok := readText(w[17:headWords], known)
	if !ok {
		return false
	}
	t.Base, t.Rows = base, t.Rows[:0]
	for w = w[headWords:]; len(w) > 0; w = w[rowWords:] {
		flags, class := w[0]>>32&0xff, w[0]>>40
		r := Row{
			Token: job.Token{Epoch: uint32(w[0]), Seq: w[1]}, Start: quantity.Instant(w[2]), Priority: int32(uint32(w[3])),
			Value: uint16(w[3] >> 32), Class: airlock.Class(class),
			Bound: flags&rowBound != 0, Yields: flags&rowYields != 0, Stopping: flags&rowStopping != 0, Init: int(w[4]), InitStarted: w[5],
			Planned: quantity.Amount(w[6]),
		}
		if r.Group, ok = readText(w[7:rowWords], known); !ok || flags > rowFlags || class > uint64(airlock.Collective) || w[3]>>48 != 0 ||
			w[4] > 1<<31-1 || w[6] > 1<<62 ||
			strings.Contains(r.Group, "/") || r.Group == ".." || r.Group == "." ||
			len(t.Rows) > 0 && t.Rows[len(t.Rows)-1].Token.Compare(r.Token) >= 0 {
			t.Rows = t.Rows[:0]
			return false
		}
		t.Rows = append(t.Rows, r)
	}
	return true
}

// appendText appends a text of at most most bytes, in a fixed number of words: its length, and its bytes.
func appendText(w []uint64, s string, most int) []uint64 {
	w = append(w, uint64(len(s)))
	for at := 0; at < most; at += 8 {
		v := uint64(0)
		for i := range 8 {
			if at+i < len(s) {
				v |= uint64(s[at+i]) << (8 * i)
			}
		}
		w = append(w, v)
	}
	return w
}

func readText(w []uint64, known map[string]string) (string, bool) {
	n := w[0]
	if n > uint64(len(w)-1)*8 {
		return "", false
	}
	var room [baseBytes]byte
	for i := range int(n) {
		b := byte(w[1+i/8] >> (8 * (i % 8)))
		if b == 0 {
			return "", false
		}
		room[i] = b
	}
	if s, ok := known[string(room[:n])]; ok {
		return s, true
	}
	return string(room[:n]), true
}

// Board is what the watcher tells the daemon: what the machine's memory is like, and what it is doing with each subjob. It is a state, not
// a history: a reader that missed a hundred of them knows all from the next.
type Board struct {
	// Life of the watcher that wrote it.
	Life uint64
	// At is when, by the node's clock.
	At                           quantity.Instant
	Capacity, Used, Growth, Room quantity.Amount
	Stall                        int64
	Level                        airlock.Level
	Stands                       []Stand
}

// Stand is what the watcher knows of one subjob, and does with it.
type Stand struct {
	Token                    job.Token
	Since, Resumed           quantity.Instant
	Resident, Parked, Growth quantity.Amount
	State                    airlock.State
	Entries                  uint8
	// Cause of the last step, 0: there was none.
	Cause airlock.Cause
}

const (
	boardHead  = 8
	standWords = 7
	boardWords = boardHead + airlock.MaxTasks*standWords
)

// encode appends the board's words to room.
func (b *Board) encode(room []uint64) []uint64 {
	w := append(room, b.Life, uint64(b.At), uint64(b.Capacity), uint64(b.Used), uint64(b.Growth), uint64(b.Room), uint64(b.Stall),
		uint64(b.Level))
	for i := range b.Stands[:min(len(b.Stands), airlock.MaxTasks)] {
		s := &b.Stands[i]
		w = append(w, uint64(s.Token.Epoch)|uint64(s.State)<<32|uint64(s.Entries)<<40|uint64(s.Cause)<<48, s.Token.Seq, uint64(s.Since),
			uint64(s.Resumed),
			uint64(s.Resident), uint64(s.Parked), uint64(s.Growth))
	}
	return w
}

// decode reads words into a board, and says whether they are one.
func (b *Board) decode(w []uint64) bool {
	if len(w) < boardHead || (len(w)-boardHead)%standWords != 0 || len(w) > boardWords || w[7] > uint64(airlock.Emergency) {
		return false
	}
	amount := func(i int) quantity.Amount { return quantity.Amount(w[i]) }
	*b = Board{
		Life: w[0], At: quantity.Instant(w[1]), Capacity: amount(2), Used: amount(3), Growth: amount(4), Room: amount(5),
		Stall: int64(w[6]), Level: airlock.Level(w[7]), Stands: b.Stands[:0],
	}
	for w = w[boardHead:]; len(w) > 0; w = w[standWords:] {
		state, cause := w[0]>>32&0xff, w[0]>>48
		s := Stand{
			Token: job.Token{Epoch: uint32(w[0]), Seq: w[1]}, Since: quantity.Instant(w[2]), Resumed: quantity.Instant(w[3]),
			Resident: amount(4), Parked: amount(5), Growth: amount(6), State: airlock.State(state), Entries: uint8(w[0] >> 40),
			Cause: airlock.Cause(cause),
		}
		if state >= airlock.States || cause >= airlock.Causes || s.Resident < 0 || s.Parked < 0 ||
			len(b.Stands) > 0 && b.Stands[len(b.Stands)-1].Token.Compare(s.Token) >= 0 {
			b.Stands = b.Stands[:0]
			return false
		}
		b.Stands = append(b.Stands, s)
	}
	return true
}

// Of is what the board says of a subjob; false: nothing.
func (b *Board) Of(t job.Token) (*Stand, bool) {
	low, high := 0, len(b.Stands)
	for low < high {
		if mid := (low + high) / 2; b.Stands[mid].Token.Compare(t) < 0 {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low < len(b.Stands) && b.Stands[low].Token == t {
		return &b.Stands[low], true
	}
	return nil, false
}

// Act is one step of the watcher, as the ring has it: written before it is done.
type Act struct {
	// Life of the watcher, and when by the node's clock.
	Life  uint64
	At    quantity.Instant
	Token job.Token
	Step  airlock.Step
	Cause airlock.Cause
	Level airlock.Level
	// Relief that is expected of it, and what was Used of the machine's memory.
	Relief, Used quantity.Amount
}

// String is an act for people.
func (a *Act) String() string {
	return fmt.Sprintf("%v %v (%d MiB), since %v: %v, %d MiB used", a.Step, a.Token, a.Relief>>20, a.Cause, a.Level, a.Used>>20)
}

const (
	// actWords of one act: its number, five words, Life, and their sum.
	actWords = 8
	// ringActs is room to suspend and resume every subjob, some times over.
	ringActs  = 4096
	ringWords = ringActs * actWords
)

// ring is what the watcher did, the last ringActs of it. It tells people why; what is so is on the board, so that what a slow reader
// misses here changes nothing.
type ring struct {
	// next is the number of the next act, from 0.
	next  words
	slots words
}

// add writes the next act.
func (r *ring) add(a *Act) {
	n := r.next.load(0)
	at := int(n%ringActs) * actWords
	w := [actWords]uint64{
		1: a.Life, 2: uint64(a.At), 3: uint64(a.Token.Epoch) | uint64(a.Step)<<32 | uint64(a.Cause)<<40 | uint64(a.Level)<<48,
		4: a.Token.Seq,
		5: uint64(a.Relief), 6: uint64(a.Used),
	}
	w[7] = sum(n+1, w[1:7])
	r.slots.store(at, 0)
	r.slots.write(at+1, w[1:])
	r.slots.store(at, n+1)
	r.next.store(0, n+1)
}

// read gives every act from a number on to each, in order, and returns the number to go on from, and how many were lost: overwritten
// before they were read, or damaged.
func (r *ring) read(from uint64, each func(*Act)) (next, lost uint64) {
	next = r.next.load(0)
	if from > next { // not this ring's
		from = next - min(next, ringActs)
	}
	for ; from < next; from++ {
		if behind := r.next.load(0); behind > from && behind-from > ringActs {
			jump := min(behind-ringActs, next)
			lost += jump - from
			if from = jump; from == next {
				break
			}
		}
		at := int(from%ringActs) * actWords
		var w [actWords]uint64
		r.slots.read(at, w[:])
		a := Act{
			Life: w[1], At: quantity.Instant(w[2]), Token: job.Token{Epoch: uint32(w[3]), Seq: w[4]}, Step: airlock.Step(w[3] >> 32),
			Cause: airlock.Cause(w[3] >> 40), Level: airlock.Level(w[3] >> 48),
			Relief: quantity.Amount(w[5]), Used: quantity.Amount(w[6]),
		}
		if w[0] != from+1 || r.slots.load(at) != from+1 || w[7] != sum(from+1, w[1:7]) ||
			a.Step < airlock.Suspend || a.Step > airlock.Reclaim || a.Cause < airlock.Deficit || a.Cause >= airlock.Causes ||
			w[3]>>48 > uint64(airlock.Emergency) {
			lost++
			continue
		}
		each(&a)
	}
	return next, lost
}

// pair is a value that one side writes whole and the other reads whole, even if either is killed in between: two places that are written to
// in turn, and a word that says which one is current. That word moves once the new one is complete, so nobody reads what a killed writer
// leaves half written. A reader that is overtaken by two writes sees it by the number, or by the sum, and looks again.
//
// There is one writer at a time (ensured by a lock elsewhere). Readers are many, and wait for nobody.
type pair struct {
	// number of the last one that was written, 0: none; places have its number, its length and its sum in front.
	number words
	places [2]words
}

// front is how many words stand in front of a place: its number, its length and its sum.
const front = 3

// write writes the next one. It must fit.
func (p *pair) write(of []uint64) {
	n := p.number.load(0) + 1
	place := p.places[n%2]
	place.store(0, 0)
	place.write(front, of)
	place.store(1, uint64(len(of)))
	place.store(2, sum(n, of))
	place.store(0, n)
	p.number.store(0, n)
}

// looks is how many times a reader tries: each time but the first it was overtaken.
const looks = 4

// read reads the last one into room, and returns it with its number; false: there is none, or none that is whole. room takes a whole
// place.
func (p *pair) read(room []uint64) (of []uint64, n uint64, ok bool) {
	for range looks {
		n = p.number.load(0)
		place := p.places[n%2]
		size := place.load(1)
		if n == 0 || place.load(0) != n || size > uint64(place.len()-front) || size > uint64(len(room)) {
			continue
		}
		of = room[:size]
		s := place.load(2)
		place.read(front, of)
		if place.load(0) == n && sum(n, of) == s {
			return of, n, true
		}
	}
	return nil, 0, false
}

// last is the number of the last one.
func (p *pair) last() uint64 { return p.number.load(0) }

// region is the shared memory: a head, the table, the board and the ring. One daemon writes the table, one watcher the rest.
type region struct {
	head  words
	table pair
	board pair
	ring  ring
}

// Words of the head. Each is written by one side.
const (
	headMagic = iota
	// headBeat is the daemon's last sign of life, by CLOCK_MONOTONIC, as headPulse is; headOrder is not 0 if no watcher is wanted.
	headBeat
	headOrder
	// headRead is the number of the act to read next.
	headRead
	// headLife is the watcher's, once it can be relied upon and until it ends in order; its process, when it last looked, and what it has
	// to do without.
	headLife
	headPID
	headStarted
	headPulse
	headLacks
	headTable
	headBoard
	headRing
	// headBoot names the start of the machine that all of it belongs to, headKind the kind of survival of the last life.
	headBoot
	headKind
	headSize = 512 // a page, so that all else begins on one
)

// magic names the format: what has another one is made anew.
const magic = 0x736c756963650001

const regionWords = headSize + 2*(front+tableWords) + 2*(front+boardWords) + ringWords

// divide lays a region over words.
func divide(w words) *region {
	at := headSize
	cut := func(n int) words {
		at += n
		return w.part(at-n, at)
	}
	one := func(i int) words { return w.part(i, i+1) }
	return &region{
		head:  w.part(0, headSize),
		table: pair{number: one(headTable), places: [2]words{cut(front + tableWords), cut(front + tableWords)}},
		board: pair{number: one(headBoard), places: [2]words{cut(front + boardWords), cut(front + boardWords)}},
		ring:  ring{next: one(headRing), slots: cut(ringWords)},
	}
}

// words are shared memory. Every access is of one whole word and atomic: the other side is another process, in the middle of anything.
type words struct {
	at []uint64
	// before is called before every store, where a test wants to stop a writer; else it is nil.
	before func()
}

func (w words) load(i int) uint64 { return atomic.LoadUint64(&w.at[i]) }

func (w words) store(i int, v uint64) {
	if w.before != nil {
		w.before()
	}
	atomic.StoreUint64(&w.at[i], v)
}

func (w words) len() int { return len(w.at) }

// part is some of them, from one on and before another.
func (w words) part(from, to int) words { return words{w.at[from:to:to], w.before} }

// write copies words in, read out.
func (w words) write(at int, from []uint64) {
	for i, v := range from {
		w.store(at+i, v)
	}
}

func (w words) read(at int, to []uint64) {
	for i := range to {
		to[i] = w.load(at + i)
	}
}

// sum of words and of the number under which they were written, so that old words under a new number are not taken for new ones. Each step
// can be taken back, so that no single word can change without it.
func sum(number uint64, of []uint64) uint64 {
	h := number*prime ^ uint64(len(of))
	for _, v := range of {
		h = (h ^ v) * prime
		h ^= h >> 32
	}
	return h
}

const prime = 0x9e3779b97f4a7c15 // odd, and its bits are spread
