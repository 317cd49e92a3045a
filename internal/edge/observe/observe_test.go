package observe

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

const sec = quantity.Instant(time.Second)

var (
	token = job.Token{Epoch: 1, Seq: 2}
	slice = protocol.Slice{ID: "n/gpu0", Capacity: trp.Vector{1 << 30}, Speed: 1000}
	nodeA = protocol.Address{Role: protocol.Node, ID: "n"}
	zoneA = protocol.Address{Role: protocol.Zone, ID: "z"}
)

// scene is a small life: a job waits 5 s, runs from 15 to 28 in a lease of [15, 40), and commits 7 of 9 units. The slice
// is idle until 15 and from 28 on, with a drain from 50.
func scene(o *Observer) {
	o.Message(10*sec, &protocol.Message{Kind: protocol.Inventory, To: nodeA, Body: &protocol.Stock{Slices: []protocol.Slice{slice}}})
	o.Message(10*sec, offer(1, nil, protocol.Gap{Start: 10 * sec, End: quantity.Never}))
	o.Fact(10*sec, &protocol.Fact{Kind: protocol.JobAccepted, Job: "j", At: 10 * sec, Body: &protocol.Acceptance{Request: "r"}})
	o.Fact(10*sec, &protocol.Fact{Kind: protocol.HomeTaken, Job: "j", At: 10 * sec, Body: &protocol.Taking{}})
	o.Fact(15*sec, &protocol.Fact{Kind: protocol.LeaseMade, Token: token, Job: "j",
		Body: &protocol.Terms{Placement: protocol.Placement{Slice: slice.ID, Range: job.Range{From: 0, To: 9}, Start: 15 * sec,
			End: 40 * sec}}})
	o.Message(15*sec, offer(2, nil, protocol.Gap{Start: 40 * sec, End: quantity.Never}))
	o.Fact(15*sec, &protocol.Fact{Kind: protocol.SubjobStarted, Token: token, At: 15 * sec})
	o.Fact(28*sec, &protocol.Fact{Kind: protocol.SubjobEnded, Token: token,
		Body: &protocol.SubjobEnd{Result: &job.Result{Outcome: job.Yielded, Progress: 7,
			Start: 15 * sec, End: 28 * sec, FirstProgress: 17 * sec}}})
	drain := protocol.Reservation{ID: 4, Kind: protocol.ForDrain, Slice: slice.ID, Start: 50 * sec, End: 60 * sec, Source: "me"}
	o.Stepped(protocol.Zone, time.Millisecond)
	o.Message(28*sec, offer(3, []protocol.Reservation{drain}, protocol.Gap{Start: 28 * sec, End: 50 * sec, Until: protocol.ForDrain}))
	o.Fact(28*sec, &protocol.Fact{Kind: protocol.Committed, Job: "j", Token: token,
		Body: &protocol.ClaimEnd{Range: job.Range{From: 0, To: 7}}})
	o.Fact(29*sec, &protocol.Fact{Kind: protocol.LeaseGone, Token: token})
}

func offer(version uint64, reserved []protocol.Reservation, gaps ...protocol.Gap) *protocol.Message {
	return &protocol.Message{Kind: protocol.Offer, To: zoneA, Body: &protocol.SliceView{
		Slice: slice, Node: "n", Version: version, Usable: true, Gaps: gaps, Reserved: reserved,
	}}
}

func scrape(t *testing.T, o *Observer) string {
	t.Helper()
	w := httptest.NewRecorder()
	o.Metrics().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("status %d", w.Code)
	}
	return w.Body.String()
}

func expect(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, "\n"+l+"\n") {
			name, _, _ := strings.Cut(l, " ")
			for have := range strings.SplitSeq(text, "\n") {
				if strings.HasPrefix(have, name) {
					t.Errorf("got %s, want %s", have, l)
				}
			}
			if !strings.Contains(text, name) {
				t.Errorf("no %s", name)
			}
		}
	}
}

