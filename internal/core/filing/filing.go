// Package filing is how an actor lets jobs that are over go to the archive: when, and how many at a time. It must not know what
// is filed of a job, nor decide that it is over.
package filing

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/quantity"
)

// Config says how long jobs that are over stay hot: in the actor's own state.
type Config struct {
	// Keep is how long after its end a job stays. Default 1 min.
	Keep time.Duration
	// Most is how many such jobs stay; the one that ended first goes first. Default 1,024.
	Most int
}

// Validate lists every problem of c.
func (c Config) Validate() error {
	if c.Keep < 0 || c.Most < 0 {
		return errors.New("archive: " + fmt.Sprintf("keep %v and most %d must not be negative", c.Keep, c.Most))
	}
	return nil
}

// WithDefaults fills in what is not set.
func (c Config) WithDefaults() Config {
	return Config{Keep: cmp.Or(c.Keep, time.Minute), Most: cmp.Or(c.Most, 1024)}
}

// mostFiled is how many jobs are filed and not confirmed in one interval.
const mostFiled = 256

// Tray holds the jobs that are over and may leave. Soft: a restarted actor fills it again.
type Tray[T any] struct {
	cfg  Config
	hot  alarm.Heap[*Sheet[T]]
	away outbox.Box[*Sheet[T]]
}

// Sheet is one job in a tray; nil where it is in none.
type Sheet[T any] struct {
	of   T
	slot int
	item *outbox.Item[*Sheet[T]]
}

// New makes an empty tray. What nobody confirms is filed again after retry, which doubles.
func New[T any](cfg Config, retry time.Duration) *Tray[T] {
	return &Tray[T]{cfg: cfg.WithDefaults(), away: outbox.New[*Sheet[T]](retry, mostFiled)}
}

// Put adds a job that ended at ended. It is due for the archive cfg.Keep later, or sooner if the tray has more than cfg.Most. was is the
// job's sheet if it is in the tray already (nothing changes then), else nil. A nil tray holds nothing.
func (t *Tray[T]) Put(was *Sheet[T], of T, ended quantity.Instant) *Sheet[T] {
	if t == nil || was != nil {
		return was
	}
	s := &Sheet[T]{of: of}
	t.hot.Set(&s.slot, s, ended.Add(t.cfg.Keep))
	return s
}

// Drop takes a job out: it is archived, or stays. It returns nil, for the place where the sheet was kept.
func (t *Tray[T]) Drop(s *Sheet[T]) *Sheet[T] {
	if t == nil || s == nil {
		return nil
	}
	t.hot.Set(&s.slot, s, quantity.Never)
	s.item = t.away.Confirm(s.item)
	return nil
}

// Due is what is to be filed now, in no order.
func (t *Tray[T]) Due(now quantity.Instant) (all []T) {
	if t == nil {
		return nil
	}
	for t.hot.Len() > 0 && (t.hot.Next() <= now || t.hot.Len() > t.cfg.Most) {
		s, _ := t.hot.Due(t.hot.Next())
		s.item = t.away.Say(nil, s)
	}
	for {
		s, ok := t.away.Next(now)
		if !ok {
			return all
		}
		all = append(all, s.of)
	}
}

// Wake is when to ask for Due again, Never if nothing is left to leave.
func (t *Tray[T]) Wake() quantity.Instant {
	if t == nil {
		return quantity.Never
	}
	return min(t.hot.Next(), t.away.Wake())
}

// Len is how many jobs lie here.
func (t *Tray[T]) Len() int {
	if t == nil {
		return 0
	}
	return t.hot.Len() + t.away.Len()
}
