package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/host/agents"
	"sluice.dev/sluice/internal/host/datadir"
	"sluice.dev/sluice/internal/lab/sim"
)

// As package agents has them.
const (
	heldNotices         = 250 * time.Millisecond
	openRate, openBurst = 1, 10
	pollBurst           = 400
)

// caller is a zone that announces one round of two windows, two variants each, to every session, says "lost" to each variant
// of an answer, and ends the job on an answer without any.
type caller struct {
	toyZone
	book *book
	seen map[job.ID]uint64
}

// book is what all zones of a test have heard.
type book struct {
	mu   sync.Mutex
	told []protocol.Message
}

func (b *book) all(k protocol.Kind) (out []protocol.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.told {
		if m.Kind == k {
			out = append(out, m)
		}
	}
	return out
}

func (z *caller) Step(_ quantity.Instant, in protocol.Message, out *protocol.Out) {
	z.book.mu.Lock()
	z.book.told = append(z.book.told, in)
	z.book.mu.Unlock()
	say := func(m protocol.Message) {
		m.To, m.Job, m.Session = protocol.Address{Role: protocol.Bidder, ID: string(in.Job)}, in.Job, in.Session
		out.Effects = append(out.Effects, m)
	}
	switch {
	case in.Kind == protocol.Attend && in.Body.(*protocol.Attendance).Present && z.seen[in.Job] != in.Session:
		z.seen[in.Job] = in.Session
		say(protocol.Message{Kind: protocol.Announce, Body: &protocol.Call{Round: in.Session%1000 + 1, Most: 2,
			Windows: make([]protocol.Advert, 2)}})
	case in.Kind == protocol.Answer && len(in.Body.(*protocol.Proposal).Variants) > 0:
		m := protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: in.Body.(*protocol.Proposal).Round}}
		for _, v := range in.Body.(*protocol.Proposal).Variants {
			m.Body.(*protocol.News).Notices = append(m.Body.(*protocol.News).Notices, protocol.Notice{Kind: protocol.Lost, Variant: v.ID})
		}
		say(m)
	case in.Kind == protocol.Answer:
		z.fact(out, protocol.Fact{Kind: protocol.Ended, Job: in.Job, Body: &protocol.Final{}})
		say(protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: in.Body.(*protocol.Proposal).Round,
			Notices: []protocol.Notice{{Kind: protocol.Concluded}}}})
	}
}

// agentRig is a host with an external job "a" and one that is not, "b".
func agentRig(t *testing.T) (*rig, *book) {
	t.Helper()
	r, b := newRig(t), &book{}
	r.actors = func() actor.Set {
		return actor.Alone("z", "n", &toyGate{toy{step: accept}}, &caller{book: b, seen: map[job.ID]uint64{}}, &toyNode{})
	}
	return r, b
}