func TestMetrics(t *testing.T) {
	o := New(Options{})
	scene(o)
	o.Appended(2*time.Millisecond, 3, 400)
	o.Trouble(true)
	expect(t, scrape(t, o),
		`sluice_subjobs_ended_total{outcome="yielded"} 1`,
		`sluice_subjobs_ended_total{outcome="failed"} 0`,
		`sluice_subjobs_ended_total{outcome="node-failed"} 0`,
		`sluice_subjob_run_seconds_total 13`,
		`sluice_units_committed_total 7`,
		`sluice_claims_settled_total{result="committed"} 1`,
		`sluice_windows_offered_total 2`,
		`sluice_windows_filled_total 1`,
		`sluice_windows_unfilled_seconds_total 5`,
		`sluice_job_wait_seconds_sum 5`,
		`sluice_job_wait_seconds_count 1`,
		`sluice_jobs{state="PENDING"} 1`,
		`sluice_jobs{state="RUNNING"} 0`,
		`sluice_slices{state="usable"} 1`,
		`sluice_slices{state="unusable"} 0`,
		`sluice_journal_append_seconds_count 1`,
		`sluice_journal_records_total 3`,
		`sluice_journal_bytes_total 400`,
		`sluice_steps_total{actor="zone"} 3`,
		`sluice_step_seconds_count{actor="zone"} 1`,
		`sluice_step_seconds_bucket{actor="zone",le="0.001024"} 1`,
		`sluice_step_seconds_bucket{actor="zone",le="0.000512"} 0`,
		`sluice_steps_total{actor="node"} 1`,
		`sluice_daemon_trouble 1`)
	o.Fact(30*sec, &protocol.Fact{Kind: protocol.Ended, Job: "j", Body: &protocol.Final{Verdict: job.Verdict{State: job.Failed}}})
	o.Fact(30*sec, &protocol.Fact{Kind: protocol.JobClosed, Job: "j", Body: &protocol.Final{Verdict: job.Verdict{State: job.Failed}}})
	o.Trouble(false)
	bad := offer(4, nil)
	bad.Body.(*protocol.SliceView).Usable = false
	o.Message(38*sec, bad)
	expect(t, scrape(t, o),
		`sluice_jobs_ended_total{state="FAILED"} 1`,
		`sluice_jobs{state="PENDING"} 0`,
		`sluice_windows_unfilled_seconds_total 15`,
		`sluice_slices{state="unusable"} 1`,
		`sluice_slices{state="usable"} 0`,
		`sluice_daemon_trouble 0`)
}

func TestJobStates(t *testing.T) {
	o := New(Options{})
	state := func(want string) {
		t.Helper()
		expect(t, scrape(t, o), `sluice_jobs{state="`+want+`"} 1`)
	}
	o.Fact(0, &protocol.Fact{Kind: protocol.JobAccepted, Job: "j", Body: &protocol.Acceptance{}})
	state("PENDING")
	o.Fact(0, &protocol.Fact{Kind: protocol.JobPaused, Job: "j", Body: &protocol.JobPause{Paused: true}})
	state("PAUSED")
	o.Fact(0, &protocol.Fact{Kind: protocol.JobPaused, Job: "j", Body: &protocol.JobPause{}})
	state("PENDING")
	o.Fact(0, &protocol.Fact{Kind: protocol.LeaseMade, Job: "j", Token: token, Body: &protocol.Terms{}})
	state("RUNNING")
	o.Fact(0, &protocol.Fact{Kind: protocol.SubjobEnded, Token: token, Body: &protocol.SubjobEnd{Result: &job.Result{Outcome: job.Done}}})
	o.Fact(0, &protocol.Fact{Kind: protocol.SubjobEnded, Token: token, Body: &protocol.SubjobEnd{Result: &job.Result{Outcome: job.Done}}})
	state("PENDING")
	if len(o.jobs.leases) != 0 {
		t.Errorf("%d leases are remembered", len(o.jobs.leases))
	}
}

