package directory

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"regexp"
	"sync"
	"time"
)

// gauge says how far a program is: by what it says, by the names in its directory, or by the time that it has run.
type gauge struct {
	place
	// timed: a second is a step, of a program that says nothing and whose length nobody knows. It began at zero with base steps done.
	timed bool
	zero  time.Time
	base  int64
	// by finds it in the program's output; nil: names say it.
	by *regexp.Regexp

	mu   sync.Mutex
	said marks
}

// longLine bounds what is looked at of a line of output, in bytes.
const longLine = 64 << 10

// read passes on what the program says, and takes down how far it says it is.
func (g *gauge) read(out *os.File, own io.Writer) {
	lines := bufio.NewScanner(io.TeeReader(out, own))
	lines.Buffer(make([]byte, 0, longLine), longLine)
	lines.Split(cutLine)
	for lines.Scan() {
		if n, ok := numberIn(lines.Text(), g.by); ok {
			g.mu.Lock()
			g.said = g.said.say(time.Now(), n)
			g.mu.Unlock()
		}
	}
}

// cutLine splits what a program says as bufio.SplitFunc has it. A carriage return ends a line too, since bars of progress return and may
// never come to a line end, and so does the longest that is looked at.
func cutLine(data []byte, over bool) (advance int, line []byte, err error) {
	if end := bytes.IndexAny(data, "\r\n"); end >= 0 {
		return end + 1, data[:end], nil
	}
	if over && len(data) > 0 || len(data) >= longLine {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// near is how far the program is about, whether or not that is in its directory.
func (g *gauge) near() int64 {
	if g.timed {
		return g.at(time.Now())
	}
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

// at is how far a program is by the time that it has run.
func (g *gauge) at(now time.Time) int64 { return g.base + max(0, int64(now.Sub(g.zero)/time.Second)) }

// reached is how far the directory is that last changed at a time.
func (g *gauge) reached(changed time.Time) (n int64, known bool) {
	if g.timed {
		return g.at(changed), true
	}
	if g.by == nil {
		return newest(g.dir)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.said.by(changed)
}
