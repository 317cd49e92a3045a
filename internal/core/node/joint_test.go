package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// crowdedWorld is a node with two slices of 40 GiB on a host with so much, whose peaks have a correlation that is given.
func crowdedWorld(t tb, memory quantity.Amount, correlation int64) *world {
	w := &world{tb: t, now: t0, cfg: Config{ID: "n", Zone: "z", Host: joint.Config{Memory: memory, Given: true, Correlation: correlation}}}
	w.n, w.shadow, w.twin = New(w.cfg), New(w.cfg), New(w.cfg)
	w.recover()
	w.stock()
	return w
}

func (w *world) stock() {
	var list []protocol.Slice
	for _, id := range []job.SliceID{"a", "b"} {
		s := device(id)
		s.Capacity = trp.Vector{40 * gib}
		list = append(list, s)
	}
	w.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: list}})
}

// wants asks for a piece whose demand is 2.326348 deviations above its mean, in GiB.
func wants(id uint64, s job.SliceID, from, to time.Duration, mean, deviation float64) protocol.Message {
	m := ask(id, s, from, to)
	a := m.Body.(*protocol.Asking)
	a.Peak = trp.Peak{Mean: quantity.Amount(mean * float64(gib)), Deviation: quantity.Amount(deviation * float64(gib))}
	a.Demand = trp.Vector{a.Peak.Mean + quantity.Amount(2.326348*deviation*float64(gib))}
	return m
}

// redeemed redeems a grant as it was asked for.
func redeemed(g, asked protocol.Message) protocol.Message {
	m, a := redeem(g), asked.Body.(*protocol.Asking)
	m.Body.(*protocol.Work).Demand, m.Body.(*protocol.Work).Peak = a.Demand, a.Peak
	return m
}

// holds leases a piece.
func (w *world) holds(m protocol.Message) job.Token {
	w.Helper()
	w.step(m)
	g := w.must(protocol.Granted)
	w.step(redeemed(g, m))
	w.must(protocol.Leased)
	return g.Token
}

// bears is what the latest offer of a slice says that its host bears, in GiB.
func (w *world) bears(id job.SliceID) quantity.Amount {
	return w.views[id].Slice.Bears / gib
}

// On a host with 60 GiB a piece of 30 GiB with a deviation of 3 runs. Another is within the limit as long as 2.326348 times the deviation
// of both is within what is left by the means.
func TestJointExcessAtAnAsk(t *testing.T) {
	for _, c := range []struct {
		name            string
		correlation     int64
		mean, deviation float64
		why             string
	}{
		{"independent, 5 GiB are 11.6: 18 fit", 0, 18, 4, ""},
		{"independent, 19 do not", 0, 19, 4, "probability .01, at most .01 may: 2 pieces with 50176 MiB on average and a deviation of " +
			"5120 MiB (correlation .000), there are 61440 MiB"},
		{"as one, 7 GiB are 16.3: 13 fit", 1000, 13, 4, ""},
		{"as one, 14 do not", 1000, 14, 4, "probability .01, at most .01 may: 2 pieces with 45056 MiB"},
		{"a third between", 333, 16, 4, ""},
		{"without deviation", 0, 23, 0, ""},
		{"without deviation, but too much", 0, 24, 0, "probability .02, at most .01 may"},
		{"twice as much as there is", 0, 39.9, 0, "probability .9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := crowdedWorld(t, 60*gib, c.correlation)
			w.holds(wants(1, "a", 0, time.Hour, 30, 3))
			w.step(wants(2, "b", 0, time.Hour, c.mean, c.deviation))
			if c.why == "" {
				w.must(protocol.Granted)
				return
			}
			if r := w.must(protocol.Refused).Body.(*protocol.Refusal); !strings.HasPrefix(r.Text,
				"the host's memory would run out with ") || !strings.Contains(r.Text, c.why) {
				t.Errorf("refused with %q, want %q", r.Text, c.why)
			}
		})
	}
}

// TestALeaseOfBeforeCountsWithItsDemand: what was sold without mean and deviation, or by a home that says none.
func TestALeaseOfBeforeCountsWithItsDemand(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	old := ask(1, "a", 0, time.Hour)
	old.Body.(*protocol.Asking).Demand = trp.Vector{35 * gib}
	w.holds(old)
	w.step(wants(2, "b", 0, time.Hour, 24, 2))
	w.must(protocol.Refused)
	w.step(wants(3, "b", 0, time.Hour, 20, 2))
	w.must(protocol.Granted)
}