func TestRecoveredIsShownAndNotCounted(t *testing.T) {
	o := New(Options{})
	for _, f := range []protocol.Fact{
		{Kind: protocol.JobAccepted, Job: "a", Body: &protocol.Acceptance{}},
		{Kind: protocol.JobAccepted, Job: "b", Body: &protocol.Acceptance{}},
		{Kind: protocol.Ended, Job: "b", Body: &protocol.Final{Verdict: job.Verdict{State: job.Finished}}},
		{Kind: protocol.HomeKept, Body: &protocol.Keeping{Record: &protocol.Record{Job: "c", Paused: true}}},
	} {
		o.Recovered(&f)
	}
	expect(t, scrape(t, o), `sluice_jobs{state="PENDING"} 1`, `sluice_jobs{state="PAUSED"} 1`,
		`sluice_jobs_ended_total{state="COMPLETED"} 0`)
}

func TestHistory(t *testing.T) {
	o := New(Options{})
	scene(o)
	h, _ := o.History(0, 55*sec, "")
	if len(h.Slices) != 1 || h.Slices[0].Slice.ID != slice.ID || h.To != 55*sec {
		t.Fatalf("%+v", h)
	}
	want := []status.Span{
		{Start: 10 * sec, End: 15 * sec, Until: protocol.ForLease},
		{Kind: protocol.ForLease, Start: 15 * sec, End: 28 * sec, Job: "j", Token: token, Range: job.Range{To: 9},
			Committed: job.Range{To: 7},
			Outcome:   "yielded", UsedStart: 15 * sec, UsedEnd: 28 * sec, FirstProgress: 17 * sec},
		{Start: 28 * sec, End: 50 * sec, Until: protocol.ForDrain},
		{Kind: protocol.ForDrain, Start: 50 * sec, End: 60 * sec, Outcome: "me"},
	}
	got := h.Slices[0].Spans
	if len(got) != len(want) {
		t.Fatalf("%d spans: %+v", len(got), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("span %d\n got  %+v\n want %+v", i, got[i], want[i])
		}
	}
	past := func(since, now quantity.Instant) []status.Span {
		h, next := o.History(since, now, "")
		if next != "" {
			t.Errorf("one slice takes two pieces, the next behind %s", next)
		}
		return h.Slices[0].Spans
	}
	if later := past(45*sec, 48*sec); len(later) != 1 || later[0].Kind != 0 || later[0].Start != 45*sec || later[0].End != 48*sec {
		t.Errorf("a stretch within a window: %+v", later)
	}
	// The drain is withdrawn before it begins: it was never there. The slice goes bad and comes back.
	o.Message(49*sec, offer(4, nil, protocol.Gap{Start: 49 * sec, End: quantity.Never}))
	bad := offer(5, nil)
	bad.Body.(*protocol.SliceView).Usable, bad.Body.(*protocol.SliceView).Why = false, "processes remain"
	o.Message(52*sec, bad)
	o.Message(54*sec, offer(6, nil, protocol.Gap{Start: 54 * sec, End: quantity.Never}))
	got = past(30*sec, 60*sec)
	if len(got) != 3 || got[1].Kind != protocol.ForForeign || got[1].Start != 52*sec || got[1].End != 54*sec ||
		got[1].Outcome != "processes remain" {
		t.Errorf("a slice that could not be sold for a while: %+v", got)
	}
}

