package shim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Event is one line of the events file: a command was started or its tree is gone. Supervisors write it without the daemon, so that a test
// can compare the journal with what really ran. An end is written once, by the holder of the run directory's lock, with the result: so both
// agree.
type Event struct {
	// What is "start" or "end".
	What     string
	Token    string
	Job      job.ID
	Slice    job.SliceID
	From, To int64
	// PID of the process the command hangs below.
	PID int
	// Boot is CLOCK_BOOTTIME in nanoseconds, Wall the wall clock.
	Boot    int64
	Wall    time.Time
	Outcome string
}

// Since moves the event back to an earlier instant by the node's clock, which a reads. 0, or an instant to come, leaves it as it is.
func (e *Event) Since(a Anchor, at quantity.Instant) {
	if at == 0 {
		return
	}
	if late := a.Now().Sub(at); late > 0 {
		e.Boot, e.Wall = e.Boot-int64(late), e.Wall.Add(-late)
	}
}

// AppendEvent appends one line with one write, so that lines of several supervisors don't mix. Behind a line that a full disk has cut off
// it begins one of its own: what was cut off says nothing to a reader, what follows does.
func AppendEvent(path string, e Event) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	cut, err := endsCut(f)
	if err == nil {
		if line = append(line, '\n'); cut {
			line = append([]byte{'\n'}, line...)
		}
		_, err = f.Write(line)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

// endsCut says whether the last line of an open events file has no end. One that is being written just now may look so: then there will be
// an empty line behind it.
func endsCut(f *os.File) (bool, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false, err
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err != nil {
		return false, err
	}
	return last[0] != '\n', nil
}

// backwards is how much of an events file is read at a time, in bytes.
const backwards = 64 << 10

// LastEvent is the last entry of a subjob in an events file: "start" or "end", or "" for none, also if there is no file. It reads from the
// end, where recent starts are.
func LastEvent(path, token string) (what string, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	quoted := []byte(`"` + token + `"`)
	var rest []byte // of a line that begins further ahead
	for at := info.Size(); at > 0; {
		size := min(at, backwards)
		at -= size
		lines := make([]byte, size, size+int64(len(rest)))
		if _, err := f.ReadAt(lines, at); err != nil {
			return "", err
		}
		lines = append(lines, rest...)
		for {
			i := bytes.LastIndexByte(lines, '\n')
			if i < 0 && at > 0 {
				break
			}
			if what := whatOf(lines[i+1:], quoted, token); what != "" {
				return what, nil
			}
			if i < 0 {
				break
			}
			lines = lines[:i]
		}
		rest = lines
	}
	return "", nil
}

// whatOf is what a line says if it is of a subjob, which has quoted in it then. One that is not whole says nothing.
func whatOf(line, quoted []byte, token string) string {
	var e Event
	if !bytes.Contains(line, quoted) || json.Unmarshal(line, &e) != nil || e.Token != token {
		return ""
	}
	return e.What
}
