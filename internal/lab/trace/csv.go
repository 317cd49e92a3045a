package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Sheet is one layout of a CSV file with a header. Columns may stand in any order.
type Sheet struct {
	// File is which of the published files has this layout, for people; empty where there is one kind.
	File string
	// Columns that must be there, and Optional ones; Line.Column counts through both.
	Columns, Optional []string
	// Parse fills a record from a line with as many fields as the header.
	Parse func(l *Line, r *Record)
}

// OpenCSV reads a file with a header line that fits one of the sheets. Fields are without quotes, as all the published
// ones are.
func OpenCSV(r io.Reader, file string, sheets ...Sheet) Reader {
	t := &table{sheets: sheets}
	return OpenLines(r, file, t.parse)
}

// table remembers what the header said.
type table struct {
	sheets []Sheet
	sheet  *Sheet // nil before the header, and after one that fits none
	width  int
}

func (t *table) parse(l *Line, r *Record) bool {
	if l.Number == 1 {
		t.header(l)
		return false
	}
	if t.sheet == nil || !l.commas(t.width) {
		return false
	}
	t.sheet.Parse(l, r)
	return true
}

// header takes the sheet that lacks the fewest columns, and says what is missing, doubled or not known.
func (t *table) header(l *Line) {
	l.split()
	t.width = len(l.fields)
	found := make([]string, t.width)
	for i, s := range l.fields {
		found[i] = string(l.Text[s.from:s.to])
	}
	best := &t.sheets[0]
	for i := range t.sheets {
		if len(missing(&t.sheets[i], found)) < len(missing(best, found)) {
			best = &t.sheets[i]
		}
	}
	l.columns = slices.Concat(best.Columns, best.Optional)
	l.at = make([]int, len(l.columns))
	for i, name := range l.columns {
		l.at[i] = slices.Index(found, name)
	}
	good := true
	fail := func(at int, format string, args ...any) {
		good = false
		l.Fail(at, format, args...)
	}
	if lack := missing(best, found); len(lack) > 0 {
		of := ""
		if best.File != "" {
			of = "that of " + best.File + ": "
		}
		fail(0, "the header lacks %s; expected %s%s", few(lack), of, few(best.Columns))
	}
	for i, name := range found {
		if l.problems.full() { // or the search for doubles in a header of any length would be long
			break
		}
		switch at := l.fields[i].from; {
		case !slices.Contains(l.columns, name):
			fail(at, "column %s is not part of this format; take it out, or read the file as another format", short(name))
		case slices.Index(found, name) < i:
			fail(at, "column %s is there twice", short(name))
		}
	}
	if good {
		t.sheet = best
	}
}

func missing(s *Sheet, found []string) []string {
	var lack []string
	for _, name := range s.Columns {
		if !slices.Contains(found, name) {
			lack = append(lack, name)
		}
	}
	return lack
}

// few lists names, not all where there are many.
func few(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// short quotes a name, cut where it is long.
func short(name string) string {
	if len(name) > 40 {
		return fmt.Sprintf("%q...", name[:40])
	}
	return fmt.Sprintf("%q", name)
}