// TestHistoryOfOtherMachines: their nodes' facts are kept there, so the claims of the zone tell; a lease that is made here tells more, in
// whatever order the two come, and no time counts twice.
func TestHistoryOfOtherMachines(t *testing.T) {
	const here, away = job.SliceID("here/gpu0"), job.SliceID("away/gpu0")
	first, second := job.Token{Epoch: 1, Seq: 1}, job.Token{Epoch: 1, Seq: 1 << 40}
	all := job.Range{To: 9}
	place := func(slice job.SliceID, also ...job.SliceID) protocol.Placement {
		return protocol.Placement{Slice: slice, Also: also, Range: all, Start: 10 * sec, End: 40 * sec}
	}
	lease := protocol.Fact{Kind: protocol.LeaseMade, Job: "j", Token: first, Body: &protocol.Terms{Placement: place(here)}}
	claim := protocol.Fact{Kind: protocol.Claimed, Job: "j", Token: second, Body: &protocol.Sale{Placement: place(away)}}
	gang := protocol.Fact{Kind: protocol.Claimed, Job: "j", Token: first, Body: &protocol.Sale{Placement: place(here, away),
		Members: []protocol.Member{{Node: "here", Token: first, Slices: 1}, {Node: "away", Token: second, Slices: 1}}}}
	extended := protocol.Fact{Kind: protocol.ClaimExtended, Job: "j", Token: second,
		Body: &protocol.Extent{Range: job.Range{To: 12}, End: 50 * sec}}
	over := func(kind protocol.FactKind, token job.Token, r *job.Result) protocol.Fact {
		return protocol.Fact{Kind: kind, Job: "j", Token: token, Body: &protocol.ClaimEnd{Range: all, Result: r}}
	}
	result := &job.Result{Outcome: job.Done, Start: 11 * sec, End: 25 * sec, FirstProgress: 12 * sec}
	span := func(token job.Token, to quantity.Instant) status.Span {
		return status.Span{Kind: protocol.ForLease, Start: 10 * sec, End: to, Job: "j", Token: token, Range: all}
	}
	done := span(second, 25*sec)
	done.Committed, done.Outcome, done.UsedStart, done.UsedEnd, done.FirstProgress = all, "done", 11*sec, 25*sec, 12*sec
	longer, lost := span(second, 50*sec), span(second, 30*sec)
	longer.Range, lost.Committed = job.Range{To: 12}, all
	for _, c := range []struct {
		what       string
		facts      []protocol.Fact
		here, away []status.Span
		open       int
	}{
		{"a claim that runs", []protocol.Fact{claim}, nil, []status.Span{span(second, 40*sec)}, 1},
		{"one that was extended", []protocol.Fact{claim, extended}, nil, []status.Span{longer}, 1},
		{"its result", []protocol.Fact{claim, over(protocol.Committed, second, result)}, nil, []status.Span{done}, 0},
		{"none came", []protocol.Fact{claim, over(protocol.Released, second, nil)}, nil, []status.Span{lost}, 0},
		{"a gang, its lease first", []protocol.Fact{lease, gang},
			[]status.Span{span(first, 40*sec)}, []status.Span{span(second, 40*sec)}, 2},
		{"a gang, its claim first", []protocol.Fact{gang, lease},
			[]status.Span{span(first, 40*sec)}, []status.Span{span(second, 40*sec)}, 2},
		{"a gang that is over, with the lease here", []protocol.Fact{gang, lease, over(protocol.Committed, first, result),
			{Kind: protocol.LeaseGone, Token: first}}, nil, []status.Span{done}, 0},
	} {
		o := New(Options{})
		for i := range c.facts {
			o.Fact(30*sec, &c.facts[i])
		}
		h, _ := o.History(0, 39*sec, "")
		got := map[job.SliceID][]status.Span{}
		for _, s := range h.Slices {
			for _, x := range s.Spans {
				if x.Kind == protocol.ForLease {
					got[s.Slice.ID] = append(got[s.Slice.ID], x)
				}
			}
		}
		if !slices.Equal(got[away], c.away) || c.here != nil && !slices.Equal(got[here], c.here) || len(got[here]) > 1 {
			t.Errorf("%s:\nhere %+v\naway %+v, want\nhere %+v\naway %+v", c.what, got[here], got[away], c.here, c.away)
		}
		if len(o.history.leases) != c.open || c.open == 0 && len(o.history.gangs) != 0 {
			t.Errorf("%s: %d open leases, want %d; gangs %v", c.what, len(o.history.leases), c.open, o.history.gangs)
		}
	}
}

