package cli

import (
	"context"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/terminal"
)

// view is what is shown on a whole terminal for as long as somebody looks.
type view interface {
	// fetch asks the daemon; apply takes the answer over, and is called where frame and key are.
	fetch(ctx context.Context) (apply func(), err error)
	// frame is what stands on a screen of this size. notice, if not empty, belongs where it is seen.
	frame(columns, rows int, notice string) []terminal.Row
	// key is a key that was typed, of those that move.
	key(k terminal.Key)
}

// fullScreen says whether a view can be shown: otherwise what it shows is printed.
func (a *app) fullScreen() bool {
	return terminal.Is(a.RawOut) && a.Getenv("TERM") != "dumb" && (a.Format == "table" || a.Format == "wide")
}

// live shows a view until somebody quits. A daemon that goes away is said to be, and the view stays.
func (a *app) live(ctx context.Context, every time.Duration, v view) (err error) {
	apply, err := v.fetch(ctx) // before the screen is taken: an error here is one line
	if err != nil {
		return err
	}
	apply()
	s, err := terminal.OpenScreen(a.In, a.RawOut, a.colored())
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
			apply, failed := v.fetch(ctx)
			answers <- answer{apply, failed}
		}()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		columns, rows := s.Size()
		if err := s.Draw(v.frame(columns, rows, notice)); err != nil {
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
				v.key(k)
			}
		}
	}
}