func submitExternal(t *testing.T, h *Host) {
	t.Helper()
	a := spec("a")
	a.External = true
	for _, s := range []*job.Spec{a, spec("b")} {
		if _, err := h.Submit(t.Context(), "", s, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func keyOf(t *testing.T, h *Host) string {
	t.Helper()
	key, err := h.AgentKey(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// opened opens a session of job a and returns it with the round it hears of.
func opened(t *testing.T, h *Host) (session, round uint64) {
	t.Helper()
	got, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Key: keyOf(t, h), Wait: time.Minute})
	if err != nil || len(got.Events) != 1 || got.Events[0].Call == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	return got.Session, got.Events[0].Round
}

// attended starts a host with an external job and its agent, in a session that has heard of a round.
func attended(t *testing.T, r *rig) (h *Host, stop func() error, session, round uint64) {
	t.Helper()
	h, stop = r.start(t)
	submitExternal(t, h)
	session, round = opened(t, h)
	return h, stop, session, round
}

// TestNegotiation: an agent opens a session, hears a round, answers it once, with no more than the round looks at, and hears
// what became of that; and the tape of it all gives the same digests.
func TestNegotiation(t *testing.T) {
	r, b := agentRig(t)
	h, stop, session, round := attended(t, r)
	variants := make([]protocol.Variant, 5)
	for i := range variants {
		variants[i].ID = uint32(i)
	}
	got, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Wait: time.Minute,
		Answers: []Answer{{Round: round, Variants: variants}, {Round: round + 1}}})
	if err != nil || len(got.Notes) != 2 || !strings.Contains(got.Notes[0], "the last 1 variants were cut off") ||
		!strings.Contains(got.Notes[1], "no answer is waited for") {
		t.Fatalf("%+v, %v", got, err)
	}
	for len(got.Events) == 0 {
		if got, err = h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Wait: time.Minute}); err != nil {
			t.Fatal(err)
		}
	}
	if got.Events[0].Round != round || len(got.Events[0].Notices) != 4 {
		t.Errorf("%+v", got)
	}
	got, err = h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Answers: []Answer{{Round: round, Variants: variants}}})
	if err != nil || len(got.Notes) != 1 {
		t.Errorf("a second answer: %+v, %v", got, err)
	}
	if heard := b.all(protocol.Answer); len(heard) != 1 || len(heard[0].Body.(*protocol.Proposal).Variants) != 4 ||
		heard[0].Session != session || heard[0].Job != "a" || heard[0].From != (protocol.Address{Role: protocol.Bidder, ID: "a"}) {
		t.Errorf("the zone heard %+v", heard)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(r.dir, datadir.TapeDir)
	boots, err := tape.Boots(dir)
	if err != nil || len(boots) != 1 {
		t.Fatal(boots, err)
	}
	reel, err := tape.Open(dir, boots[0])
	if err != nil {
		t.Fatal(err)
	}
	defer reel.Close()
	live := len(b.all(protocol.Answer))
	if _, err := sim.Replay(reel, r.actors().Parties(), nil); err != nil {
		t.Error(err)
	}
	if again := len(b.all(protocol.Answer)) - live; again != live {
		t.Errorf("the tape has %d answers, %d were given", again, live)
	}
}

// TestKeys: a key opens its job alone, does not reveal which jobs exist, and outlives the daemon.
func TestKeys(t *testing.T) {
	r, _ := agentRig(t)
	h, stop := r.start(t)
	submitExternal(t, h)
	key := keyOf(t, h)
	for name, key := range map[job.ID]string{"a": strings.Repeat("0", 64), "b": key, "c": key, "d": ""} {
		_, err := h.Negotiate(t.Context(), Negotiation{Job: name, Key: key})
		want := fmt.Sprintf("this is not the key of an external job %s: ask for it with `sluice agent key %s`", name, name)
		if errkind.Of(err) != errkind.Denied || err.Error() != want {
			t.Errorf("job %s: %v, want %s", name, err, want)
		}
	}
	if _, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: 5}); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a session that was guessed: %v", err)
	}
	session, _ := opened(t, h)
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(r.dir, "agent-secret")
	if info, err := os.Stat(secret); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}

	h, stop = r.start(t)
	if again := keyOf(t, h); again != key {
		t.Errorf("key %s became %s", key, again)
	}
	if _, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session}); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a session of the last life: %v", err)
	}
	if fresh, _ := opened(t, h); fresh == session {
		t.Error("a session's number came again")
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spoil func() error
		kind  errkind.Kind
	}{
		{func() error { return os.Chmod(secret, 0o640) }, errkind.Denied},
		{func() error { return os.WriteFile(secret, []byte("short"), 0o600) }, errkind.Denied},
		{func() error { return os.Chmod(secret, 0o600) }, errkind.Corrupt},
	} {
		if err := c.spoil(); err != nil {
			t.Fatal(err)
		}
		h, stop = r.start(t)
		if _, err := h.AgentKey(t.Context(), "a"); errkind.Of(err) != c.kind {
			t.Errorf("%v, want kind %v", err, c.kind)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTheNewestAgentWins: the one that waits is told at once, and its later calls as well.
func TestTheNewestAgentWins(t *testing.T) {
	r, b := agentRig(t)
	h, _, first, round := attended(t, r)
	waits := make(chan error, 1)
	go func() {
		_, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: first, Wait: time.Minute})
		waits <- err
	}()
	second, _ := opened(t, h)
	if err := <-waits; errkind.Of(err) != errkind.Conflict {
		t.Errorf("the one that waited: %v", err)
	}
	_, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: first, Answers: []Answer{{Round: round}}})
	if errkind.Of(err) != errkind.Conflict {
		t.Errorf("its next call: %v", err)
	}
	if _, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: second}); err != nil {
		t.Errorf("the newest: %v", err)
	}
	list := b.all(protocol.Attend)
	if len(list) != 2 || list[0].Session != first || list[1].Session != second || !list[1].Body.(*protocol.Attendance).Present ||
		len(b.all(protocol.Answer)) != 0 {
		t.Errorf("the zone heard %+v", list)
	}
}

