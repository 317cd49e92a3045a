package host

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host/trouble"
)

// TestFactsAreDurableBeforeEffects counts, at every effect, what the journal has taken by then.
func TestFactsAreDurableBeforeEffects(t *testing.T) {
	r := newRig(t)
	var appended atomic.Int64
	r.before = func(records [][]byte) error {
		appended.Add(int64(len(records)))
		return nil
	}
	early := false
	r.executor.do = func(_ protocol.Message, w journal.Position) {
		if int64(len(r.executor.did)) > appended.Load() || w.Seq < uint64(len(r.executor.did)) {
			early = true
		}
	}
	h, stop := r.start(t)
	const n = 300
	errs := make(chan error, n)
	for i := range n {
		go func() {
			_, err := h.Submit(context.Background(), "", spec(job.ID("job-"+string(rune('a'+i%26))+string(rune('a'+i/26)))), nil)
			errs <- err
		}()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if early || r.executor.count() != n || appended.Load() != n {
		t.Errorf("early %v; %d effects and %d records, want %d", early, r.executor.count(), appended.Load(), n)
	}
}

func TestSubmitTwiceIsOneJob(t *testing.T) {
	r := newRig(t)
	h, stop := r.start(t)
	a, err := h.Submit(context.Background(), "r1", spec("a"), nil)
	if err != nil || !a.Created || a.Name != "a" || a.Position.Seq == 0 {
		t.Fatalf("%+v, %v", a, err)
	}
	b, err := h.Submit(context.Background(), "r1", spec("a"), nil)
	if err != nil || b.Created {
		t.Errorf("%+v, %v: the same request is the same job", b, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	h, _ = r.start(t)
	if c, err := h.Submit(context.Background(), "r1", spec("a"), nil); err != nil || c.Created {
		t.Errorf("after a restart: %+v, %v", c, err)
	}
}

func TestDiskFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var full atomic.Bool
		full.Store(true)
		r.before = func([][]byte) error {
			if full.Load() {
				return errFull()
			}
			return nil
		}
		h, stop := r.start(t)
		_, err := h.Submit(context.Background(), "r1", spec("a"), nil)
		if errkind.Of(err) != errkind.Exhausted || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("got %v, want kind exhausted with the cause", err)
		}
		time.Sleep(time.Minute) // every retry fails
		if _, err := h.Submit(context.Background(), "r2", spec("b"), nil); errkind.Of(err) != errkind.Exhausted {
			t.Errorf("a later call: got %v, want kind exhausted", err)
		}
		about, err := h.About(context.Background())
		if err != nil || !strings.Contains(about.Trouble, "no space left") {
			t.Errorf("about: %q, %v", about.Trouble, err)
		}
		if n := r.executor.count(); n != 0 {
			t.Errorf("%d effects left although their facts are not durable", n)
		}
		full.Store(false)
		time.Sleep(2 * trouble.RetryLast)
		if about, err = h.About(context.Background()); err != nil || about.Trouble != "" {
			t.Errorf("after room was made: %q, %v", about.Trouble, err)
		}
		again, err := h.Submit(context.Background(), "r1", spec("a"), nil)
		if err != nil || again.Created {
			t.Errorf("the kept batch was lost: %+v, %v", again, err)
		}
		if n := r.executor.count(); n != 1 {
			t.Errorf("%d effects, want the one that was withheld", n)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// TestWhatIsCommittedIsPublishedBeforeTheStop: a commit that is made durable while the daemon is told to stop still reaches the executor,
// and nothing else does.
func TestWhatIsCommittedIsPublishedBeforeTheStop(t *testing.T) {
	r := newRig(t)
	full, stop := false, func() {}
	r.before = func([][]byte) error {
		if stop(); full {
			return errFull()
		}
		return nil
	}
	settle := func(a *toy, _ quantity.Instant, in protocol.Message, out *protocol.Out) {
		if in.Kind != protocol.Submit {
			return
		}
		a.fact(out, protocol.Fact{Kind: protocol.JobAccepted, Job: in.Job,
			Body: &protocol.Acceptance{Spec: in.Body.(*protocol.Submission).Spec}})
		for _, kind := range []protocol.Kind{protocol.Purge, protocol.Settle} {
			out.Effects = append(out.Effects, protocol.Message{Kind: kind, To: protocol.Address{Role: protocol.Executor}, Job: in.Job})
		}
	}
	r.actors = func() actor.Set { return actor.Alone("z", "n", &toyGate{toy{step: settle}}, &toyZone{}, &toyNode{}) }
	run := func() (did []protocol.Kind) {
		t.Helper()
		r.executor.did = nil
		h, err := r.open()
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		stop = cancel
		ended := make(chan error)
		go func() { ended <- h.Run(ctx) }()
		_, _ = h.Submit(context.Background(), "", spec("a"), nil) // nobody answers it any more
		if err := <-ended; err != nil {
			t.Error(err)
		}
		for i := range r.executor.did {
			did = append(did, r.executor.did[i].Kind)
		}
		return did
	}
	if did := run(); len(did) != 1 || did[0] != protocol.Settle {
		t.Errorf("the executor was told %v, want Settle alone", did)
	}
	full = true
	if did := run(); len(did) != 0 {
		t.Errorf("the executor was told %v of what is not durable", did)
	}
}

func TestStopWhileFullLosesNothingThatWasPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.before = func([][]byte) error { return errFull() }
		h, stop := r.start(t)
		if _, err := h.Submit(context.Background(), "r1", spec("a"), nil); errkind.Of(err) != errkind.Exhausted {
			t.Fatal(err)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if r.executor.count() != 0 {
			t.Error("an effect left without its fact")
		}
		r.before = nil
		h, _ = r.start(t)
		if got, err := h.Submit(context.Background(), "r1", spec("a"), nil); err != nil || !got.Created {
			t.Errorf("%+v, %v: nothing was promised, so the retry makes the job", got, err)
		}
	})
}

func TestAnotherJournalErrorStops(t *testing.T) {
	r := newRig(t)
	r.before = func([][]byte) error { return errors.New("input/output error") }
	h, stop := r.start(t)
	if _, err := h.Submit(context.Background(), "r1", spec("a"), nil); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("the call: got %v, want kind unavailable", err)
	}
	if err := stop(); err == nil || !strings.Contains(err.Error(), "input/output error") {
		t.Errorf("Run: got %v, want the cause", err)
	}
	if r.executor.count() != 0 {
		t.Error("an effect left without its fact")
	}
	if _, err := h.About(context.Background()); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("a question after the end: got %v, want kind unavailable", err)
	}
}

func TestTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var ticks []time.Duration
		begin := time.Now()
		r.actors = func() actor.Set {
			zone := &toyZone{}
			zone.step = func(_ *toy, now quantity.Instant, in protocol.Message, out *protocol.Out) {
				wake := func(d time.Duration) {
					out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Wake, To: protocol.Address{Role: protocol.Timer},
						Body: &protocol.Moment{At: quantity.At(begin).Add(d)}})
				}
				switch in.Kind {
				case protocol.Adopt:
					wake(9 * time.Second)
					wake(3 * time.Second) // the earliest standing one counts
					wake(5 * time.Second)
				case protocol.Tick:
					ticks = append(ticks, now.Sub(quantity.At(begin)))
					if len(ticks) == 1 {
						wake(7 * time.Second)
					}
				}
			}
			return actor.Alone("z", "n", &toyGate{}, zone, &toyNode{})
		}
		h, stop := r.start(t)
		h.daemon.opts.Fabric.Send(protocol.Message{Kind: protocol.Adopt, To: protocol.Address{Role: protocol.Zone, ID: "z"},
			Body: &protocol.Adoption{}})
		time.Sleep(time.Minute)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(ticks) != 2 || ticks[0] != 3*time.Second || ticks[1] != 7*time.Second {
			t.Errorf("ticks at %v, want 3s and 7s", ticks)
		}
	})
}

func TestLostRecordIsNamedByItsWitness(t *testing.T) {
	r := newRig(t)
	h, stop := r.start(t)
	receipt, err := h.Submit(context.Background(), "r1", spec("a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	found := func(w journal.Position) []executor.Found {
		return []executor.Found{{Found: protocol.Found{Token: job.Token{Epoch: 1, Seq: 7}, Job: "a"}, Witness: w}}
	}
	r.executor.found = found(receipt.Position)
	h, err = r.open()
	if err != nil {
		t.Fatalf("a good witness: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	later := receipt.Position.Next([]byte("a record that the journal has lost"))
	r.executor.found = found(later)
	if _, err := r.open(); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), "1-7") ||
		!strings.Contains(err.Error(), later.String()) {
		t.Errorf("got %v, want kind corrupt naming subjob 1-7 and record %v", err, later)
	}
}

func TestBrokenInvariantLeavesItsCauseOnTheTape(t *testing.T) {
	r := newRig(t)
	r.actors = func() actor.Set {
		zone := &toyZone{}
		zone.step = func(*toy, quantity.Instant, protocol.Message, *protocol.Out) { panic("broken") }
		return actor.Alone("z", "n", &toyGate{}, zone, &toyNode{})
	}
	h, err := r.open()
	if err != nil {
		t.Fatal(err)
	}
	h.daemon.opts.Fabric.Send(protocol.Message{Kind: protocol.Adopt, To: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: "the-cause",
		Body: &protocol.Adoption{}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = h.Run(context.Background())
	}()
	entries := readTape(t, r.dir)
	if last := entries[len(entries)-1]; last.Message.Job != "the-cause" {
		t.Errorf("the last input on the tape is %+v", last.Message)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}
