package cli

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/host"
)

// place is a socket that a daemon can leave and come back to; nobody else takes it meanwhile.
type place struct {
	t    *testing.T
	path string
	addr string
	s    *http.Server
}

func newPlace(t *testing.T) *place {
	path := filepath.Join(t.TempDir(), "socket")
	p := &place{t: t, path: path, addr: "unix:" + path}
	t.Cleanup(p.leave)
	return p
}

func (p *place) come(fake *apitest.Fake) {
	l, err := net.Listen("unix", p.path)
	if err != nil {
		p.t.Error(err)
		return
	}
	p.s = &http.Server{Handler: api.Handler(api.Options{Service: fake})}
	go func() { _ = p.s.Serve(l) }() // ends with leave
}

// leave cuts every connection off, as a process that is killed.
func (p *place) leave() {
	if p.s != nil {
		_ = p.s.Close()
	}
}

// safe is a buffer that is read while it is written.
type safe struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safe) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safe) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// eventually waits for a condition, generously.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(what + ": did not happen within a minute")
		}
	}
}

func patient(t *testing.T, addr string, out, errs *safe, args ...string) int {
	return Run(t.Context(), Deps{
		Args: args, Options: session.Options{Version: "v1", Commit: "abc", In: strings.NewReader(""), Out: out, Err: errs, Now: apitest.Now,
			Patience: time.Minute, Getenv: func(k string) string { return map[string]string{"SLUICE_SERVER": addr}[k] }},
	})
}

// TestADaemonThatStartsIsWaitedFor: a command typed right behind `sluice up &` finds it.
func TestADaemonThatStartsIsWaitedFor(t *testing.T) {
	p := newPlace(t)
	var out, errs safe
	done := make(chan int, 1)
	go func() { done <- patient(t, p.addr, &out, &errs, "jobs", "-o", "name") }()
	time.Sleep(100 * time.Millisecond)
	p.come(apitest.New())
	if code := <-done; code != 0 || !strings.Contains(out.String(), "count-words") {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}

// TestWaitOutlastsARestart: it says once that the daemon is away, once that it is back, and ends as it would have.
func TestWaitOutlastsARestart(t *testing.T) {
	p := newPlace(t)
	fake := apitest.New()
	p.come(fake)
	var out, errs safe
	done := make(chan int, 1)
	asked := fake.Asked("train")
	go func() { done <- patient(t, p.addr, &out, &errs, "wait", "train") }()
	<-asked
	time.Sleep(50 * time.Millisecond) // the first answer may be on its way
	for round := 1; round <= 2; round++ {
		p.leave()
		eventually(t, "the daemon is said to be away", func() bool { return strings.Count(errs.String(), "is away") == round })
		if round == 2 {
			fake.Set(status.Job{Name: "train", State: job.Finished, Kind: job.Steps, Total: 9, Progress: 9, Unit: "step"})
		}
		p.come(fake)
		eventually(t, "the daemon is said to be back", func() bool { return strings.Count(errs.String(), "is back") == round })
	}
	if code := <-done; code != 0 || out.String() != "job train COMPLETED, 9/9 100% steps\n" {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}

// TestAwayFromTheStart: a daemon that never answered is not waited for.
func TestAwayFromTheStart(t *testing.T) {
	for _, args := range [][]string{{"wait", "train"}, {"logs", "train", "-f"}, {"jobs"}} {
		if r := sluice(t, newPlace(t).addr, "", args...); r.code != command.ExitUnavailable ||
			!strings.Contains(r.err, "no daemon answers") {
			t.Errorf("%q: %+v", args, r)
		}
	}
}

// TestLogsFollowTheWholeJob: whole lines behind their subjob, however they came; a follower that is cut off goes on where it
// was.
func TestLogsFollowTheWholeJob(t *testing.T) {
	one, two := job.Token{Epoch: 1, Seq: 1}, job.Token{Epoch: 1, Seq: 2}
	fake := apitest.New()
	calls := 0
	fake.FollowLog = func(_ context.Context, from host.LogFollow, tell func(host.LogPiece) error) error {
		calls++
		pieces := []host.LogPiece{
			{Since: apitest.At(0)},
			{Token: one, Data: []byte("a\nb")},
			{Token: two, Data: []byte("x\x1b[2J\n")},
			{Token: one, Stderr: true, Data: []byte("oh")},
		}
		if calls == 2 {
			want := []host.LogPosition{{Token: one, Out: 3, Err: 2}, {Token: two, Out: 6}}
			if !slices.Equal(from.Seen, want) || from.Since != apitest.At(0) {
				t.Errorf("comes back with %+v", from)
			}
			pieces = []host.LogPiece{{Token: one, Data: []byte("c\n")}, {Token: one, Over: true}, {Token: two, Data: []byte("end")},
				{Token: two, Over: true}}
		}
		for _, p := range pieces {
			if err := tell(p); err != nil {
				return err
			}
		}
		if calls == 1 {
			return errkind.Errorf(errkind.Unavailable, "the daemon is stopping")
		}
		return nil
	}
	addr := answering(t, fake)
	r := sluice(t, addr, "", "logs", "train", "-f")
	want := "1-1 | a\n1-2 | x\x1b[2J\n1-1 | bc\n1-1 | oh\n1-2 | end\n"
	if r.code != 0 || r.out != want || strings.Count(r.err, "is away") != 1 || strings.Count(r.err, "is back") != 1 {
		t.Errorf("%+v, want %q", r, want)
	}
	calls = 0
	r = sluice(t, addr, "", "logs", "train", "-f", "-o", "json")
	if r.code != 0 || !strings.Contains(r.out, `{"subjob":"1-1","stream":"stderr","line":"oh"}`+"\n") || strings.Count(r.out, "\n") != 5 {
		t.Errorf("%+v", r)
	}
}

// TestLongLines: a line without end is shown in parts, and memory stays bounded.
func TestLongLines(t *testing.T) {
	const maxLine = 64 << 10 // what package logs holds back of one
	fake := apitest.New()
	fake.FollowLog = func(_ context.Context, _ host.LogFollow, tell func(host.LogPiece) error) error {
		for range 5 {
			if err := tell(host.LogPiece{Token: job.Token{Epoch: 1, Seq: 1}, Data: bytes.Repeat([]byte("x"), maxLine/2)}); err != nil {
				return err
			}
		}
		return tell(host.LogPiece{Token: job.Token{Epoch: 1, Seq: 1}, Over: true})
	}
	r := sluice(t, answering(t, fake), "", "logs", "train", "-f")
	if lines := strings.Split(strings.TrimSpace(r.out), "\n"); r.code != 0 || len(lines) != 3 || strings.Count(r.out, "x") != 5*maxLine/2 {
		t.Errorf("exit %d, %d lines, %d bytes", r.code, len(lines), len(r.out))
	}
}
