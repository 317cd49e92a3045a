package directory

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"sync"
	"time"
)

// gauge says how far a program is: by what it says, or by the names in its directory.
type gauge struct {
	place
	// by finds it in the program's output; nil: names say it.
	by *regexp.Regexp

	mu   sync.Mutex
	said marks
}

// longLine bounds what is looked at of a line of output, in bytes.
const longLine = 64 << 10

// read passes on what the program says, and takes down how far it says it is.
func (g *gauge) read(out *os.File, own io.Writer) {
	lines := bufio.NewReaderSize(io.TeeReader(out, own), longLine)
	for {
		line, err := lines.ReadSlice('\n')
		for _, part := range bytes.FieldsFunc(line, func(c rune) bool { return c == '\n' || c == '\r' }) { // bars of progress return
			if n, ok := numberIn(string(part), g.by); ok {
				g.mu.Lock()
				g.said = g.said.say(time.Now(), n)
				g.mu.Unlock()
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// near is how far the program is about, whether or not that is in its directory.
func (g *gauge) near() int64 {
	if g.by == nil {
		n, _ := newest(g.dir)
		return n
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.said); n > 0 {
		return g.said[n-1].number
	}
	return 0
}

// reached is how far the directory is that last changed at a time.
func (g *gauge) reached(changed time.Time) (n int64, known bool) {
	if g.by == nil {
		return newest(g.dir)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said.by(changed)
}
