package tasks

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// looking is how often the metrics of a running trial are read.
const looking = 100 * time.Millisecond

// climb is one trial on its way from rung to rung.
type climb struct {
	t    *Trials
	path string
	// off is how much of the file was read, rest a line that has no end yet; skip: it is too long.
	off  int64
	rest []byte
	skip bool
	// rung it has come to last, -1 before the first, and what it was worth at those that it stopped at.
	rung   int
	scores []job.Score
	// hopeless is the step at which it was found to be; nil: it goes on.
	hopeless *int64
}

// look reads what the trial has said since, and holds it to what others are known to be worth.
func (c *climb) look(others job.Scores) error {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	if s, err := f.Stat(); err != nil || !s.Mode().IsRegular() {
		return err
	} else if s.Size() < c.off { // written anew
		c.off, c.rest, c.skip = 0, nil, false
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := f.ReadAt(buf, c.off)
		c.off += int64(n)
		c.take(buf[:n], others)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// take takes in what was read. Lines that are too long say nothing.
func (c *climb) take(b []byte, others job.Scores) {
	for {
		line, after, whole := bytes.Cut(b, []byte{'\n'})
		if !c.skip {
			c.rest = append(c.rest, line...)
		}
		if len(c.rest) > maxRow {
			c.rest, c.skip = nil, true
		}
		if !whole {
			return
		}
		if !c.skip {
			c.said(c.rest, others)
		}
		b, c.rest, c.skip = after, c.rest[:0], false
	}
}

// said takes in one line. A trial that has passed several rungs since its last line is held to the last of them alone: what others were
// worth at steps long before says nothing about it.
func (c *climb) said(line []byte, others job.Scores) {
	m, ok := parseLine(line)
	if !ok || m.step == nil {
		return
	}
	rung := c.t.Stop.Rung(*m.step)
	if rung <= c.rung {
		return
	}
	c.rung = rung
	w := worth(&c.t.Stop, m.value)
	c.scores = append(c.scores, job.Score{Rung: rung, Worth: w})
	var bar job.Bar
	for _, b := range c.t.Bars {
		if b.Rung == rung {
			bar = b
		}
	}
	var own []int64
	if rung < len(others) {
		own = others[rung]
	}
	if c.hopeless == nil && c.t.Stop.Hopeless(w, bar, own) {
		c.hopeless = m.step
	}
}
