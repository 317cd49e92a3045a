package terminal

import (
	"io"
	"os"

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
