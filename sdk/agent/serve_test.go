package agent_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/host"
	"sluice.dev/sluice/sdk/agent"
)

// daemon serves the API with this negotiator behind it.
func daemon(t *testing.T, negotiate func(context.Context, host.Negotiation) (host.Heard, error)) agent.Options {
	t.Helper()
	fake := apitest.New()
	fake.Agent = negotiate
	s := httptest.NewServer(api.Handler(api.Options{Service: fake}))
	t.Cleanup(s.Close)
	return agent.Options{Addr: s.URL, Job: "train", Key: "secret"}
}

func round() *protocol.Call {
	return &protocol.Call{
		Round: 5, Closes: apitest.At(time.Second), Most: 4, Free: job.Ranges{{From: 10, To: 90}}, Left: 80, First: true, Pace: 1100,
		Windows: []protocol.Advert{{Window: 3, Slice: "n/0/a", Profile: "1g.10gb", Speed: 500, Capacity: trp.Vector{1 << 30},
			Start: apitest.At(1), End: apitest.At(time.Minute), Open: true}},
	}
}

// TestServe: an agent opens a session, answers a call, hears what became of it, and ends with the job.
func TestServe(t *testing.T) {
	var calls []host.Negotiation
	o := daemon(t, func(_ context.Context, n host.Negotiation) (host.Heard, error) {
		calls = append(calls, n)
		switch len(calls) {
		case 1:
			return host.Heard{Session: 9, Events: []host.Event{{Round: 5, Call: round()}}}, nil
		case 2:
			return host.Heard{Session: 9, Notes: []string{"round 5: ..."}, Dropped: 3}, nil
		}
		return host.Heard{Session: 9, Over: true, Events: []host.Event{{Round: 5, Notices: []protocol.Notice{
			{Kind: protocol.Concluded, Window: 3, Range: job.Range{From: 10, To: 20}, Outcome: job.Done, Ran: time.Second,
				Peak: trp.Vector{7}, Token: job.Token{Epoch: 1, Seq: 2}},
		}}}}, nil
	})
	var heard []agent.Call
	var told []agent.Notice
	o.Told = func(n agent.Notice) { told = append(told, n) }
	err := agent.Serve(t.Context(), o, func(c agent.Call) []agent.Variant {
		heard = append(heard, c)
		w := c.Windows[0]
		return []agent.Variant{
			{Window: w.ID, Range: agent.Range{From: 10, To: 20}, Run: time.Second, Score: .25},
			{Window: w.ID, Range: agent.Range{From: 10, To: 30}, Start: w.Start.Add(time.Second), Run: time.Second, Wall: 2 * time.Second,
				Memory: 11, Option: "bf16", Score: 1},
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := agent.Call{
		Round: 5, Wanted: agent.Bids, Closes: apitest.Now().Add(time.Second), Most: 4, Free: []agent.Range{{From: 10, To: 90}}, Left: 80,
		First: true, MemoryScale: 1, Pace: 1.1,
		Windows: []agent.Window{{ID: 3, Slice: "n/0/a", Profile: "1g.10gb", Speed: .5, Memory: 1 << 30, Start: apitest.Now().Add(1),
			End: apitest.Now().Add(time.Minute), Open: true}},
	}
	if len(heard) != 1 || !reflect.DeepEqual(heard[0], want) || heard[0].Windows[0].Length() != time.Minute-1 {
		t.Errorf("heard %+v\nwant  %+v", heard, want)
	}
	if len(calls) != 3 || calls[0].Session != 0 || calls[0].Key != "secret" || calls[1].Session != 9 || calls[1].Key != "" ||
		len(calls[2].Answers) != 0 {
		t.Fatalf("said %+v", calls)
	}
	answer := []host.Answer{{Round: 5, Variants: []protocol.Variant{
		{ID: 1, Window: 3, Range: job.Range{From: 10, To: 20}, Start: apitest.At(1), Run: time.Second, Wall: time.Second, Score: 250_000},
		{ID: 2, Window: 3, Range: job.Range{From: 10, To: 30}, Start: apitest.At(time.Second + 1), Run: time.Second, Wall: 2 * time.Second,
			Demand: trp.Vector{11}, Option: "bf16", Score: 1_000_000},
	}}}
	if !reflect.DeepEqual(calls[1].Answers, answer) {
		t.Errorf("answered %+v\nwant     %+v", calls[1].Answers, answer)
	}
	notice := agent.Notice{Kind: agent.Concluded, Round: 5, Window: 3, Subjob: "1-2", Range: agent.Range{From: 10, To: 20}, Outcome: "done",
		Ran: time.Second, Peak: 7}
	if len(told) != 1 || told[0] != notice {
		t.Errorf("told %+v, want %+v", told, notice)
	}
}

// TestServeComesBack: a daemon that is busy is asked again in the same session; one that has forgotten the session gets a new
// one, and no answer to a round of the old.
func TestServeComesBack(t *testing.T) {
	var mu sync.Mutex
	var said []host.Negotiation
	o := daemon(t, func(_ context.Context, n host.Negotiation) (host.Heard, error) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, n)
		switch len(said) {
		case 1:
			return host.Heard{Session: 1, Events: []host.Event{{Round: 5, Call: round()}}}, nil
		case 2:
			return host.Heard{}, errkind.Errorf(errkind.Unavailable, "a full disk")
		case 3:
			return host.Heard{}, errkind.Errorf(errkind.NotFound, "no such session")
		}
		return host.Heard{Session: 2, Over: true}, nil
	})
	if err := agent.Serve(t.Context(), o, func(agent.Call) []agent.Variant { return nil }); err != nil {
		t.Fatal(err)
	}
	if len(said) != 4 || said[1].Session != 1 || len(said[1].Answers) != 1 || said[2].Session != 1 || len(said[2].Answers) != 0 ||
		said[3].Session != 0 || said[3].Key != "secret" {
		t.Errorf("said %+v", said)
	}
}

// TestServeEnds: what trying again can not help ends it, with an error that a program can tell apart.
func TestServeEnds(t *testing.T) {
	for kind, want := range map[errkind.Kind]error{errkind.Denied: agent.ErrKey, errkind.Conflict: agent.ErrSuperseded,
		errkind.Invalid: agent.ErrRefused} {
		var asked atomic.Int32
		o := daemon(t, func(context.Context, host.Negotiation) (host.Heard, error) {
			asked.Add(1)
			return host.Heard{}, errkind.Errorf(kind, "because")
		})
		if err := agent.Serve(t.Context(), o, nil); !errors.Is(err, want) || asked.Load() != 1 {
			t.Errorf("kind %v: %v after %d calls, want %v", kind, err, asked.Load(), want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	o := daemon(t, func(ctx context.Context, _ host.Negotiation) (host.Heard, error) {
		cancel()
		<-ctx.Done()
		return host.Heard{}, ctx.Err()
	})
	if err := agent.Serve(ctx, o, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestServeSignals: what is wanted is said, and a variant of its window alone is a signal.
func TestServeSignals(t *testing.T) {
	var calls []host.Negotiation
	o := daemon(t, func(_ context.Context, n host.Negotiation) (host.Heard, error) {
		calls = append(calls, n)
		c := round()
		switch len(calls) {
		case 1:
			c.Wanted = protocol.Interest
		case 2:
			c.Wanted = protocol.Subjob
		default:
			return host.Heard{Session: 9, Over: true}, nil
		}
		return host.Heard{Session: 9, Events: []host.Event{{Round: 5, Call: c}}}, nil
	})
	var wanted []string
	err := agent.Serve(t.Context(), o, func(c agent.Call) []agent.Variant {
		if wanted = append(wanted, c.Wanted); c.Wanted == agent.Interest {
			return []agent.Variant{{Window: c.Windows[0].ID}, {Window: c.Windows[0].ID, Wall: time.Minute, Memory: 7}}
		}
		return nil
	})
	if err != nil || !reflect.DeepEqual(wanted, []string{agent.Interest, agent.Subjob}) {
		t.Fatalf("%v, asked for %q", err, wanted)
	}
	signals := []host.Answer{{Round: 5, Variants: []protocol.Variant{{ID: 1, Window: 3},
		{ID: 2, Window: 3, Wall: time.Minute, Demand: trp.Vector{7}}}}}
	if !reflect.DeepEqual(calls[1].Answers, signals) {
		t.Errorf("signalled %+v\nwant      %+v", calls[1].Answers, signals)
	}
	if len(calls[2].Answers) != 1 || len(calls[2].Answers[0].Variants) != 0 {
		t.Errorf("declined with %+v", calls[2].Answers)
	}
}
