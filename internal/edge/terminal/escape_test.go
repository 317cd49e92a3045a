package terminal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestWriter: every row is written whole, byte by byte, and split at each place; what comes out is the same.
func TestWriter(t *testing.T) {
	for in, want := range map[string]string{
		"plain text\n\twith a tab\n":                "plain text\n\twith a tab\n",
		"grüße, 世界 🎉\n":                             "grüße, 世界 🎉\n",
		"\x1b[2J\x1b]0;title\x07\n":                 "^[[2J^[]0;title^G\n",
		"csi \u009b2J osc \u009d":                   `csi \u009b2J osc \u009d`,
		"eight bit \x9b2J \xff":                     `eight bit \x9b2J \xff`,
		"dos\r\nunix\nover\rwritten\r":              "dos\r\nunix\nover^Mwritten^M",
		"\r\r\n\r":                                  "^M\r\n^M",
		"back\b\bspace\x7f\x00":                     "back^H^Hspace^?^@",
		"access \u202euser\u202c \u2066x\u2069":     `access \u202euser\u202c \u2066x\u2069`,
		"line\u2028separator \U000e0041":            `line\u2028separator \U000e0041`,
		"cut \xe4\xb8":                              `cut \xe4\xb8`,
		"joined 👩\u200d🚀 and שלום stay as they are": "joined 👩\u200d🚀 and שלום stay as they are",
	} {
		for cut := range len(in) + 1 {
			var b bytes.Buffer
			w := NewWriter(&b)
			_, err1 := w.Write([]byte(in[:cut]))
			_, err2 := w.Write([]byte(in[cut:]))
			if err := errors.Join(err1, err2, w.Flush(), w.Flush()); err != nil || b.String() != want {
				t.Errorf("%q cut at %d: %q, %v; want %q", in, cut, b.String(), err, want)
			}
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{"exit 3": "exit 3", "a\r\nb\tc": "a b c", "\x1b[31mred": "^[[31mred", "é\u0085": `é\u0085`,
		"x\r": "x^M"} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("gone") }

func TestWriterSaysWhatFailed(t *testing.T) {
	w := NewWriter(broken{})
	if _, err := w.Write([]byte("a")); err == nil {
		t.Error("no error of the writer below")
	}
	if _, err := w.Write([]byte("\r")); err != nil {
		t.Error(err)
	}
	if w.Flush() == nil {
		t.Error("no error at the end")
	}
}

// FuzzWriter: however the bytes are cut, what reaches the terminal is the same UTF-8 text without anything that it obeys,
// and harmless text is as it was.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x1b[2Jboo\r\n\u009bm\x7f"), uint(3))
	f.Add([]byte("\xe2\x80\xae\xf0\x9f\x8e\x89"), uint(5))
	f.Fuzz(func(t *testing.T, in []byte, step uint) {
		var b bytes.Buffer
		w := NewWriter(&b)
		n := int(step%7) + 1
		for p := in; len(p) > 0; p = p[min(n, len(p)):] {
			if _, err := w.Write(p[:min(n, len(p))]); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		whole, _ := escape(nil, in, true)
		out := b.String()
		if out != string(whole) {
			t.Fatalf("cut into %d: %q; whole: %q", n, out, whole)
		}
		if !utf8.ValidString(out) {
			t.Fatalf("%q is not UTF-8", out)
		}
		for i, r := range out {
			if r == '\n' || r == '\t' || r == '\r' && strings.HasPrefix(out[i:], "\r\n") {
				continue
			}
			if r < ' ' || r == 0x7f || misleading(r) {
				t.Fatalf("%q reaches the terminal in %q", r, out)
			}
		}
		again, _ := escape(nil, whole, true)
		if string(again) != out {
			t.Fatalf("%q is not harmless: it became %q", out, again)
		}
		if l := Line(string(in)); strings.ContainsAny(l, "\n\r\t\x1b") {
			t.Fatalf("Line gives %q", l)
		}
	})
}
