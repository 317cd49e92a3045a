package local

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"

	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/disk"
)

// counting counts what is read of files that are only looked at.
type counting struct {
	disk.FS
	read *atomic.Int64
}

func (c counting) View(name string) (disk.File, error) {
	f, err := c.FS.View(name)
	return counted{f, c.read}, err
}

type counted struct {
	disk.File
	read *atomic.Int64
}

func (c counted) ReadAt(b []byte, off int64) (int, error) {
	c.read.Add(int64(len(b)))
	return c.File.ReadAt(b, off)
}

// TestWitnessesCostOneReading: a cluster restarts with tens of thousands of subjobs, each with a witness.
func TestWitnessesCostOneReading(t *testing.T) {
	fs := counting{disk.OS(newPlace(t).dir), new(atomic.Int64)}
	j, err := OpenOn(fs, Options{SegmentBytes: 256 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if _, err := j.Replay(nil, nil); err != nil {
		t.Fatal(err)
	}
	var witnesses []journal.Position
	for i := range 10_000 {
		p, err := j.Append([][]byte{bytes.Repeat([]byte{byte(i)}, size), {byte(i)}})
		if err != nil {
			t.Fatal(err)
		}
		witnesses = append(witnesses, p, p)
	}
	fs.read.Store(0)
	if err := errors.Join(j.Check(witnesses)...); err != nil {
		t.Fatal(err)
	}
	// A header is read before its batch.
	if bytes, _ := j.Size(); fs.read.Load() > bytes+10_000*frameHeaderSize {
		t.Errorf("%d bytes were read of a journal of %d", fs.read.Load(), bytes)
	}
	fs.read.Store(0)
	if err := errors.Join(j.Check(witnesses[9000:9001])...); err != nil {
		t.Fatal(err)
	}
	if bytes, _ := j.Size(); fs.read.Load() > bytes/2 {
		t.Errorf("one witness: %d bytes were read of a journal of %d", fs.read.Load(), bytes)
	}
}