// TestSilentAgentIsGone: it is there as long as it calls in time, and gone 10 s after its last call.
func TestSilentAgentIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := agentRig(t)
		h, stop, session, _ := attended(t, r)
		gone := func() (n int) {
			synctest.Wait()
			for _, m := range b.all(protocol.Attend) {
				if !m.Body.(*protocol.Attendance).Present {
					n++
				}
			}
			return n
		}
		for range 3 {
			time.Sleep(agents.AgentGone - time.Millisecond)
			if got, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Wait: MaxWait}); err != nil ||
				len(got.Events) > 0 {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		if n := gone(); n != 0 {
			t.Errorf("gone %d times before its time", n)
		}
		if n := len(b.all(protocol.Attend)); n < 3 {
			t.Errorf("the zone was told %d times that it is there: a lost message is not made good", n)
		}
		hung, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := h.Negotiate(hung, Negotiation{Job: "a", Session: session, Wait: MaxWait}); errkind.Of(err) != errkind.Unavailable {
			t.Errorf("hung up: %v", err)
		}
		time.Sleep(agents.AgentGone)
		if n := gone(); n != 1 {
			t.Errorf("gone %d times, want once", n)
		}
		if _, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session}); errkind.Of(err) != errkind.NotFound {
			t.Errorf("after it: %v", err)
		}
		opened(t, h)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestJobOver: an agent hears the last notice and then that there is nothing left to do.
