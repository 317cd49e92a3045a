package utilization

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/lab/history"
)

// heading is what dcgmi dmon begins its columns with, again every so many rows.
const heading = "#Entity"

// isColumns looks for a heading in the first lines.
func isColumns(head []byte, _ string) bool {
	n := 0
	for line := range bytes.Lines(head) {
		if bytes.Contains(line, []byte(heading)) || bytes.Contains(line, []byte("# Entity")) {
			return true
		}
		if n++; n > 20 {
			break
		}
	}
	return false
}

// readColumns puts a log of dcgmi dmon into the book. It prints no time: whoever wrote it down has put it before each line.
func readColumns(b *history.Book, r io.Reader, name string) error {
	l, c := &log{b, map[history.Gauge][]history.Sample{}}, clock{book: b}
	own := node(name)
	var columns []string
	err := history.EachLine(b, r, name, func(line []byte, at history.At) {
		fields := strings.Fields(strings.Replace(string(line), "# Entity", heading, 1))
		if len(fields) == 0 {
			return
		}
		for i, f := range fields {
			if f == heading {
				columns = fields[i+1:]
				return
			}
		}
		entity := -1
		for i, f := range fields {
			if f == "GPU" || f == "GPU-I" || f == "GPU-CI" {
				entity = i
				break
			}
		}
		switch {
		case entity < 0: // units, or what is said at the end
			return
		case fields[entity] != "GPU":
			b.Odd("a row of dcgmi dmon of a slice", "left out: it does not say of which GPU the slice is", at)
			return
		case entity == 0:
			b.Odd(noTime, noTimeTo, at)
			return
		case len(fields) != entity+2+len(columns):
			b.Odd(badRow, leftOut, at)
			return
		}
		s := history.Sample{MiB: history.NoMemory}
		index, err := strconv.ParseUint(fields[entity+1], 10, 16)
		instant, ok := c.instant(strings.Trim(strings.Join(fields[:entity], " "), "[]"))
		if err != nil || !ok {
			b.Odd(badRow, leftOut, at)
			return
		}
		s.At = instant
		for i, column := range columns {
			x, ok := number([]byte(fields[entity+2+i]))
			if !ok {
				continue
			}
			level := history.Idle
			switch column {
			case "GPUTL":
				if x > 0 {
					level = history.Busy
				}
			case "GRACT": // a ratio
				if x > history.Quiet {
					level = history.Busy
				}
			case "FBUSD":
				s.MiB = int32(x)
				continue
			default:
				continue
			}
			s.Level = max(s.Level, level)
		}
		l.add(history.Gauge{Node: own, Index: int32(index)}, s)
	})
	l.done()
	return err
}
