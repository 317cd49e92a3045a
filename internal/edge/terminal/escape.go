package terminal

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Writer makes what is written to it harmless for a terminal: control characters but newline and tab, bytes that are no
// UTF-8, and characters that turn the order of text around are shown and not obeyed: ESC as ^[, CSI (U+009B) as \u009b, the
// byte 0xff as \xff. A carriage return passes before a newline only; alone it would write over what stands in its line.
//
// A sequence that is cut between two writes is judged when its rest is there; Flush ends that.
type Writer struct {
	to   io.Writer
	rest []byte // of the text so far: the start of a sequence that may go on
	buf  []byte
}

// NewWriter returns a Writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write is part of io.Writer. An error is that of the writer below.
func (w *Writer) Write(p []byte) (int, error) {
	in := p
	if len(w.rest) > 0 {
		in = append(w.rest, p...)
	}
	var rest []byte
	w.buf, rest = escape(w.buf[:0], in, false)
	w.rest = append([]byte(nil), rest...)
	if len(w.buf) > 0 {
		if _, err := w.to.Write(w.buf); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Flush writes what was kept because it might have gone on.
func (w *Writer) Flush() error {
	out, _ := escape(nil, w.rest, true)
	w.rest = nil
	if len(out) == 0 {
		return nil
	}
	_, err := w.to.Write(out)
	return err
}

// Line makes one harmless line of a text: what a Writer would show, with blanks for newlines and tabs.
func Line(s string) string {
	if plain(s) {
		return s
	}
	out, _ := escape(nil, []byte(strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ").Replace(s)), true)
	return string(out)
}

// plain says whether s is ASCII without control characters.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// escape appends p to dst as a terminal may see it. rest is the end of p that can be judged only with what follows it; at
// the end there is none.
func escape(dst, p []byte, end bool) (out, rest []byte) {
	for len(p) > 0 {
		n := 0
		for n < len(p) && (p[n] >= ' ' && p[n] < 0x7f || p[n] == '\n' || p[n] == '\t') {
			n++
		}
		dst, p = append(dst, p[:n]...), p[n:]
		switch {
		case len(p) == 0:
		case p[0] == '\r' && len(p) == 1 && !end:
			return dst, p
		case p[0] == '\r' && len(p) > 1 && p[1] == '\n':
			dst, p = append(dst, "\r\n"...), p[2:]
		case p[0] < utf8.RuneSelf: // a control character, in the way of cat -v
			dst, p = append(dst, '^', p[0]^0x40), p[1:]
		case !end && !utf8.FullRune(p):
			return dst, p
		default:
			r, size := utf8.DecodeRune(p)
			switch {
			case r == utf8.RuneError && size == 1:
				dst = fmt.Appendf(dst, `\x%02x`, p[0])
			case r > 0xffff && misleading(r):
				dst = fmt.Appendf(dst, `\U%08x`, r)
			case misleading(r):
				dst = fmt.Appendf(dst, `\u%04x`, r)
			default:
				dst = append(dst, p[:size]...)
			}
			p = p[size:]
		}
	}
	return dst, nil
}

// misleading characters beyond ASCII: a terminal obeys them (C1 controls), or a reader is shown another text than a program
// reads (overrides and isolates of direction, separators of lines, invisible tags).
func misleading(r rune) bool {
	return r >= 0x80 && r < 0xa0 || r == 0x2028 || r == 0x2029 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 ||
		r >= 0xe0000 && r <= 0xe007f
}