// TestAHostWithoutMemoryRefusesNothing: where it is not known, all is as it was.
func TestAHostWithoutMemoryRefusesNothing(t *testing.T) {
	w := crowdedWorld(t, 0, 0)
	w.holds(wants(1, "a", 0, time.Hour, 40, 0))
	w.step(wants(2, "b", 0, time.Hour, 40, 0))
	w.must(protocol.Granted)
	for _, m := range w.effects {
		if v, ok := m.Body.(*protocol.SliceView); ok && (v.Slice.Host != 0 || v.Slice.Bears != 0) {
			t.Errorf("it says %d and %d of a host that nobody knows", v.Slice.Host, v.Slice.Bears)
		}
	}
}

// TestOnlyWhatRunsTogetherCounts: pieces behind each other share the memory; one that lasts beyond the begin of another counts beside it.
func TestOnlyWhatRunsTogetherCounts(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	w.holds(wants(1, "a", 0, 10*time.Minute, 40, 0))
	w.holds(wants(2, "a", 10*time.Minute, 20*time.Minute, 20, 0))
	w.step(wants(3, "b", 10*time.Minute, 20*time.Minute, 40, 0))
	w.must(protocol.Granted)
	w.wait(time.Second) // the hold lapses
	w.step(wants(4, "b", 9*time.Minute, 20*time.Minute, 40, 0))
	w.must(protocol.Refused)
	w.step(wants(5, "b", 0, time.Minute, 20, 0))
	w.must(protocol.Granted)
	w.step(wants(6, "b", time.Minute, 11*time.Minute, 30, 0))
	w.must(protocol.Refused)
}

// TestWhoOutlivesItsEndCounts: a slice whose gap begins behind the end of a lease elsewhere is offered anew once that has passed, and the
// lease is not gone.
func TestWhoOutlivesItsEndCounts(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	w.holds(wants(1, "a", 0, 10*time.Minute, 40, 0))
	w.holds(wants(2, "b", 0, 15*time.Minute, 20, 0))
	same(t, "b bears behind both", w.bears("b"), 40)
	w.wait(10 * time.Minute)
	same(t, "b bears when the other is past its end", w.bears("b"), 20)
	w.step(wants(3, "b", 15*time.Minute, 20*time.Minute, 21, 0))
	w.must(protocol.Refused)
}

// TestASliceIsOfferedWithWhatItsHostBears: in eighths, before anybody asks for more than that; and anew when it is more.
func TestASliceIsOfferedWithWhatItsHostBears(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	if a, b := w.bears("a"), w.bears("b"); a != 40 || b != 40 {
		t.Errorf("an empty host bears %d and %d, want 40", a, b)
	}
	first := wants(1, "a", 0, 10*time.Minute, 30, 3) // 36.98: 23.02 are left, of which four eighths of 40 are 20
	token := w.holds(first)
	if b := w.bears("b"); b != 20 {
		t.Errorf("b bears %d, want 20", b)
	}
	if s := w.n.Slices(w.now)[1]; !strings.HasPrefix(s.Reason, "the host's memory bears 20480 of its 40960 MiB: 1 pieces need 37") {
		t.Errorf("people are told %q", s.Reason)
	}
	w.step(wants(2, "b", 0, time.Hour, 20, 0))
	w.must(protocol.Granted)
	w.wait(time.Second)
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: token, Body: &protocol.Beginning{At: w.now}})
	w.step(exited(token, job.Done, 100))
	if b := w.bears("b"); b != 40 {
		t.Errorf("once it is over b bears %d, want 40", b)
	}
}

// TestWhoIsPastItsEndCountsUntilItIsGone.
func TestWhoIsPastItsEndCountsUntilItIsGone(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	token := w.holds(wants(1, "a", 0, time.Minute, 40, 0))
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: token, Body: &protocol.Beginning{At: w.now}})
	w.wait(time.Minute + time.Second)
	w.step(wants(2, "b", time.Minute+2*time.Second, time.Hour, 30, 0))
	w.must(protocol.Refused)
	w.step(exited(token, job.DeadlineKilled, 50))
	w.step(wants(3, "b", time.Minute+2*time.Second, time.Hour, 30, 0))
	w.must(protocol.Granted)
}

// TestAnExtensionIsHeldAgainstTheHost: with the peak that it then has, beside what was sold since.
func TestAnExtensionIsHeldAgainstTheHost(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	token := w.holds(wants(1, "a", 0, 10*time.Minute, 20, 0))
	w.holds(wants(2, "b", 0, 30*time.Minute, 30, 0))
	longer := func(id uint64, mean quantity.Amount) protocol.Message {
		return protocol.Message{Kind: protocol.Extend, From: zone, Token: token, Job: "j", Body: &protocol.Extension{
			Ask: id, Slice: "a", Range: job.Range{From: 0, To: 200}, End: at(40 * time.Minute), Peak: trp.Peak{Mean: mean * gib}}}
	}
	w.step(longer(3, 31))
	if r := w.must(protocol.Refused).Body.(*protocol.Refusal); !strings.Contains(r.Text, "probability 1, at most .01 may") {
		t.Errorf("refused with %q", r.Text)
	}
	w.step(longer(4, 30))
	w.must(protocol.Extended)
	if b := w.bears("b"); b != 30 { // once the piece there is over, the longer one is still there
		t.Errorf("b bears %d, want 30", b)
	}
	w.restart()
	if got := w.n.leases.Of(token).Peak(); got != (trp.Peak{Mean: 30 * gib}) {
		t.Errorf("after a restart its peak is %+v", got)
	}
}

