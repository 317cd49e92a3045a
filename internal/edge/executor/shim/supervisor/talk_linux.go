package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// A program that stays is given its subjobs as lines on its standard input, and answers each with a line on its standard output. All else
// that it says there is a log, as what it says on stderr is.

const (
	// longestLine is how long a line may be that is more than a log line.
	longestLine = 64 << 10
	// mostKept is how much is kept, in bytes, of what it says while it has no subjob: that is in the logs of the next.
	mostKept = 16 << 10
	// longestError is how much is kept of what it says of its failure.
	longestError = 4 << 10
)

// talk is the conversation with a program that stays. Invariant: what it says is written to the logs of the subjob that it had then.
type talk struct {
	// in is its standard input, negative once that is closed.
	in int
	// news can be read from when there is an answer to take.
	news int
	// readers read what it says.
	readers sync.WaitGroup

	mu sync.Mutex
	// fds are where it says it, negative once they have ended; files are the same.
	fds   [2]int
	files [2]*os.File
	// sink are the logs of its subjob; nil: it has none, and kept is what it says meanwhile.
	sink *sink
	kept [2][]byte
	// line is what there is of a line on stdout, cut: its begin was too long and is written.
	line []byte
	cut  bool
	// subjob is the one that it has, empty if none; answer what it says of it, which may be read without mu: a log may wait for the disk.
	subjob string
	answer atomic.Pointer[answer]
	// ready is when it has first said that its start is over; zero: it has not.
	ready time.Time
}

// answer is how a program says that a subjob is over.
type answer struct {
	// code as of an exit, and what was wrong.
	code int32
	text string
}

// sink are the logs of one subjob.
type sink struct {
	logs    *logs
	files   [2]logFile
	dropped [2]int64
}

// newTalk makes a conversation, and the end of its stdin that is the program's.
func newTalk() (t *talk, stdin *os.File, err error) {
	t = &talk{in: -1, news: -1, fds: [2]int{-1, -1}}
	var p [2]int
	if err = unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	t.in, stdin = p[1], os.NewFile(uintptr(p[0]), "")
	if err = unix.SetNonblock(t.in, true); err == nil { // one that does not read must not stop its supervisor
		t.news, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	if err != nil {
		t.close()
		_ = stdin.Close()
		return nil, nil, err
	}
	return t, stdin, nil
}

// listen reads what the program says, in the background: the disk may not keep up, and deadlines do not wait for it.
func (t *talk) listen(which, fd int) {
	_ = unix.SetNonblock(fd, true)
	f := os.NewFile(uintptr(fd), "")
	t.mu.Lock()
	t.fds[which], t.files[which] = fd, f
	t.mu.Unlock()
	t.readers.Go(func() {
		defer func() { _ = f.Close() }()
		raw, err := f.SyscallConn()
		buf := make([]byte, 32<<10)
		for over := err != nil; !over; {
			if raw.Read(func(uintptr) bool {
				t.mu.Lock()
				defer t.mu.Unlock()
				n, again := t.take(which, buf)
				over = n == 0 && !again
				return n > 0 || over
			}) != nil {
				break // its time is over
			}
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.fds[which] = -1
		if which == 0 {
			t.put(0, t.line)
			t.line = nil
		}
	})
}

// take reads what can be read now into buf, and hears it; again: there may be more later. t.mu is held.
func (t *talk) take(which int, buf []byte) (n int, again bool) {
	n, err := unix.Read(t.fds[which], buf)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Read(t.fds[which], buf)
	}
	switch {
	case err != nil:
		return 0, errors.Is(err, unix.EAGAIN)
	case which == 1:
		t.put(1, buf[:n])
	default:
		t.hear(buf[:n])
	}
	return n, n > 0
}

// hear hears what the program says on stdout. t.mu is held.
func (t *talk) hear(p []byte) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n') + 1
		if end == 0 {
			end = len(p)
		}
		t.line = append(t.line, p[:end]...)
		p = p[end:]
		whole := t.line[len(t.line)-1] == '\n'
		if !whole && len(t.line) < longestLine {
			return
		}
		if t.cut || !whole || !t.said(t.line) {
			t.put(0, t.line)
		}
		t.line, t.cut = t.line[:0], !whole
	}
}

