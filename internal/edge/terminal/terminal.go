// Package terminal is how the command line speaks to a terminal: text that others wrote is made harmless on its way there,
// one line is rewritten in place, and a whole screen is drawn and given back.
//
// It knows bytes, lines and columns. It must not know what they are about: no jobs, no API.
package terminal

import (
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is says whether w is a terminal, and so whether somebody may be looking.
func Is(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Size is how many columns and rows the terminal w has; 80 and 24 if that can't be learned.
func Size(w io.Writer) (columns, rows int) {
	if f, ok := w.(*os.File); ok {
		if c, r, err := term.GetSize(int(f.Fd())); err == nil && c > 0 && r > 0 {
			return c, r
		}
	}
	return 80, 24
}

// Live is one line at a terminal that is rewritten in place, such as how far something is.
type Live struct {
	to    io.Writer
	shown bool
}

// NewLive returns a line at the terminal w, which must be one (Is).
func NewLive(w io.Writer) *Live { return &Live{to: w} }

// Show replaces the line. The text is made harmless and cut to the terminal's width: a line that wraps can't be rewritten.
func (l *Live) Show(text string) {
	columns, _ := Size(l.to)
	l.shown = true
	fmt.Fprintf(l.to, "\r\x1b[K%s", Cut(Line(text), columns-1))
}

// Clear takes the line away, so that others can write.
func (l *Live) Clear() {
	if l.shown {
		fmt.Fprint(l.to, "\r\x1b[K")
		l.shown = false
	}
}

// Cut is a text with at most n characters; where some are missing the last that is left is an ellipsis.
func Cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	if n < 1 {
		return ""
	}
	r := []rune(s)
	return string(r[:n-1]) + "…"
}