// TestWhatIsRedeemedForMoreIsHeldAgainstTheHost: a hold is for what was asked.
func TestWhatIsRedeemedForMoreIsHeldAgainstTheHost(t *testing.T) {
	w := crowdedWorld(t, 60*gib, 0)
	w.holds(wants(1, "a", 0, time.Hour, 30, 0))
	m := wants(2, "b", 0, time.Hour, 20, 0)
	w.step(m)
	g := w.must(protocol.Granted)
	w.step(redeemed(g, wants(2, "b", 0, time.Hour, 31, 0)))
	if r := w.must(protocol.RedeemRefused).Body.(*protocol.Refusal); !strings.Contains(r.Text, "at most .01 may") {
		t.Errorf("refused with %q", r.Text)
	}
	w.step(redeemed(g, wants(2, "b", 0, time.Hour, 30, 0)))
	w.must(protocol.Leased)
}

// TestTheCorrelationIsLearnedAndForgotten: of subjobs that ended side by side; a node that starts again counts all peaks as one.
func TestTheCorrelationIsLearnedAndForgotten(t *testing.T) {
	w := crowdedWorld(t, 70*gib, 0)
	w.cfg.Host.Given = false
	w.n, w.shadow, w.twin, w.facts = New(w.cfg), New(w.cfg), New(w.cfg), nil
	w.recover()
	w.stock()
	pair := func(id uint64) {
		from := w.now.Sub(t0)
		var tokens []job.Token
		for i, s := range []job.SliceID{"a", "b"} {
			t := w.holds(wants(id+uint64(i), s, from, from+time.Minute, 20, 2))
			w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: t, Body: &protocol.Beginning{At: w.now}})
			tokens = append(tokens, t)
		}
		w.wait(30 * time.Second)
		for i, t := range tokens { // one below its mean, the other above
			m := exited(t, job.Done, 100)
			m.Body.(*protocol.Conclusion).Result.Peak = trp.Vector{quantity.Amount(18+4*i) * gib}
			w.step(m)
		}
	}
	for i := range uint64(25) {
		pair(10 * (i + 1))
	}
	from := w.now.Sub(t0)
	w.holds(wants(500, "a", from, from+time.Hour, 30, 3))
	w.step(wants(501, "b", from, from+time.Hour, 27, 3)) // 5.0 GiB at .4, 6 as one
	w.must(protocol.Granted)
	w.restart()
	w.stock()
	w.holds(wants(502, "a", from, from+time.Hour, 30, 3))
	w.step(wants(503, "b", from, from+time.Hour, 27, 3))
	w.must(protocol.Refused)
}

// TestTheMemoryOfAGPUIsCountedToNoHost: what is sold of a device with memory of its own takes none of the host's that is known, is refused
// for none, and is offered whole; what is sold beside it, on slices whose memory is the host's, is held against that.
func TestTheMemoryOfAGPUIsCountedToNoHost(t *testing.T) {
	w := crowdedWorld(t, 60*gib, joint.Whole)
	list := []protocol.Slice{device("e"), device("f"), device("a"), device("b")}
	for i := range list {
		if list[i].Capacity = (trp.Vector{40 * gib}); i < 2 {
			list[i].Device = "GPU-" + string(list[i].ID)
		}
	}
	w.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: list}})
	w.holds(wants(1, "e", 0, 10*time.Minute, 40, 0))
	w.holds(wants(2, "f", 0, 10*time.Minute, 40, 0))
	w.holds(wants(3, "a", 0, 10*time.Minute, 40, 0))
	w.step(wants(4, "b", 0, 10*time.Minute, 21, 0))
	if why := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(why, "the host's memory") ||
		!strings.Contains(why, "2 pieces") {
		t.Errorf("refused since %s", why)
	}
	w.holds(wants(5, "b", 0, 10*time.Minute, 20, 0))
	for _, s := range w.n.inventory.All() {
		if d := s.Desc(); (d.Device != "") != (d.Host == 0) {
			t.Errorf("%s is offered with %d of a host's %d", d.ID, d.Bears, d.Host)
		}
	}
	wide := wants(6, "e", time.Hour/2, time.Hour, 40, 0) // one slice of the host's, and one of its own
	wide.Body.(*protocol.Asking).Also = []job.SliceID{"a"}
	w.step(wide)
	w.must(protocol.Granted)
}
