package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// listened is an owner in virtual time, whose operator writes a beat every tenth of a minute while it lives.
type listened struct {
	*owner
	began time.Time

	mu           sync.Mutex
	beat         int
	dead, hidden bool
}

func listen(t *testing.T) *listened {
	l := &listened{began: time.Now()}
	l.owner = newOwner(time.Minute, l.readNow, func() time.Duration { return time.Since(l.began) })
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() { l.listen(ctx) })
	all.Go(func() { l.operate(ctx) })
	t.Cleanup(func() { stop(); all.Wait() })
	return l
}

// operate writes beats, as the operator does: each tenth of a minute, or each second while the store is away.
func (l *listened) operate(ctx context.Context) {
	for ctx.Err() == nil {
		l.mu.Lock()
		pause := 10 * time.Second
		if l.hidden {
			pause = time.Second
		} else if !l.dead {
			l.beat++
		}
		l.mu.Unlock()
		rest(ctx, pause)
	}
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (l *listened) readNow(ctx context.Context) (string, error) {
	rest(ctx, 200*time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hidden {
		return "", errkind.Errorf(errkind.Unavailable, "it is away")
	}
	return fmt.Sprint("beat ", l.beat), nil
}

func (l *listened) set(what *bool, to bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*what = to
}

// lasts is how long the subjob goes on, at most most.
func (l *listened) lasts(most time.Duration) (d time.Duration) {
	for ; d < most && l.silent() == 0; d += tick {
		time.Sleep(tick)
	}
	return d
}

// TestAnOperatorThatLives disturbs nobody, also where the store is away for nearly as long as it may be silent, or the Pod was suspended.
func TestAnOperatorThatLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := listen(t)
		if got := l.lasts(time.Hour); got < time.Hour {
			t.Fatalf("it yields after %v", got)
		}
		for away := 10 * time.Second; away < time.Minute; away += 7 * time.Second {
			l.set(&l.hidden, true)
			if got := l.lasts(away); got < away {
				t.Fatalf("the store is away for %v, and it yields after %v", away, got)
			}
			l.set(&l.hidden, false)
			if got := l.lasts(2 * time.Minute); got < 2*time.Minute {
				t.Fatalf("the store was away for %v, and it yields %v later", away, got)
			}
		}
		l.set(&l.hidden, true)
		time.Sleep(time.Hour) // nobody looks: it was suspended, and so was its network
		if got := l.lasts(50 * time.Second); got < 50*time.Second {
			t.Fatalf("it was suspended, and yields after %v", got)
		}
	})
}

// TestAnOperatorThatIsNotHeard, because it is dead, or since the Pod began, or nobody can tell for its store is away, is given up in time
// and for good.
func TestAnOperatorThatIsNotHeard(t *testing.T) {
	for name, c := range map[string]struct{ dead, hidden, atOnce bool }{
		"dead": {dead: true}, "dead from the start": {dead: true, atOnce: true}, "cut off": {hidden: true},
		"cut off from the start": {hidden: true, atOnce: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := listen(t)
				if !c.atOnce {
					if got := l.lasts(10 * time.Minute); got < 10*time.Minute {
						t.Fatalf("it yields after %v", got)
					}
				}
				l.set(&l.dead, c.dead)
				l.set(&l.hidden, c.hidden)
				if got := l.lasts(time.Hour); got < 45*time.Second || got > 75*time.Second {
					t.Errorf("it yields after %v", got)
				}
				l.set(&l.dead, false)
				l.set(&l.hidden, false)
				time.Sleep(time.Minute)
				if l.silent() == 0 {
					t.Error("it is told to yield, and then to go on")
				}
			})
		})
	}
}

// TestASubjobWithoutAnOperator is told when it ends, is asked to end its grace before, and an order that comes still can only be earlier.
func TestASubjobWithoutAnOperator(t *testing.T) {
	p := made(t)
	if err := os.MkdirAll(string(p.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	now := p.lease.Anchor.Now()
	p.run.End, p.run.Grace, p.run.Notice = now.Add(time.Hour), 5*time.Second, 30*time.Second
	p.order.End = p.run.End
	var elapsed time.Duration
	p.owner = newOwner(time.Minute, nil, func() time.Duration { return elapsed })
	control := func() (c shim.Control) {
		t.Helper()
		p.heed()
		c, err := p.dir.ReadControl()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return c
	}
	for elapsed < time.Minute {
		if c := control(); c != (shim.Control{}) || p.stopped() {
			t.Fatalf("after %v it is told %+v", elapsed, c)
		}
		elapsed += time.Second
	}
	c := control()
	if left := c.End.Sub(now); !c.Cut || c.Stop || left < 29*time.Second || left > 40*time.Second ||
		c.Cause != "nothing was heard of the operator for 1m0s" {
		t.Errorf("told %+v, %v from now", c, left)
	}
	if !p.stopped() {
		t.Error("before it begins it would begin still")
	}
	if err := os.WriteFile(p.orders, []byte(`{"End":9223372036854775807}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if again := control(); again.End != c.End {
		t.Errorf("an order moves its end from %v to %v", c.End, again.End)
	}
	p.cut = now.Add(p.run.Grace)
	if c = control(); !c.Stop || c.End != p.cut {
		t.Errorf("its grace before the end: %+v", c)
	}
	if p.run.End = now.Add(time.Second); control().End != p.run.End {
		t.Error("it is given time beyond its lease")
	}
}

// TestABeatIsRead by its URL, which no message has.
func TestABeatIsRead(t *testing.T) {
	status, body := http.StatusOK, "beat"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	read := func() (string, error) { return readBeat(t.Context(), http.DefaultClient, server.URL+"/key?secret") }
	if beat, err := read(); err != nil || beat != "beat" {
		t.Errorf("%q, %v", beat, err)
	}
	body = strings.Repeat("x", 1<<20)
	if beat, err := read(); err != nil || len(beat) != mostBeat {
		t.Errorf("%d bytes, %v", len(beat), err)
	}
	if status = http.StatusNotFound; true {
		if beat, err := read(); err != nil || beat != "" {
			t.Errorf("before the first: %q, %v", beat, err)
		}
	}
	for _, status = range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
		if _, err := read(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%d: %v", status, err)
		}
	}
	server.Close()
	if _, err := read(); errkind.Of(err) != errkind.Unavailable || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestAPodOfBefore has no beat, and goes on to its end.
func TestAPodOfBefore(t *testing.T) {
	p := made(t)
	if p.abandoned() || p.stopped() || p.unheard() == "" {
		t.Error("it yields")
	}
	if s := p.never(job.Stopped, "x"); s.Result.Detail != "x" {
		t.Errorf("%+v", s)
	}
}
