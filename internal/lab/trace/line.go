package trace

import "fmt"

// Line is one line of a file while it is parsed.
type Line struct {
	// Number from 1.
	Number int
	// Text without the line's end; valid while the line is parsed.
	Text []byte

	problems *problems
	treated  treatments
	names    names
	fields   []span
	columns  []string // names of what Field counts
	at       []int    // the place in fields of each column, -1 for one that the file lacks; nil if both count alike
}

type span struct{ from, to int }

// Fail notes a problem at a byte of the line, from 0. text says what is wrong and what was expected.
func (l *Line) Fail(at int, format string, args ...any) {
	l.problems.add(l.Number, at+1, fmt.Sprintf(format, args...))
}

// Column is the field of the i-th column.
func (l *Line) Column(i int) Field {
	place := i
	if l.at != nil {
		place = l.at[i]
	}
	s := l.fields[place]
	return Field{line: l, name: l.columns[i], from: s.from, to: s.to}
}

// Has says whether the file has the i-th column.
func (l *Line) Has(i int) bool { return l.at == nil || l.at[i] >= 0 }

// Field is bytes [from, to) of the line, under the name that problems use.
func (l *Line) Field(name string, from, to int) Field {
	return Field{line: l, name: name, from: from, to: to}
}

// Blanks cuts the line at blanks into one field for each of columns. It is false, with a problem noted, if there are more
// or fewer.
func (l *Line) Blanks(columns []string) bool {
	l.blanks(columns)
	return l.counted(len(columns))
}

// Leading is Blanks for lines that may have more fields. Surplus is how many more; ok is false if there are fewer.
func (l *Line) Leading(columns []string) (surplus int, ok bool) {
	l.blanks(columns)
	if surplus = len(l.fields) - len(columns); surplus > 0 {
		return surplus, true
	}
	return 0, l.counted(len(columns))
}

func (l *Line) blanks(columns []string) {
	l.columns, l.at = columns, nil
	start := -1
	for i, c := range l.Text {
		blank := c == ' ' || c == '\t'
		switch {
		case !blank && start < 0:
			start = i
		case blank && start >= 0:
			l.fields = append(l.fields, span{start, i})
			start = -1
		}
	}
	if start >= 0 {
		l.fields = append(l.fields, span{start, len(l.Text)})
	}
}

// commas cuts the line at commas into n fields, with a problem noted if there are more or fewer.
func (l *Line) commas(n int) bool {
	l.split()
	return l.counted(n)
}

func (l *Line) split() {
	start := 0
	for i, c := range l.Text {
		if c == ',' {
			l.fields = append(l.fields, span{start, i})
			start = i + 1
		}
	}
	l.fields = append(l.fields, span{start, len(l.Text)})
}

// counted notes a problem where fields are missing, or where the first surplus one begins.
func (l *Line) counted(want int) bool {
	got := len(l.fields)
	if got == want {
		return true
	}
	at := len(l.Text)
	if got > want {
		at = l.fields[want].from
	}
	l.Fail(at, "the line has %d fields, expected %d", got, want)
	return false
}