func TestJobOver(t *testing.T) {
	r, _ := agentRig(t)
	h, stop, session, round := attended(t, r)
	got, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Wait: time.Minute, Answers: []Answer{{Round: round}}})
	if err != nil || len(got.Events) != 1 || got.Events[0].Notices[0].Kind != protocol.Concluded {
		t.Fatalf("%+v, %v", got, err)
	}
	if got, err = h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Wait: time.Minute}); err != nil || !got.Over {
		t.Errorf("%+v, %v", got, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	h, _ = r.start(t)
	if got, err = h.Negotiate(t.Context(), Negotiation{Job: "a", Key: keyOf(t, h), Wait: time.Minute}); err != nil || !got.Over {
		t.Errorf("after a restart: %+v, %v", got, err)
	}
}

// TestWhatWasLostWaits: notices of what was not won go with the next event, or a moment later; what was won is told at once.
func TestWhatWasLostWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := agentRig(t)
		h, stop, session, round := attended(t, r)
		begin := time.Now()
		poll := func(answers ...Answer) (Heard, time.Duration) {
			got, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session, Wait: MaxWait, Answers: answers})
			if err != nil {
				t.Fatal(err)
			}
			return got, time.Since(begin)
		}
		got, took := poll(Answer{Round: round, Variants: make([]protocol.Variant, 1)})
		if len(got.Events) != 1 || got.Events[0].Notices[0].Kind != protocol.Lost || took != heldNotices {
			t.Errorf("lost: %+v after %v, want it after %v", got, took, heldNotices)
		}
		say := func(m protocol.Message) {
			m.To, m.Session = protocol.Address{Role: protocol.Bidder, ID: "a"}, session
			h.daemon.agents.Deliver(&m)
		}
		begin = time.Now()
		say(protocol.Message{Kind: protocol.Told, Body: &protocol.News{Notices: []protocol.Notice{{Kind: protocol.Lost}}}})
		say(protocol.Message{Kind: protocol.Told, Body: &protocol.News{Notices: []protocol.Notice{{Kind: protocol.Lost},
			{Kind: protocol.Awarded}}}})
		if got, took = poll(); len(got.Events) != 2 || took != 0 {
			t.Errorf("awarded: %+v after %v, want both at once", got, took)
		}
		say(protocol.Message{Kind: protocol.Told, Body: &protocol.News{Notices: []protocol.Notice{{Kind: protocol.Denied}}}})
		say(protocol.Message{Kind: protocol.Announce, Body: &protocol.Call{Round: round + 1}})
		if got, took = poll(); len(got.Events) != 2 || got.Events[1].Call == nil || took != 0 {
			t.Errorf("called: %+v after %v, want both at once", got, took)
		}
		if err := stop(); err != nil || len(b.all(protocol.Answer)) != 1 {
			t.Fatal(err)
		}
	})
}

// TestFloods: neither sessions nor calls come faster than their quotas, and another job's agent is not touched.
func TestFloods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, b := agentRig(t)
		h, stop := r.start(t)
		submitExternal(t, h)
		other := spec("other")
		other.External = true
		if _, err := h.Submit(t.Context(), "", other, nil); err != nil {
			t.Fatal(err)
		}
		key := keyOf(t, h)
		count := func(n int, call func() error) (refused int) {
			for range n {
				if err := call(); err != nil {
					if errkind.Of(err) != errkind.Exhausted {
						t.Fatal(err)
					}
					refused++
				}
			}
			return refused
		}
		var session uint64
		open := func() error {
			got, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Key: key})
			if err == nil {
				session = got.Session
			}
			return err
		}
		if n := count(1000, open); n != 1000-openBurst {
			t.Errorf("%d of 1000 sessions refused", n)
		}
		poll := func() error {
			_, err := h.Negotiate(t.Context(), Negotiation{Job: "a", Session: session})
			return err
		}
		if n := count(1000, poll); n < 1000-pollBurst {
			t.Errorf("%d of 1000 calls refused", n)
		}
		theirs, err := h.AgentKey(t.Context(), "other")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Negotiate(t.Context(), Negotiation{Job: "other", Key: theirs}); err != nil {
			t.Errorf("another job: %v", err)
		}
		time.Sleep(2 * time.Second)
		if n := count(openBurst, open); n != openBurst-2*openRate {
			t.Errorf("after 2 s %d of %d refused", n, openBurst)
		}
		synctest.Wait()
		if n := len(b.all(protocol.Attend)); n > 2*openBurst+3 {
			t.Errorf("the zone heard %d times that somebody is there", n)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestManyCalls: of several calls of one agent at once only the latest waits, so that it holds one place and no more.
func TestManyCalls(t *testing.T) {
	r, _ := agentRig(t)
	h, _, session, _ := attended(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 20)
	for range cap(done) {
		go func() {
			got, err := h.Negotiate(ctx, Negotiation{Job: "a", Session: session, Wait: time.Minute})
			if err == nil && len(got.Events) > 0 {
				err = fmt.Errorf("events %+v", got.Events)
			}
			done <- err
		}()
	}
	for range cap(done) - 1 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	cancel()
	if err := <-done; errkind.Of(err) != errkind.Unavailable {
		t.Errorf("the latest: %v", err)
	}
}
