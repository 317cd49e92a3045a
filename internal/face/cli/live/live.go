// Package live shows views: on the whole terminal for as long as somebody looks, or printed again whenever they have changed.
package live

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/session"
)

// View is shown on a whole terminal for as long as somebody looks.
type View interface {
	// Fetch asks the daemon; apply takes the answer over, and is called where frame and key are.
	Fetch(ctx context.Context) (apply func(), err error)
	// Frame is what stands on a screen of this size. notice, if not empty, belongs where it is seen.
	Frame(columns, rows int, notice string) []terminal.Row
	// Key is a key that was typed, of those that move.
	Key(k terminal.Key)
}

// FullScreen reports whether a view can be shown: otherwise what it shows is printed.
func FullScreen(a *session.Session) bool {
	return terminal.Is(a.RawOut) && a.Getenv("TERM") != "dumb" && (a.Format == "table" || a.Format == "wide")
}

// Live shows a view until the user quits. An outage of the daemon is shown, and the view stays.
func Live(ctx context.Context, a *session.Session, every time.Duration, v View) (err error) {
	apply, err := v.Fetch(ctx) // before the screen is taken: an error here is one line
	if err != nil {
		return err
	}
	apply()
	s, err := terminal.OpenScreen(a.In, a.RawOut, a.Colored())
	if err != nil {
		return err
	}
	defer func() {
		if left := s.Close(); err == nil {
			err = left
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		apply func()
		err   error
	}
	answers := make(chan answer, 1)
	asking, notice := false, ""
	ask := func() {
		if asking {
			return
		}
		asking = true
		go func() {
			apply, failed := v.Fetch(ctx)
			answers <- answer{apply, failed}
		}()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		columns, rows := s.Size()
		if err := s.Draw(v.Frame(columns, rows, notice)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			ask()
		case <-s.Resized():
		case got := <-answers:
			asking = false
			switch {
			case got.err == nil:
				notice = ""
				got.apply()
			case errkind.Of(got.err) == errkind.Unavailable:
				notice = "the daemon is away: what stands here is old"
			case ctx.Err() == nil:
				return got.err
			}
		case k := <-s.Keys():
			switch k {
			case terminal.KeyQuit:
				return nil
			case terminal.KeyRefresh:
				ask()
			case terminal.KeySuspend:
				if err := s.Suspend(); err != nil {
					return err
				}
			default:
				v.Key(k)
			}
		}
	}
}

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
