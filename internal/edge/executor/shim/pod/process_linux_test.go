package pod

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/store"
)

// made is a process of a Pod that has a second to fetch in, and nothing to run.
func made(t *testing.T) *process {
	t.Helper()
	p := &process{orders: filepath.Join(t.TempDir(), "order.json"), asked: make(chan os.Signal, 1), store: http.DefaultClient}
	now := quantity.At(time.Now())
	p.run = Run{Part: executor.Part{Token: job.Token{Epoch: 1, Seq: 1}, Job: "j", Kind: job.Items, Range: job.Range{To: 10}, Total: 10,
		Grid: 1}, Start: now, End: now.Add(time.Second), Linger: time.Second, Command: []string{"true"}, LogLimit: 1, OutputLimit: 1,
		Report: time.Second}
	p.dir = shim.Dir(filepath.Join(t.TempDir(), p.run.Token.String()))
	p.order.End, p.lease = p.run.End, p.makeLease()
	return p
}

// TestWhatCantBeFetched: what is not what was asked for is never unpacked as if it were, what may pass is tried again, and no message has
// the URL.
func TestWhatCantBeFetched(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		body   string
		kind   errkind.Kind
		tries  int
	}{
		"gone":        {http.StatusNotFound, "no such key", errkind.NotFound, 1},
		"expired":     {http.StatusForbidden, "Request has expired", errkind.Denied, 1},
		"away":        {http.StatusServiceUnavailable, "slow down", errkind.Unavailable, 2},
		"other bytes": {http.StatusOK, "not what was put there", errkind.Corrupt, 2}, // they may have suffered on their way
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}))
			defer server.Close()
			p := made(t)
			p.run.Work = &Source{URL: server.URL + "/key?secret", Digest: store.Digest(strings.Repeat("a", 64)), Bytes: 1 << 20}
			err := p.furnish()
			if errkind.Of(err) != c.kind || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v (%v), want kind %v without the URL", err, errkind.Of(err), c.kind)
			}
			if asked < c.tries || c.tries == 1 && asked > 1 {
				t.Errorf("asked %d times, want %d", asked, c.tries)
			}
		})
	}
	p := made(t)
	p.run.Work = &Source{URL: "http://127.0.0.1:1/key?secret", Digest: store.Digest(strings.Repeat("a", 64))}
	if err := p.furnish(); errkind.Of(err) != errkind.Unavailable || strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody listens: %v", err)
	}
	p.run.Work, p.run.Subdir = nil, "../x"
	if err := p.furnish(); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a subdirectory that leads out: %v", err)
	}
}

// TestWhatCantBeStoredDoesNotCount, and whose fault it is.
func TestWhatCantBeStoredDoesNotCount(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		outcome job.Outcome
	}{
		"stored":    {http.StatusOK, job.Yielded},
		"too large": {http.StatusRequestEntityTooLarge, job.LimitKilled},
		"expired":   {http.StatusForbidden, job.NodeFailed},
		"away":      {http.StatusBadGateway, job.NodeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got bytes.Buffer
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/output" {
					got.Reset()
					_, _ = got.ReadFrom(r.Body)
				}
				w.WriteHeader(c.status)
			}))
			defer server.Close()
			p := made(t)
			p.run.Output, p.run.Progress = server.URL+"/output", server.URL+"/progress"
			p.told = newTeller(p.store, p.run.Progress, p.run.Report)
			err := errors.Join(os.MkdirAll(p.dir.Output(), 0o755), os.WriteFile(filepath.Join(p.dir.Output(), "x"), []byte("y"), 0o600))
			if err != nil {
				t.Fatal(err)
			}
			s := p.putAway(job.Result{Outcome: job.Yielded, Progress: 5})
			if s.Result.Outcome != c.outcome {
				t.Errorf("%+v, want %v", s.Result, c.outcome)
			}
			if stored := c.status == http.StatusOK; stored != (s.Output != nil) || stored != (s.Result.Progress == 5) || stored &&
				s.Output.Size != int64(got.Len()) {
				t.Errorf("%+v, %+v, and %d bytes were put", s.Result, s.Output, got.Len())
			}
		})
	}
}

