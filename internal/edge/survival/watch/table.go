package watch

import (
	"strings"
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
	// Base is the folder of all control groups. It goes over once, and what is not below it goes as none.
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
	// Bound and Yields as airlock.Task has them. Stopping: somebody has asked it to end, and it is not to stand still.
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

// appendText appends a text that takes at most so many bytes, in a fixed number of words: its length, and its bytes.
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