// TestHistoryComesInPieces: together they are all slices, in the order of their ids, each once, and none is long.
func TestHistoryComesInPieces(t *testing.T) {
	o := New(Options{})
	const n = 300
	for i := range n {
		id := job.SliceID(fmt.Sprintf("s%03d", i*7%n))
		for k := range quantity.Instant(20) {
			tk := job.Token{Epoch: uint32(i), Seq: uint64(k)}
			o.Fact(k*sec, &protocol.Fact{Kind: protocol.LeaseMade, Token: tk,
				Body: &protocol.Terms{Placement: protocol.Placement{Slice: id, Start: k * sec, End: (k + 1) * sec}}})
		}
	}
	var ids []job.SliceID
	for after := job.SliceID(""); ; {
		h, next := o.History(0, 100*sec, after)
		spans := 0
		for _, s := range h.Slices {
			ids = append(ids, s.Slice.ID)
			spans += len(s.Spans)
		}
		if len(h.Slices) == 0 || spans > 2*spansTurn {
			t.Fatalf("a piece of %d slices and %d spans", len(h.Slices), spans)
		}
		if after = next; after == "" {
			break
		}
	}
	if len(ids) != n || !slices.IsSorted(ids) || len(slices.Compact(ids)) != n {
		t.Errorf("%d slices: %v", len(ids), ids)
	}
}

func TestHistoryIsBounded(t *testing.T) {
	o := New(Options{HistoryFor: time.Hour})
	for i := range quantity.Instant(3 * maxSpans) {
		tk := job.Token{Epoch: 1, Seq: uint64(i)}
		o.Fact(i*sec, &protocol.Fact{Kind: protocol.LeaseMade, Token: tk,
			Body: &protocol.Terms{Placement: protocol.Placement{Slice: slice.ID, Start: i * sec, End: (i + 1) * sec}}})
		o.Fact(i*sec, &protocol.Fact{Kind: protocol.LeaseGone, Token: tk})
	}
	if n := len(o.history.slices[slice.ID].spans); n > 3602 || n < 3600 {
		t.Errorf("%d spans of one second are kept, want an hour of them", n)
	}
	if len(o.history.leases) != 0 {
		t.Errorf("%d settled leases are remembered", len(o.history.leases))
	}
	o = New(Options{})
	for i := range 2 * maxSpans {
		o.Fact(sec, &protocol.Fact{Kind: protocol.LeaseMade, Token: job.Token{Seq: uint64(i)},
			Body: &protocol.Terms{Placement: protocol.Placement{Slice: slice.ID, Start: sec, End: 2 * sec}}})
	}
	if n := len(o.history.slices[slice.ID].spans); n != maxSpans {
		t.Errorf("%d spans are kept, the bound is %d", n, maxSpans)
	}
}

func TestLines(t *testing.T) {
	var b bytes.Buffer
	o := New(Options{Log: slog.New(slog.NewTextHandler(&b, nil))})
	scene(o)
	o.Fact(0, &protocol.Fact{Kind: protocol.Quarantined, Slice: slice.ID, Body: &protocol.Reason{Text: "processes remain"}})
	o.Message(0, &protocol.Message{Kind: protocol.Checkup,
		Body: &protocol.Vitals{Slices: []job.SliceID{slice.ID}, Errors: []protocol.Xid{{Code: 79}, {Code: 31}}}})
	o.Fact(0, &protocol.Fact{Kind: protocol.SliceFailed, Slice: slice.ID, Body: &health.Fault{Cause: health.ByXid, Xid: 79,
		Text: "it has fallen off"}})
	o.Fact(0, &protocol.Fact{Kind: protocol.SliceMended, Slice: slice.ID, Body: &protocol.Reason{Text: "it is back"}})
	o.Fact(0, &protocol.Fact{Kind: protocol.SubjobEnded, Token: token,
		Body: &protocol.SubjobEnd{Result: &job.Result{Outcome: job.ExitFailed, ExitCode: 3,
			Detail: "no such file"}}})
	for _, want := range []string{`msg="job accepted" job=j`, `level=WARN msg="slice quarantined"`,
		`error="Xid 79 (the GPU has fallen off the bus)"`, `reason="it has fallen off"`, `reason="it is back"`, `outcome=failed exit=3`,
		`detail="no such file"`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "outcome=yielded") {
		t.Error("a subjob that ended as planned is not worth a line at Info")
	}
}