// said hears a whole line; false: it is a log line. t.mu is held.
func (t *talk) said(line []byte) bool {
	if line[0] != '{' {
		return false
	}
	var w struct {
		Ready, Subjob, Exit, Error json.RawMessage
	}
	if json.Unmarshal(line, &w) != nil {
		return false
	}
	if w.Subjob == nil && w.Exit == nil && string(w.Ready) == "true" {
		if t.ready.IsZero() {
			t.ready = time.Now()
		}
		return true
	}
	if w.Subjob == nil || w.Exit == nil {
		return false
	}
	var a answer
	var of string
	switch {
	case json.Unmarshal(w.Subjob, &of) != nil || of != t.subjob || of == "":
		a = answer{1, fmt.Sprintf("it answered for subjob %.100s, and had been given %q", w.Subjob, t.subjob)}
	case json.Unmarshal(w.Exit, &a.code) != nil || a.code < 0 || a.code > 255:
		a = answer{1, fmt.Sprintf("it answered with exit %.100s: want a whole number from 0 to 255", w.Exit)}
	default:
		if a.text = string(w.Error); json.Unmarshal(w.Error, &of) == nil {
			a.text = of
		}
		for len(a.text) > longestError || !utf8.ValidString(a.text) {
			a.text = a.text[:min(len(a.text)-1, longestError)]
		}
	}
	t.answer.CompareAndSwap(nil, &a)
	_, _ = unix.Write(t.news, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	return true
}

// put writes to a log. What follows the answer on stdout is not of the same subjob any more. t.mu is held.
func (t *talk) put(which int, p []byte) {
	if s := t.sink; s != nil && (which == 1 || t.answer.Load() == nil) {
		s.dropped[which] += spend(&s.files[which], p, &s.logs.budget)
		return
	}
	k := &t.kept[which]
	*k = append(*k, p[:min(len(p), mostKept-len(*k))]...)
}

// begin gives the program's next words to the logs of a subjob.
func (t *talk) begin(l *logs, subjob string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sink = &sink{logs: l}
	for i := range t.sink.files {
		t.sink.files[i] = logFile{path: l.paths[i], flags: os.O_TRUNC, mode: 0o600, noRoom: &l.noRoom, quota: &l.quota}
	}
	t.subjob = subjob
	t.answer.Store(nil)
	for i := range t.kept {
		if len(t.kept[i]) > 0 {
			t.put(i, t.kept[i])
		}
		t.kept[i] = nil
	}
}

// tell writes a line to the program's stdin.
func (t *talk) tell(line []byte) error {
	if t.in < 0 {
		return errors.New("its standard input is closed")
	}
	n, err := unix.Write(t.in, line)
	if err == nil && n < len(line) {
		err = unix.EAGAIN
	}
	if err != nil {
		return fmt.Errorf("it does not read its standard input: %w", err)
	}
	return nil
}

// heard returns the program's answer, the zero word if there is none.
func (t *talk) heard() (w word, text string) {
	var n [8]byte
	_, _ = unix.Read(t.news, n[:])
	a := t.answer.Load()
	if a == nil {
		return w, ""
	}
	return word{Kind: answered, Code: a.code}, a.text
}

// catchUp hears what the program has said until now, unless a log waits for the disk for longer than patience.
func (t *talk) catchUp(patience time.Duration) {
	for until := time.Now().Add(patience); !t.mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			return
		}
	}
	defer t.mu.Unlock()
	buf := make([]byte, 32<<10)
	for which, fd := range t.fds {
		if fd < 0 {
			continue
		}
		left, err := unix.IoctlGetInt(fd, unix.TIOCINQ) // one that goes on saying something would never end
		for n := 1; err == nil && left > 0 && n > 0; left -= n {
			n, _ = t.take(which, buf[:min(left, len(buf))])
		}
	}
}

// leave ends what belongs to the subjob that it had.
func (t *talk) leave() {
	t.catchUp(patience)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut()
}

// shut closes the logs of a subjob. t.mu is held.
func (t *talk) shut() {
	s := t.sink
	if s == nil {
		return
	}
	for i := range s.files {
		s.logs.note(&s.files[i], s.dropped[i])
	}
	t.sink, t.subjob = nil, ""
	t.answer.Store(nil)
}

// endInput tells the program that no more comes: its standard input ends.
func (t *talk) endInput() {
	if t.in >= 0 {
		_ = unix.Close(t.in)
		t.in = -1
	}
}

// close ends the conversation. The writers are gone.
func (t *talk) close() {
	t.endInput()
	t.mu.Lock()
	for i, fd := range t.fds {
		if fd >= 0 {
			_ = t.files[i].SetReadDeadline(time.Now().Add(patience)) // somebody outside may have been handed the other end
		}
	}
	t.mu.Unlock()
	t.readers.Wait()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shut()
	if t.news >= 0 {
		_ = unix.Close(t.news)
		t.news = -1
	}
}
