package utilization

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"time"

	"sluice.dev/sluice/internal/lab/history"
)

// table is which column of nvidia-smi's is what; -1 for one that is not there.
type table struct {
	width                                                           int
	time, index, uuid, bus, utilization, memory, mig, model, nodeAt int
}

// titled reads a head; nil: the line is none. With nounits the units stand in it all the same.
func titled(cells [][]byte) *table {
	t := &table{width: len(cells), time: -1, index: -1, uuid: -1, bus: -1, utilization: -1, memory: -1, mig: -1, model: -1, nodeAt: -1}
	any := false
	for i, cell := range cells {
		name, _, _ := bytes.Cut(cell, []byte(" ["))
		at := t.column(string(name))
		if at != nil && *at < 0 {
			*at, any = i, true
		}
	}
	if !any {
		return nil
	}
	return t
}

func (t *table) column(name string) *int {
	switch name {
	case "timestamp":
		return &t.time
	case "index":
		return &t.index
	case "uuid", "gpu_uuid":
		return &t.uuid
	case "pci.bus_id", "gpu_bus_id":
		return &t.bus
	case "utilization.gpu":
		return &t.utilization
	case "memory.used":
		return &t.memory
	case "mig.mode.current":
		return &t.mig
	case "name", "gpu_name":
		return &t.model
	case "host", "hostname", "node", "nodename":
		return &t.nodeAt
	}
	return nil
}

// guessed is what the columns of a row without a head are, by how their cells look: with units there is one of each, or it is not known
// which is which.
func guessed(cells [][]byte) *table {
	t := titled([][]byte{[]byte("timestamp")})
	t.width, t.time = len(cells), -1
	percents, sizes := 0, 0
	for i, cell := range cells {
		switch {
		case isStamp(cell):
			t.time = i
		case bytes.HasPrefix(cell, []byte("GPU-")):
			t.uuid = i
		case bytes.HasSuffix(cell, []byte(" %")):
			t.utilization = i
			percents++
		case bytes.HasSuffix(cell, []byte(" MiB")):
			t.memory = i
			sizes++
		default:
			if n, err := strconv.ParseUint(string(cell), 10, 8); err == nil && n < 64 && t.index < 0 {
				t.index = i
			}
		}
	}
	if percents > 1 {
		t.utilization = -1
	}
	if sizes > 1 {
		t.memory = -1
	}
	return t
}

// readTable puts a log of nvidia-smi into the book.
func readTable(b *history.Book, r io.Reader, name string) error {
	l, c := &log{b, map[history.Gauge][]history.Sample{}}, clock{book: b}
	own := node(name)
	var t *table
	known := map[string]int32{} // devices by uuid or bus, where there is no index: nvidia-smi lists them in order
	count := map[string]int32{}
	err := history.EachLine(b, r, name, func(line []byte, at history.At) {
		if len(bytes.TrimSpace(line)) == 0 {
			return
		}
		cells := split(line)
		if head := titled(cells); head != nil {
			t = head
			if t.utilization < 0 && t.memory < 0 {
				b.Odd(noMeasure, noMeasureTo, at)
			}
			return
		}
		if t == nil {
			t = guessed(cells)
			if t.utilization < 0 && t.memory < 0 {
				b.Odd("a table of measurements without a head, whose columns can't be told", "left out: leave noheader out", at)
			}
		}
		if t.utilization < 0 && t.memory < 0 {
			return
		}
		if len(cells) != t.width {
			b.Odd(badRow, leftOut, at)
			return
		}
		cell := func(column int) []byte {
			if column < 0 {
				return nil
			}
			return cells[column]
		}
		if t.time < 0 {
			b.Odd(noTime, noTimeTo, at)
			return
		}
		s := history.Sample{MiB: history.NoMemory}
		ok := false
		if s.At, ok = c.instant(string(cell(t.time))); !ok {
			b.Odd(badRow, leftOut, at)
			return
		}
		g := history.Gauge{Node: own}
		if text := cell(t.nodeAt); len(text) > 0 {
			g.Node = string(text)
		}
		id := cell(t.uuid)
		if len(id) == 0 {
			id = cell(t.bus)
		}
		switch n, err := strconv.ParseUint(string(cell(t.index)), 10, 16); {
		case err == nil:
			g.Index = int32(n)
		case t.index < 0 && len(id) > 0:
			key := g.Node + "\x00" + string(id)
			index, seen := known[key]
			if !seen {
				index = count[g.Node]
				known[key] = index
				count[g.Node]++
			}
			g.Index = index
		default:
			b.Odd(noDevice, noDeviceTo, at)
			return
		}
		if x, ok := number(cell(t.utilization)); ok && string(cell(t.mig)) != "Enabled" { // with MIG it is of no slice
			if s.Level = history.Idle; x > 0 {
				s.Level = history.Busy
			}
		}
		if x, ok := number(cell(t.memory)); ok {
			s.MiB = int32(x)
		}
		if model := cell(t.model); len(model) > 0 {
			b.Samples().Model(g.Node, string(model))
		}
		l.add(g, s)
	})
	l.done()
	return err
}

// isTable looks for a head of nvidia-smi's, or for a first row.
func isTable(head []byte, _ string) bool {
	for line := range bytes.Lines(head) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		cells := split(line)
		t := titled(cells)
		return t != nil && (t.utilization >= 0 || t.memory >= 0) || t == nil && len(cells) > 1 && slices.ContainsFunc(cells, isStamp)
	}
	return false
}

// isStamp says whether a cell is an instant as nvidia-smi prints it.
func isStamp(cell []byte) bool {
	const form = "2006/01/02 15:04:05.000"
	if len(cell) != len(form) {
		return false
	}
	_, err := time.Parse(form, string(cell))
	return err == nil
}

func split(line []byte) [][]byte {
	cells := bytes.Split(line, []byte(","))
	for i := range cells {
		cells[i] = bytes.Trim(cells[i], " \t\r\"")
	}
	return cells
}