// TestOrders: what the annotation says is handed on once, an end is never moved later, and half a file says nothing.
func TestOrders(t *testing.T) {
	p := made(t)
	if err := os.MkdirAll(string(p.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	control := func(order string) (c shim.Control) {
		t.Helper()
		if err := os.WriteFile(p.orders, []byte(order), 0o600); err != nil {
			t.Fatal(err)
		}
		p.heed()
		c, err := p.dir.ReadControl()
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return c
	}
	if c := control(""); c != (shim.Control{}) {
		t.Errorf("nothing was asked, and it says %+v", c)
	}
	if c := control(`{"End":`); c != (shim.Control{}) {
		t.Errorf("half an order says %+v", c)
	}
	if c := control(`{"End":5,"Cut":true,"Why":"reclaimed"}`); c.End != 5 || !c.Cut || c.Stop || c.Cause != "reclaimed" ||
		c.Range != p.run.Range {
		t.Errorf("%+v", c)
	}
	if c := control(`{"End":9223372036854775807,"Stop":true}`); c.End != p.run.End || !c.Stop {
		t.Errorf("%+v, want the lease's end", c)
	}
	if err := os.Remove(p.dir.Control()); err != nil {
		t.Fatal(err)
	}
	if c := control(`{"End":9223372036854775807,"Stop":true}`); c != (shim.Control{}) {
		t.Errorf("what was handed on is handed on again: %+v", c)
	}
	q := made(t)
	q.signalled = time.Now().Add(-time.Minute)
	if err := os.MkdirAll(string(q.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	q.heed()
	if c, err := q.dir.ReadControl(); err != nil || !c.Stop || c.Cause == "" {
		t.Errorf("after SIGTERM: %+v, %v", c, err)
	}
}

// TestThatSomethingIsStoredIsHeard, though an earlier word is on its way for as long as you like: without it the home gives the piece up.
func TestThatSomethingIsStoredIsHeard(t *testing.T) {
	earlier, heard := make(chan struct{}), make(chan struct{})
	var once sync.Once
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/output":
			close(earlier)
			select {
			case <-heard:
			case <-time.After(time.Minute):
				t.Error("nobody has heard that something is stored")
			}
		case strings.Contains(string(data), `"Storing":true`):
			once.Do(func() { close(heard) })
		default:
			<-earlier
		}
	}))
	defer server.Close()
	p := made(t)
	p.run.Output, p.run.Progress = server.URL+"/output", server.URL+"/progress"
	p.told = newTeller(p.store, p.run.Progress, p.run.Report)
	if err := errors.Join(os.MkdirAll(p.dir.Output(), 0o755), os.WriteFile(filepath.Join(p.dir.Output(), "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p.told.say(Word{Started: 1, Progress: 3})
	if s := p.putAway(job.Result{Outcome: job.Yielded, Progress: 5}); s.Output == nil {
		t.Errorf("%+v", s)
	}
}

// TestTheRunFileIsGoneBeforeAnythingRuns: it has URLs, and the program that is to run is of the same user.
func TestTheRunFileIsGoneBeforeAnythingRuns(t *testing.T) {
	dir, p := t.TempDir(), made(t)
	p.run.Subdir = "../out"
	text, err := json.Marshal(&p.run)
	if err != nil {
		t.Fatal(err)
	}
	file, end := filepath.Join(dir, RunFile), filepath.Join(dir, "end")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code := Main([]string{filepath.Join(dir, Runs), file, filepath.Join(dir, "order"), end})
	said, err := os.ReadFile(end)
	if s, ok := Decode(string(said)); err != nil || code != 1 || !ok || s.Result.Outcome != job.StartFailed {
		t.Errorf("status %d, %q, %v", code, said, err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the run file is there still: %v", err)
	}
}

// TestWhatIsLeftHasItsTimeToBeStored: after the lease's end too, and a checkpoint without a unit more counts. Nobody is told the URL.
func TestWhatIsLeftHasItsTimeToBeStored(t *testing.T) {
	refuses := 2
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/progress" && refuses > 0 {
			refuses--
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	ended := func(url string) *process {
		p := made(t)
		p.run.End = quantity.At(time.Now().Add(-time.Minute))
		p.order.End, p.run.Checkpoint, p.run.Progress = p.run.End, url, url+"/progress"
		p.told = newTeller(p.store, p.run.Progress, p.run.Report)
		if err := errors.Join(os.MkdirAll(p.dir.Output(), 0o755), os.MkdirAll(p.dir.Checkpoint(), 0o755),
			os.WriteFile(filepath.Join(p.dir.Checkpoint(), "x"), []byte("y"), 0o600)); err != nil {
			t.Fatal(err)
		}
		return p
	}
	yielded := job.Result{Outcome: job.Yielded, Checkpoint: true}
	p := ended(server.URL)
	p.run.Linger = time.Hour
	if s := p.putAway(yielded); s.Result.Outcome != job.Yielded || !s.Result.Checkpoint || s.Checkpoint == nil {
		t.Errorf("%+v", s)
	}
	if s := ended("http://127.0.0.1:1/key?secret").putAway(yielded); s.Result.Outcome != job.NodeFailed || s.Result.Checkpoint ||
		strings.Contains(s.Result.Detail, "secret") {
		t.Errorf("%+v, want it without the URL", s)
	}
}

// TestWhoIsStoppedFetchesNoLonger, however long its lease is.
func TestWhoIsStoppedFetchesNoLonger(t *testing.T) {
	p := made(t)
	p.run.End = quantity.Never
	p.order.End = p.run.End
	if !p.pause(time.Millisecond) {
		t.Error("nobody has stopped it")
	}
	if err := os.WriteFile(p.orders, []byte(`{"End":9223372036854775807,"Stop":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if p.pause(time.Millisecond) {
		t.Error("there is time for another try though it was stopped")
	}
}

// TestWhoFetchesHearsThatItIsToStop, and who stores that it will be killed, though the store takes the connection and says nothing.
func TestWhoFetchesHearsThatItIsToStop(t *testing.T) {
	asked := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	p := made(t)
	p.run.End = p.run.End.Add(time.Hour)
	p.order.End, p.run.Work = p.run.End, &Source{URL: server.URL, Digest: store.Digest(strings.Repeat("a", 64)), Bytes: 1}
	go func() {
		<-asked
		p.asked <- syscall.SIGTERM
	}()
	if s := p.whole(); s.Result.Outcome != job.Stopped {
		t.Errorf("%+v", s)
	}
	q := made(t)
	q.run.End, q.run.Linger, q.run.Grace = q.run.End.Add(time.Hour), 200*time.Millisecond, 100*time.Millisecond
	q.order.End, q.run.Output, q.run.Progress = q.run.End, server.URL, server.URL
	q.told = newTeller(q.store, q.run.Progress, q.run.Report)
	if err := errors.Join(os.MkdirAll(q.dir.Output(), 0o755), os.WriteFile(filepath.Join(q.dir.Output(), "x"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	q.asked <- syscall.SIGTERM
	if s := q.putAway(job.Result{Outcome: job.Yielded, Progress: 5}); s.Result.Outcome != job.NodeFailed || s.Result.Progress != 0 {
		t.Errorf("%+v", s)
	}
}
