package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"time"

	"strings"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/session"
)

// Printed is a view that can be written as a whole, too.
type Printed interface {
	View
	Print(out io.Writer) error
}

// Watch shows a view as it changes: on the whole terminal, or again and again where there is none.
func Watch(ctx context.Context, a *session.Session, every time.Duration, v Printed) error {
	if FullScreen(a) {
		return Live(ctx, a, every, v)
	}
	away := a.Away(func(text string) { fmt.Fprintln(a.Err, "sluice: "+terminal.Line(text)) })
	var last []byte
	for {
		apply, err := v.Fetch(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil && !away.Again(ctx, err):
			return err
		case err != nil:
			continue
		}
		away.Answered()
		apply()
		var b bytes.Buffer
		if err := v.Print(&b); err != nil {
			return err
		}
		if !bytes.Equal(b.Bytes(), last) {
			if _, err := a.Out.Write(b.Bytes()); err != nil {
				return err
			}
			last = b.Bytes()
		}
		if !session.Rest(ctx, every) {
			return nil
		}
	}
}

// Scrolled is the part of a view that is moved through: how many of its rows are above the screen.
type Scrolled struct{ First int }

// Key moves the view.
func (s *Scrolled) Key(k terminal.Key) {
	s.First += map[terminal.Key]int{terminal.KeyUp: -1, terminal.KeyDown: 1, terminal.KeyPageUp: -10, terminal.KeyPageDown: 10}[k]
}

// Titled is a title with the time of day at the right.
func Titled(a *session.Session, title string, columns int) terminal.Row {
	right := a.Now().Format("15:04:05")
	return terminal.Row{Text: fmt.Sprintf("%-*s%s", max(0, columns-len(right)), title, right), Style: terminal.Title}
}

// Tabled is a table as lines, the heads first.
func Tabled[T any](items []T, columns []command.Column[T]) []string {
	var b bytes.Buffer
	_ = command.Grid(&b, true, items, columns) // a buffer takes everything
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}
