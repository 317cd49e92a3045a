package live

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sluice.dev/sluice/internal/lab/history/record"
)

// Watch looks again and again.
type Watch struct {
	Source Source
	Dir    *Dir
	// Every is from look to look.
	Every time.Duration
	// Tell says something to people, once: what went wrong, and that it is over. Looked is called behind each look that was kept.
	Tell   func(text string)
	Looked func()
	// Answer is called whenever one more whole day is recorded, with what is recorded by then, never twice at once. Looks go on meanwhile.
	Answer func(ctx context.Context, files []File)
}

// Run looks until the context ends.
func (w *Watch) Run(ctx context.Context) {
	var answers sync.WaitGroup
	defer answers.Wait()
	free := make(chan struct{}, 1)
	free <- struct{}{}
	answered, trouble := 0, ""
	var since time.Time
	for due := time.Now(); ; {
		now := time.Now()
		err := w.look(ctx, now)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && err.Error() != trouble:
			if trouble == "" {
				since = now
			}
			trouble = err.Error()
			w.Tell(trouble + "; trying again, and this time counts as not observed")
		case err == nil && trouble != "":
			trouble = ""
			w.Tell(fmt.Sprintf("looks are answered again, after %s", now.Sub(since).Round(time.Second)))
		}
		if days := w.Dir.Days(); err == nil && days > answered {
			select {
			case <-free:
				files, err := w.Dir.Files()
				if err != nil {
					w.Tell(err.Error())
				}
				answered = days
				answers.Go(func() {
					w.Answer(ctx, files)
					free <- struct{}{}
				})
			default: // the one before is not ready
			}
		}
		if due = due.Add(w.Every); due.Before(time.Now()) { // the look took longer: the scheduler has a rest too
			due = time.Now().Add(w.Every)
		}
		timer := time.NewTimer(time.Until(due))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// leastPatience is how long a look may take at least.
const leastPatience = 30 * time.Second

// look is one look.
func (w *Watch) look(ctx context.Context, now time.Time) error {
	ask, cancel := context.WithTimeout(ctx, max(w.Every, leastPatience))
	defer cancel()
	if now.Before(w.Dir.last) {
		return fmt.Errorf("the clock stands before the last look of %s: set it right", w.Dir.last.UTC().Format(time.RFC3339))
	}
	anew := w.Dir.Turns(now)
	lines, keep, err := w.Source.Look(ask, now, anew)
	if err != nil {
		return err
	}
	if anew {
		begin := record.Line{Begin: w.Source.Name(), Every: int64(w.Every / time.Second)}
		if !w.Dir.last.IsZero() {
			begin.After = w.Dir.last.Unix()
		}
		lines = append([]record.Line{begin}, lines...)
	}
	if err := w.Dir.Append(now, lines); err != nil {
		return err
	}
	keep()
	w.Looked()
	return nil
}
