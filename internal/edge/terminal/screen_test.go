package terminal

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

func TestDraw(t *testing.T) {
	rows := []Row{{"top", Title}, {"bad \x1b[2J", Bad}, {strings.Repeat("x", 30), Plain}, {"", Plain}}
	got := string(draw(rows, 10, 5, true))
	want := "\x1b[H\x1b[7mtop       \x1b[0m\x1b[2;1H\x1b[31mbad ^[[2J\x1b[0m\x1b[K\x1b[3;1Hxxxxxxxxx…\x1b[4;1H\x1b[K\x1b[5;1H\x1b[J"
	if got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
	if got := string(draw(rows, 10, 2, false)); got != "\x1b[H\x1b[7mtop       \x1b[0m\x1b[2;1Hbad ^[[2J\x1b[K" {
		t.Errorf("without color, two lines: %q", got)
	}
}

func TestKeys(t *testing.T) {
	got := keys([]byte("xq\x1b[A\x1b[Bj\x1b[5~\x03\x1b"))
	if want := []Key{KeyQuit, KeyUp, KeyDown, KeyDown, KeyPageUp, KeyQuit}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestNoScreenWithoutATerminal(t *testing.T) {
	if _, err := OpenScreen(strings.NewReader(""), &bytes.Buffer{}, true); err == nil {
		t.Error("a buffer is taken for a terminal")
	}
}
