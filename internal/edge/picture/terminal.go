package picture

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// leastWidth is the narrowest picture that says anything.
const leastWidth = 48

// Terminal draws the panels with characters, at most width wide (at least 48): capital letters where a job's process
// ran, small ones where it held a lease without running, '/' reserved, '.' an empty window, a space what is not known.
// With color the letters stand on the color of their job; without, nothing but ASCII and what names contain is written.
func Terminal(w io.Writer, panels []Panel, width int, color bool) error {
	width = max(width, leastWidth)
	label := 8
	for _, p := range panels {
		for _, s := range p.History.Slices {
			label = max(label, utf8.RuneCountInString(string(s.Slice.ID)))
		}
	}
	t := &screen{jobs: jobs(panels), label: min(label, width/3), color: color}
	t.cells = width - t.label - len("  ") - len("  100%")
	t.per = reach(panels).Seconds() / float64(t.cells)

	for _, p := range panels {
		fmt.Fprintf(&t.out, "%s  (%s)\n", p.Title, summary(p))
		for _, s := range p.History.Slices {
			t.row(p, s)
		}
		if len(p.History.Slices) == 0 {
			t.out.WriteString("no slices\n")
		}
		t.axis(p, reach(panels))
		t.out.WriteByte('\n')
	}
	t.legend(panels, width)
	if _, err := w.Write(t.out.Bytes()); err != nil {
		return fmt.Errorf("write the picture: %w", err)
	}
	return nil
}

// screen is a picture of characters under way.
type screen struct {
	out   bytes.Buffer
	jobs  []job.ID
	label int
	cells int
	per   float64 // seconds a cell
	color bool
}

// letter of the i-th job; after 26 they repeat, and the colors tell them apart.
func letter(i int) byte { return byte('A' + i%26) }

// ansi is the 256-color background of the i-th job.
func ansi(i int) int {
	list := []int{75, 215, 114, 177, 211, 80, 186, 105, 250, 209}
	return list[i%len(list)]
}

// use is what a cell is filled with; the later ones win where shares are equal.
type use struct {
	what byte // ' ' unknown, '.' window, '/' reserved, 'l' leased, 'u' used
	job  int
}

// row draws one slice.
func (t *screen) row(p Panel, s status.SliceHistory) {
	h := p.History
	fmt.Fprintf(&t.out, "%-*s  ", t.label, clip(string(s.Slice.ID), t.label))
	shares := make([]map[use]float64, t.cells)
	add := func(u use, start, end quantity.Instant) {
		start, end = max(start, h.From), min(end, h.To)
		if start >= end {
			return
		}
		a, b := start.Sub(h.From).Seconds()/t.per, end.Sub(h.From).Seconds()/t.per
		for c := int(a); c < t.cells && float64(c) < b; c++ {
			if shares[c] == nil {
				shares[c] = map[use]float64{}
			}
			shares[c][u] += min(b, float64(c+1)) - max(a, float64(c))
		}
	}
	for _, span := range s.Spans {
		switch span.Kind {
		case 0:
			add(use{what: '.'}, span.Start, span.End)
		case protocol.ForLease:
			n := t.index(span.Job)
			u := usedPart(&span, h.To)
			if u.start >= u.end {
				add(use{'l', n}, span.Start, span.End)
				break
			}
			add(use{'l', n}, span.Start, u.start)
			add(use{'u', n}, u.start, u.end)
			add(use{'l', n}, u.end, span.End)
		default:
			add(use{what: '/'}, span.Start, span.End)
		}
	}
	for _, cell := range shares {
		t.cell(largest(cell))
	}
	fmt.Fprintf(&t.out, "  %4s\n", percent(Filled(s, h.From, p.measured())))
}

// index of a job in the legend.
func (t *screen) index(id job.ID) int {
	for i, j := range t.jobs {
		if j == id {
			return i
		}
	}
	return 0
}

// largest share of a cell; ties go to the busier use, then to the earlier job.
func largest(cell map[use]float64) use {
	best, share := use{what: ' '}, 0.0
	for u, s := range cell {
		if s > share || s == share && (rank(u.what) > rank(best.what) || u.what == best.what && u.job < best.job) {
			best, share = u, s
		}
	}
	return best
}

func rank(what byte) int { return strings.IndexByte(" ./lu", what) }

func (t *screen) cell(u use) {
	c := u.what
	switch u.what {
	case 'u':
		c = letter(u.job)
	case 'l':
		c = letter(u.job) + 'a' - 'A'
	}
	t.paint(u, string(c))
}

// paint writes text in the color of its use.
func (t *screen) paint(u use, text string) {
	switch {
	case t.color && u.what == 'u':
		fmt.Fprintf(&t.out, "\x1b[48;5;%d;30m%s\x1b[0m", ansi(u.job), text)
	case t.color && u.what == 'l':
		fmt.Fprintf(&t.out, "\x1b[38;5;%dm%s\x1b[0m", ansi(u.job), text)
	case t.color && u.what != ' ':
		fmt.Fprintf(&t.out, "\x1b[90m%s\x1b[0m", text)
	default:
		t.out.WriteString(text)
	}
}

// axis writes the labels of time below their cells, and where the shares end.
func (t *screen) axis(p Panel, longest time.Duration) {
	line := make([]byte, t.label+2+t.cells)
	for i := range line {
		line[i] = ' '
	}
	if p.cut() {
		const mark = "^ measured to here"
		x := t.label + 2 + int(p.measured().Sub(p.History.From).Seconds()/t.per)
		if x+len(mark) <= len(line) {
			fmt.Fprintf(&t.out, "%*s%s\n", x, "", mark)
		} else {
			const mark = "measured to here ^"
			fmt.Fprintf(&t.out, "%*s%s\n", max(0, x+1-len(mark)), "", mark)
		}
	}
	free := 0
	for at := time.Duration(0); at <= longest; at += step(longest, max(2, t.cells/10)) {
		text := elapsed(at)
		x := t.label + 2 + int(at.Seconds()/t.per)
		if x < free || x+len(text) > len(line) {
			continue
		}
		copy(line[x:], text)
		free = x + len(text) + 1
	}
	t.out.WriteString(strings.TrimRight(string(line), " ") + "\n")
}

// legend names the letters, in lines not wider than the picture.
func (t *screen) legend(panels []Panel, width int) {
	at := 0
	entry := func(u use, key, text string) {
		if n := utf8.RuneCountInString(key + " " + text); at > 0 && at+3+n > width {
			t.out.WriteByte('\n')
			at = n
		} else if at > 0 {
			t.out.WriteString("   ")
			at += 3 + n
		} else {
			at = n
		}
		t.paint(u, key)
		t.out.WriteString(" " + text)
	}
	for i, id := range t.jobs {
		entry(use{'u', i}, string(letter(i)), string(id))
	}
	if len(t.jobs) > 0 {
		entry(use{what: ' '}, "a-z", "leased, not used")
	}
	if kinds := reserved(panels); len(kinds) > 0 {
		names := make([]string, len(kinds))
		for i, k := range kinds {
			names[i] = k.String()
		}
		entry(use{what: '/'}, "/", "reserved ("+strings.Join(names, ", ")+")")
	}
	entry(use{what: '.'}, ".", "empty window")
	t.out.WriteByte('\n')
}
