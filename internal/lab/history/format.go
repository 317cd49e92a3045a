package history

import (
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/trace"
)

// Format is one kind of log.
type Format struct {
	Name string
	// Doc is one line for people: what it is and what prints it.
	Doc string
	// Is says whether a file is of this format by its first lines, and its name where that is all that names what is in it.
	Is func(head []byte, file string) bool
	// Read puts what a file says into the book. What of it is wrong becomes an oddity or a problem of the book. It returns an error of kind
	// Unavailable if the file could not be read.
	Read func(b *Book, r io.Reader, file string) error
	// Beside: it may stand beside the files of another format, of which it then measures the devices.
	Beside bool
}

// EachLine calls visit for every line of a text, compressed or not, with its place. Where the file is cut or damaged the lines before
// count, and the book hears of it.
func EachLine(b *Book, r io.Reader, file string, visit func(line []byte, at At)) error {
	lines, at := trace.NewLines(r), At{File: b.File(file)}
	for {
		line, err := lines.Next()
		at.Line++
		switch {
		case err == nil:
			visit(line, at)
		case errors.Is(err, io.EOF):
			return nil
		case trace.TooLong(err):
			b.Odd("a line longer than any that a scheduler writes", "left out", at)
		case trace.Damaged(err):
			b.Odd("a file that is cut or damaged", "what stands before it was read: fetch it again", at)
			return nil
		default:
			return &errkind.Error{Kind: errkind.Unavailable, Err: fmt.Errorf("%s:%d: read: %w", file, at.Line, err)}
		}
	}
}
