package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// heard is what a follower was told.
type heard struct {
	mu  sync.Mutex
	at  map[job.Token]*LogPosition
	all map[uint64]string // by the number of the subjob
	// since is what to come back with.
	LogFollow
	fail error
}

func (x *heard) tell(p LogPiece) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fail != nil {
		return x.fail
	}
	if x.at == nil {
		x.at, x.all = map[job.Token]*LogPosition{}, map[uint64]string{}
	}
	if p.Token.Zero() {
		x.Since = p.Since
		return nil
	}
	if x.at[p.Token] == nil {
		x.at[p.Token] = &LogPosition{Token: p.Token}
	}
	x.at[p.Token].Out += int64(len(p.Data))
	x.at[p.Token].Over = p.Over
	x.all[p.Token.Seq] += string(p.Data)
	if p.Over {
		x.all[p.Token.Seq] += "."
	}
	return nil
}

// back is where it goes on.
func (x *heard) back() LogFollow {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Seen = nil
	for _, p := range x.at {
		x.Seen = append(x.Seen, *p)
	}
	return x.LogFollow
}

func (x *heard) text() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return strings.ReplaceAll(fmt.Sprint(x.all), "\n", "/")
}

func (s *shelf) write(t *testing.T, seq uint64, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(s.dir, job.Token{Epoch: 1, Seq: seq}.String()), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Error(err)
	}
}

// moved tells those who wait that a job has changed, as a fact does.
func moved(h *Host) { h.daemon.watches.Wake([]protocol.Fact{{Job: "a"}}) }

// TestFollowAJob: what ran before is left out, what runs is told from its start, what comes later too, until the job is
// over. A follower that is cut off at any piece, and comes back, has each line once.
func TestFollowAJob(t *testing.T) {
	for _, cut := range []time.Duration{0, 100 * time.Millisecond, 700 * time.Millisecond, 1500 * time.Millisecond,
		2200 * time.Millisecond} {
		t.Run(cut.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, s, z := filesRig(t)
				s.write(t, 1, "before\n")
				s.write(t, 2, "one\ntw")
				h, stop := r.start(t)
				now := int(time.Now().Unix())
				go func() {
					time.Sleep(time.Second)
					s.write(t, 2, "o\n")
					z.set(false, sub(1, 5, 6), sub(2, 9, now+1), sub(3, now+1, 0), sub(4, now+1, 0)) // 4 has no files yet
					moved(h)
					time.Sleep(time.Second)
					s.write(t, 3, "three\n")
					s.write(t, 4, "four\n")
					time.Sleep(time.Second)
					// 5 never began
					z.set(true, sub(1, 5, 6), sub(2, 9, now+1), sub(3, now+1, now+3), sub(4, now+1, now+3), sub(5, now+3, now+3))
					moved(h)
				}()
				var x heard
				if cut > 0 {
					ctx, cancel := context.WithTimeout(context.Background(), cut)
					if err := h.Follow(ctx, "a", LogFollow{}, x.tell); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a follower that was cut off: %v", err)
					}
					cancel()
					time.Sleep(300 * time.Millisecond)
				}
				if err := h.Follow(context.Background(), "a", x.back(), x.tell); err != nil {
					t.Error(err)
				}
				if got, want := x.text(), "map[2:one/two/. 3:three/. 4:four/. 5:.]"; got != want {
					t.Errorf("%s, want %s", got, want)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestFollowWhereNothingRuns begins with the latest subjob; of a job that is over it is all.
func TestFollowWhereNothingRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, z := filesRig(t)
		s.write(t, 1, "first\n")
		s.write(t, 2, "last\n")
		z.set(true, sub(1, 5, 6), sub(2, 9, 10))
		h, stop := r.start(t)
		var x, one, none heard
		if err := h.Follow(context.Background(), "a", LogFollow{}, x.tell); err != nil || x.text() != "map[2:last/.]" {
			t.Errorf("%s, %v", x.text(), err)
		}
		if err := h.Follow(context.Background(), "a", LogFollow{Token: job.Token{Epoch: 1, Seq: 1}}, one.tell); err != nil ||
			one.text() != "map[1:first/.]" {
			t.Errorf("%s, %v", one.text(), err)
		}
		if err := h.Follow(context.Background(), "a", LogFollow{Token: job.Token{Epoch: 1, Seq: 9}}, none.tell); errkind.Of(
			err) != errkind.NotFound {
			t.Errorf("a subjob that is not there: %v", err)
		}
		var rest heard
		if err := h.Follow(context.Background(), "a", LogFollow{Seen: []LogPosition{{Token: job.Token{Epoch: 1, Seq: 2}, Out: 2}}},
			rest.tell); err != nil || rest.text() != "map[2:st/.]" {
			t.Errorf("a follower that has some of it: %s, %v", rest.text(), err)
		}
		if err := h.Follow(context.Background(), "b", LogFollow{}, none.tell); errkind.Of(err) != errkind.NotFound {
			t.Errorf("a job that is not there: %v", err)
		}
		z.set(true)
		if err := h.Follow(context.Background(), "a", LogFollow{}, none.tell); errkind.Of(err) != errkind.NotFound {
			t.Errorf("a job that never ran: %v", err)
		}
		gone := heard{fail: errors.New("gone")}
		z.set(false, sub(2, 9, 0))
		if err := h.Follow(context.Background(), "a", LogFollow{}, gone.tell); !errors.Is(err, gone.fail) {
			t.Errorf("a follower that has gone: %v", err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestFollowEndsWithTheDaemon: a daemon that stops says so; it is not the end of the job.
func TestFollowEndsWithTheDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s, _ := filesRig(t)
		s.write(t, 2, "one\n")
		h, stop := r.start(t)
		ended := make(chan error, 1)
		var x heard
		go func() { ended <- h.Follow(context.Background(), "a", LogFollow{}, x.tell) }()
		time.Sleep(time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if err := <-ended; errkind.Of(err) != errkind.Unavailable || x.text() != "map[2:one/]" {
			t.Errorf("%s, %v", x.text(), err)
		}
	})
}
