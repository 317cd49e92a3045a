package api_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// pool is a head's only provider.
type pool struct {
	shown status.Provider
	why   string
}

func (p *pool) Providers() []status.Provider { return []status.Provider{p.shown} }

func (p *pool) named(name string) error {
	if name != p.shown.Name {
		return errkind.Errorf(errkind.NotFound, "there is no provider %q; there are: %s", name, p.shown.Name)
	}
	return nil
}

func (p *pool) PauseProvider(_ context.Context, name, why string) error {
	p.why = why
	return p.named(name)
}

func (p *pool) ResumeProvider(_ context.Context, name string) error {
	p.why = ""
	return p.named(name)
}

func (p *pool) TryProvider(_ context.Context, name string) (status.Trial, error) {
	return status.Trial{Provider: p.shown, Length: time.Hour, Wanted: true, Why: "no such account", Command: "sbatch"}, p.named(name)
}

func TestProviders(t *testing.T) {
	const now = quantity.Instant(1_800_000_000e9)
	p := &pool{shown: status.Provider{Name: "scavenger", Kind: "slurm", Describes: "slurm: partition preempt", Silent: "it hangs",
		Seen: now, Most: 8, Lengths: []time.Duration{time.Minute, time.Hour}, Slices: 2, Why: "nothing waits", Decided: now,
		Next: now + 1e9}}
	for state := pb.Pilot_SENT; state <= pb.Pilot_LEAVING; state++ {
		p.shown.Pilots = append(p.shown.Pilots, status.Pilot{Name: "p", State: pb.Word(state), Length: time.Hour, Asked: now,
			Why: "Priority"})
	}
	for how := pb.PilotEnding_DONE; how <= pb.PilotEnding_VANISHED; how++ {
		p.shown.Ended = append(p.shown.Ended, status.Ended{How: pb.Word(how), Count: int(how)})
		p.shown.Endings = append(p.shown.Endings, status.PilotEnd{Name: "q", How: pb.Word(how), Ended: now})
	}
	client := func(o api.Options) sluicev1alpha1connect.ProviderServiceClient {
		o.Service = apitest.New()
		s := httptest.NewServer(api.Handler(o))
		t.Cleanup(s.Close)
		return sluicev1alpha1connect.NewProviderServiceClient(s.Client(), s.URL)
	}
	c, ctx := client(api.Options{Providers: p, Listen: "127.0.0.1:0"}), t.Context()
	list, err := c.ListProviders(ctx, connect.NewRequest(&pb.ListProvidersRequest{}))
	if err != nil || len(list.Msg.GetProviders()) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	m := list.Msg.GetProviders()[0]
	if m.GetName() != "scavenger" || m.GetSilent() != "it hangs" || m.GetSeen().AsTime() != now.Time() || m.GetAtMost() != 8 ||
		len(m.GetLengths()) != 2 || m.GetLengths()[1].AsDuration() != time.Hour || m.GetSlices() != 2 || m.GetWhy() != "nothing waits" {
		t.Errorf("%+v", m)
	}
	for i, x := range m.GetPilots() {
		if x.GetState() != pb.Pilot_State(i+1) || x.GetStarted() != nil || x.GetWhy() != "Priority" {
			t.Errorf("%+v", x)
		}
	}
	for i, x := range m.GetEnded() {
		if x.GetHow() != pb.PilotEnding_How(i+1) || int(x.GetCount()) != i+1 || m.GetEndings()[i].GetHow() != x.GetHow() {
			t.Errorf("%+v", x)
		}
	}
	if _, err = c.PauseProvider(ctx, connect.NewRequest(&pb.PauseProviderRequest{Name: "scavenger", Why: "maintenance"})); err != nil ||
		p.why != "maintenance" {
		t.Errorf("%q, %v", p.why, err)
	}
	if _, err = c.ResumeProvider(ctx, connect.NewRequest(&pb.ResumeProviderRequest{Name: "scavenger"})); err != nil || p.why != "" {
		t.Errorf("%q, %v", p.why, err)
	}
	try, err := c.TryProvider(ctx, connect.NewRequest(&pb.TryProviderRequest{Name: "scavenger"}))
	if err != nil || try.Msg.GetTaken() || !try.Msg.GetWanted() || try.Msg.GetWhy() != "no such account" ||
		try.Msg.GetProvider().GetName() != "scavenger" || try.Msg.GetLength().AsDuration() != time.Hour {
		t.Errorf("%+v, %v", try, err)
	}
	is := func(err error, code connect.Code, says string) {
		t.Helper()
		if connect.CodeOf(err) != code || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %v: %s", err, code, says)
		}
	}
	_, err = c.TryProvider(ctx, connect.NewRequest(&pb.TryProviderRequest{Name: "x"}))
	is(err, connect.CodeNotFound, "there are: scavenger")
	_, err = c.PauseProvider(ctx, connect.NewRequest(&pb.PauseProviderRequest{Name: "scavenger", Why: strings.Repeat("x", 1001)}))
	is(err, connect.CodeInvalidArgument, "at most 1000")
	none := client(api.Options{Listen: "127.0.0.1:0"})
	list, err = none.ListProviders(ctx, connect.NewRequest(&pb.ListProvidersRequest{}))
	if err != nil || len(list.Msg.GetProviders()) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = none.ResumeProvider(ctx, connect.NewRequest(&pb.ResumeProviderRequest{Name: "x"}))
	is(err, connect.CodeNotFound, "key providers")
}
