package terminal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"unicode/utf8"

	"golang.org/x/term"
)

// Style is a text's emphasis. Where there is no color, the text must carry the meaning too.
type Style uint8

// The styles. Title and Heading need no color.
const (
	Plain Style = iota
	Title
	Heading
	Faint
	Good
	Notable
	Bad
)

// code is the style as a terminal's attributes; empty for none.
func (s Style) code(color bool) string {
	switch {
	case s == Title:
		return "7"
	case s == Heading:
		return "1"
	case !color || s == Plain:
		return ""
	}
	return map[Style]string{Faint: "90", Good: "32", Notable: "33", Bad: "31"}[s]
}

// Row is one line of a screen.
type Row struct {
	Text  string
	Style Style
}

// Key is what somebody typed.
type Key uint8

// The keys that matter; others are ignored.
const (
	KeyQuit Key = iota + 1
	KeyRefresh
	KeyUp
	KeyDown
	KeyPageUp
	KeyPageDown
	KeySuspend
)

// Screen is the whole of a terminal for a while: what was there before is there again after Close.
type Screen struct {
	in, out *os.File
	color   bool
	old     *term.State // nil where in is no terminal
	keys    chan Key
	resized chan os.Signal
}

// OpenScreen takes the terminal out, and reads keys from in if that is one.
func OpenScreen(in io.Reader, out io.Writer, color bool) (*Screen, error) {
	to, ok := out.(*os.File)
	if !ok || !Is(out) {
		return nil, errors.New("no terminal")
	}
	s := &Screen{out: to, color: color, keys: make(chan Key, 16), resized: make(chan os.Signal, 1)}
	if f, ok := in.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		s.in = f
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	signal.Notify(s.resized, syscall.SIGWINCH)
	if s.in != nil {
		go s.read() // ends with the process: a read of a terminal can't be called off
	}
	return s, nil
}

func (s *Screen) enter() (err error) {
	if s.in != nil {
		if s.old, err = term.MakeRaw(int(s.in.Fd())); err != nil {
			return fmt.Errorf("take the terminal: %w", err)
		}
	}
	// The alternate screen; no cursor; lines that are too long end and do not wrap.
	_, err = io.WriteString(s.out, "\x1b[?1049h\x1b[?25l\x1b[?7l")
	return err
}

func (s *Screen) leave() error {
	_, err := io.WriteString(s.out, "\x1b[?7h\x1b[?25h\x1b[?1049l")
	if s.old != nil {
		err = errors.Join(err, term.Restore(int(s.in.Fd()), s.old))
		s.old = nil
	}
	return err
}

// Close gives the terminal back as it was.
func (s *Screen) Close() error {
	signal.Stop(s.resized)
	return s.leave()
}

// Suspend gives the terminal back, stops the process as ^Z does, and takes the terminal again when it goes on.
func (s *Screen) Suspend() error {
	if err := s.leave(); err != nil {
		return err
	}
	return errors.Join(syscall.Kill(syscall.Getpid(), syscall.SIGTSTP), s.enter())
}

// Keys are what is typed.
func (s *Screen) Keys() <-chan Key { return s.keys }

// Resized tells that the size has changed.
func (s *Screen) Resized() <-chan os.Signal { return s.resized }

// Size is how many columns and rows there are.
func (s *Screen) Size() (columns, rows int) { return Size(s.out) }

// Draw shows rows from the top, cut to the size, at once. Their text is made harmless.
func (s *Screen) Draw(rows []Row) error {
	columns, lines := s.Size()
	_, err := s.out.Write(draw(rows, columns, lines, s.color))
	return err
}

func draw(rows []Row, columns, lines int, color bool) []byte {
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, r := range rows[:min(len(rows), lines)] {
		if i > 0 {
			fmt.Fprintf(&b, "\x1b[%d;1H", i+1)
		}
		text := Cut(Line(r.Text), columns)
		if r.Style == Title {
			text = fmt.Sprintf("%-*s", columns, text)
		}
		if code := r.Style.code(color); code != "" {
			text = "\x1b[" + code + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
		if utf8.RuneCountInString(r.Text) < columns && r.Style != Title {
			b.WriteString("\x1b[K")
		}
	}
	if len(rows) < lines {
		fmt.Fprintf(&b, "\x1b[%d;1H\x1b[J", len(rows)+1)
	}
	return b.Bytes()
}

func (s *Screen) read() {
	buf := make([]byte, 64)
	for {
		n, err := s.in.Read(buf)
		for _, k := range keys(buf[:n]) {
			s.keys <- k
		}
		if err != nil {
			return
		}
	}
}

// keys splits input into keys: an arrow is a sequence that arrives whole.
func keys(p []byte) (out []Key) {
	for len(p) > 0 {
		known := false
		for sequence, k := range map[string]Key{
			"\x1b[A": KeyUp, "\x1bOA": KeyUp, "k": KeyUp, "\x1b[B": KeyDown, "\x1bOB": KeyDown, "j": KeyDown, "\x1b[5~": KeyPageUp,
			"\x1b[6~": KeyPageDown,
			"q":       KeyQuit, "Q": KeyQuit, "\x03": KeyQuit, "\x1a": KeySuspend, " ": KeyRefresh, "r": KeyRefresh,
		} {
			if bytes.HasPrefix(p, []byte(sequence)) {
				out, p, known = append(out, k), p[len(sequence):], true
				break
			}
		}
		if !known {
			p = p[1:]
		}
	}
	return out
}
