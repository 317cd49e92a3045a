package api

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/host"
)

const path = "/sluice.v1alpha1.SluiceService/Negotiate"

// said is a call as curl would send it.
const said = `{"job": "train", "session": "7", "wait": "2.5s", "answers": [{"round": "9", "variants": [
  {"id": 1, "window": "3", "range": {"from": "0", "to": "50"}, "start": "2026-03-01T12:00:00.000000001Z", "run": "10s", "wall": "12s",
   "memoryBytes": "1024", "option": "bf16", "score": 0.25},
  {"id": 2, "window": "3", "range": {"from": 0, "to": 20}, "start": "2026-03-01T12:00:00Z", "run": "4s", "score": 1}]}, {"round": "10"}]}`

// call posts a body to a handler and returns status and answer.
func call(t *testing.T, h http.Handler, body string, header ...string) (int, string) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1"+path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code, w.Body.String()
}

// TestNegotiate: what an agent says arrives, and what it is told goes out, in JSON that a person can read.
func TestNegotiate(t *testing.T) {
	fake := apitest.New()
	at := apitest.At(0)
	var got host.Negotiation
	fake.Agent = func(_ context.Context, n host.Negotiation) (host.Heard, error) {
		got = n
		return host.Heard{
			Session: 7, Dropped: 1, Notes: []string{"round 10: ..."},
			Events: []host.Event{
				{Round: 11, Call: &protocol.Call{
					Round: 11, Closes: apitest.At(time.Second), Most: 4, Free: job.Ranges{{From: 0, To: 100}}, Left: 100, First: true,
					Memory: 1250, Pace: 1100,
					Windows: []protocol.Advert{{Window: 3, Slice: "n/0/a", Profile: "1g.10gb", Speed: 140, Capacity: trp.Vector{10},
						Start: at, End: apitest.At(time.Minute), Open: true}},
				}},
				{Round: 9, Notices: []protocol.Notice{
					{Kind: protocol.Lost, Window: 3, Variant: 2, Text: "others were worth more", Score: 250_000, Clearing: 800_000},
					{Kind: protocol.Concluded, Window: 3, Token: job.Token{Epoch: 1, Seq: 2}, Range: job.Range{From: 0, To: 50},
						Outcome: job.Done, Ran: 9 * time.Second, Peak: trp.Vector{900}},
				}},
			},
		}, nil
	}
	code, body := call(t, Handler(Options{Service: fake}), said)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	want := host.Negotiation{Job: "train", Session: 7, Wait: 2500 * time.Millisecond, Answers: []host.Answer{
		{Round: 9, Variants: []protocol.Variant{
			{ID: 1, Window: 3, Range: job.Range{From: 0, To: 50}, Start: at + 1, Run: 10 * time.Second, Wall: 12 * time.Second,
				Demand: trp.Vector{1024}, Option: "bf16", Score: 250_000},
			{ID: 2, Window: 3, Range: job.Range{From: 0, To: 20}, Start: at, Run: 4 * time.Second, Wall: 4 * time.Second, Score: score.One},
		}}, {Round: 10, Variants: []protocol.Variant{}},
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("said %+v\nwant %+v", got, want)
	}
	for _, part := range []string{
		`"session":"7"`, `"closes":"2026-03-01T12:00:01Z"`, `"free":[{"from":"0","to":"100"}]`, `"speed":"140"`, `"first":true`,
		`"open":true`, `"memoryScale":"1250","pace":"1100"`,
		`"kind":"LOST"`, `"clearing":0.8`, `"kind":"CONCLUDED"`, `"outcome":"DONE"`, `"ran":"9s"`, `"peakMemoryBytes":"900"`,
		`"dropped":"1"`, `"notes":["round 10`,
	} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
}

// TestNegotiateTakesSignals: a variant of its window alone is a signal of interest; with a part of a piece it is a piece that lacks the
// rest.
func TestNegotiateTakesSignals(t *testing.T) {
	fake := apitest.New()
	var heard []host.Answer
	fake.Agent = func(_ context.Context, n host.Negotiation) (host.Heard, error) {
		heard = n.Answers
		return host.Heard{Session: 7, Events: []host.Event{{Call: &protocol.Call{Round: 9, Wanted: protocol.Subjob}}}}, nil
	}
	h := Handler(Options{Service: fake})
	code, body := call(t, h,
		`{"job": "a", "session": "7", "answers": [{"round": "8", "variants": [{"window": "3"}, {"id": 2, "window": "4", "wall": "9s", "memoryBytes": "7"}]}]}`)
	want := []host.Answer{{Round: 8, Variants: []protocol.Variant{{Window: 3},
		{ID: 2, Window: 4, Wall: 9 * time.Second, Demand: trp.Vector{7}}}}}
	if code != 200 || !reflect.DeepEqual(heard, want) || !strings.Contains(body, `"wanted":"subjob"`) {
		t.Errorf("%d %s, heard %+v", code, body, heard)
	}
	if code, body := call(t, h,
		`{"job": "a", "session": "7", "answers": [{"round": "8", "variants": [{"window": "3", "run": "1s"}]}]}`); code == 200 ||
		!strings.Contains(body, "range: is [0, 0)") || !strings.Contains(body, "start: is missing") {
		t.Errorf("%d %s", code, body)
	}
}

// TestNegotiateNamesEveryProblem: one answer lists all that is wrong, with its place, and nothing is delivered.
func TestNegotiateNamesEveryProblem(t *testing.T) {
	fake := apitest.New()
	fake.Agent = func(context.Context, host.Negotiation) (host.Heard, error) {
		t.Error("it was delivered")
		return host.Heard{}, nil
	}
	h := Handler(Options{Service: fake})
	bad := strings.NewReplacer(`"id": 2`, `"id": 1`, `"window": "3", "range": {"from": 0, "to": 20}`, `"range": {"from": -5, "to": -5}`,
		`"run": "4s", "score": 1`, `"wall": "1s", "score": "NaN", "memoryBytes": "-1"`, `"option": "bf16"`, `"option": "`+
			strings.Repeat("o", 64)+`"`,
		`"wall": "12s"`, `"wall": "9s"`, `{"round": "10"}`, `{}`).Replace(said)
	code, body := call(t, h, bad)
	for _, want := range []string{
		"answers[0].variants[1].id: is 1", "answers[0].variants[1].window: is missing", "answers[0].variants[1].range: is [-5, -5)",
		"answers[0].variants[1].run: is missing",
		"answers[0].variants[1].score: is NaN", "answers[0].variants[1].memory_bytes: is -1", "answers[0].variants[0].option: has 64 bytes",
		"answers[0].variants[0].wall: is 9s, shorter than run, 10s", "answers[1].round: is missing",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	if code != http.StatusBadRequest || strings.Contains(body, "variants[0].start") {
		t.Errorf("%d %s", code, body)
	}
	code, body = call(t, h, `{"job": "Train", "session": 0, "wait": "31s", "answers": [{"round": 1}]}`)
	for _, want := range []string{"job: is", "key: is missing", "wait: is 31s", "answers: come with session 0"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	if code != http.StatusBadRequest {
		t.Errorf("%d %s", code, body)
	}
	for want, body := range map[string]string{
		"answers: has 17 answers": `{"job": "a", "session": 1, "answers": [` + strings.Repeat(`{"round": 1},`, 16) + `{"round": 1}]}`,
		"answers: has 4097 variants": `{"job": "a", "session": 1, "answers": [{"round": 1, "variants": [` +
			strings.Repeat(`{},`, MaxVariants) + `{}]}]}`,
		"more problems": `{"job": "a", "session": 1, "answers": [{"round": 1, "variants": [` + strings.Repeat(`{},`, 100) +
			`{}]}]}`,
		"key: is missing":       `{"job": "a"}`,
		"key: has 129 bytes":    `{"job": "a", "key": "` + strings.Repeat("a", 129) + `"}`,
		"has more than 2097152": `{"job": "` + strings.Repeat("a", MaxAgentBytes) + `"}`,
	} {
		if code, got := call(t, h, body); code < 400 || len(got) > 20_000 || !strings.Contains(got, want) {
			t.Errorf("%s: %d %.300s", want, code, got)
		}
	}
}

// TestAgentsNeedNoToken: the job's key is enough for Negotiate, and for nothing else; without a token the daemon still answers
// to this machine's names alone.
func TestAgentsNeedNoToken(t *testing.T) {
	h := Handler(Options{Service: apitest.New(), Token: "0123456789abcdef"})
	if code, body := call(t, h, said); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/sluice.v1alpha1.SluiceService/AgentKey",
		strings.NewReader(`{"job": "train"}`))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusUnauthorized {
		t.Errorf("a key without the token: %d %s", w.Code, w.Body)
	}
	req = httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://evil.example"+path, strings.NewReader(said))
	req.Header.Set("Content-Type", "application/json")
	w = httptest.NewRecorder()
	if Handler(Options{Service: apitest.New()}).ServeHTTP(w, req); w.Code != http.StatusForbidden {
		t.Errorf("under another name: %d %s", w.Code, w.Body)
	}
	if code, body := call(t, h, said, "Sec-Fetch-Site", "cross-site"); code != http.StatusForbidden {
		t.Errorf("from a page of another site: %d %s", code, body)
	}
}

// TestAgentsDoNotCrowdPeopleOut: as many agents as may wait do so, one more is refused, and a person is answered.
func TestAgentsDoNotCrowdPeopleOut(t *testing.T) {
	fake := apitest.New()
	inside, leave := make(chan struct{}), make(chan struct{})
	fake.Agent = func(context.Context, host.Negotiation) (host.Heard, error) {
		inside <- struct{}{}
		<-leave
		return host.Heard{}, nil
	}
	h := Handler(Options{Service: fake})
	type answer struct {
		code int
		body string
	}
	done := make(chan answer)
	for range MaxAgentCalls {
		go func() {
			code, body := call(t, h, said)
			done <- answer{code, body}
		}()
	}
	for range MaxAgentCalls {
		select {
		case <-inside:
		case a := <-done:
			t.Fatalf("an agent was not let in: %+v", a)
		}
	}
	if code, body := call(t, h, said); code != http.StatusTooManyRequests {
		t.Errorf("one too many: %d %s", code, body)
	}
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://127.0.0.1/sluice.v1alpha1.SluiceService/ListJobs",
		strings.NewReader("{}"))
	req.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, req); w.Code != http.StatusOK {
		t.Errorf("a person: %d %s", w.Code, w.Body)
	}
	close(leave)
	for range MaxAgentCalls {
		if a := <-done; a.code != http.StatusOK {
			t.Errorf("an agent that waited: %+v", a)
		}
	}
}

// TestAgentHangsUp: whoever waits and goes away is noticed, although the time to read its call was over long ago.
func TestAgentHangsUp(t *testing.T) {
	fake := apitest.New()
	came, left := make(chan struct{}), make(chan struct{})
	fake.Agent = func(ctx context.Context, _ host.Negotiation) (host.Heard, error) {
		close(came)
		<-ctx.Done()
		close(left)
		return host.Heard{}, ctx.Err()
	}
	s := httptest.NewServer(Handler(Options{Service: fake}))
	defer s.Close()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.WriteString(c, "POST "+path+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 31\r\n\r\n"+
		`{"job":"train", "session": "7"}`)
	if err != nil {
		t.Fatal(err)
	}
	<-came
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	<-left
}

// FuzzNegotiate: whatever an agent sends is refused, or is within the bounds that the rest relies on.
func FuzzNegotiate(f *testing.F) {
	f.Add([]byte(said))
	f.Add([]byte(`{"job": "a", "key": "k"}`))
	f.Add(
		[]byte(
			`{"job": "a", "session": 1, "answers": [{"round": 1, "variants": [{"window": 1}, {"id": 2, "window": 1, "wall": "9s", "memoryBytes": "7"}]}]}`))
	f.Add([]byte(`{"job": "a", "session": "18446744073709551615", "answers": [{"round": 1, "variants": [null, {"score": "-Infinity"}]}]}`))
	f.Add(
		[]byte(
			`{"job": "a", "session": 1, "answers": [{"round": 1, "variants": [{"window": 1, "range": {"from": "-9223372036854775808", "to": "9223372036854775807"}, "start": "0001-01-01T00:00:00Z", "run": "315576000000s"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var m pb.NegotiateRequest
		if (strict{"json"}).Unmarshal(data, &m) != nil {
			return
		}
		n, err := negotiation(&m)
		if err != nil {
			return
		}
		if !job.ValidID(n.Job) || n.Wait < 0 || n.Wait > host.MaxWait || len(n.Answers) > MaxAnswers || n.Session == 0 &&
			(n.Key == "" || len(n.Answers) > 0) {
			t.Fatalf("accepted %+v", n)
		}
		for _, a := range n.Answers {
			ids := map[uint32]bool{}
			for _, v := range a.Variants {
				signal := v.Range == job.Range{} && v.Run == 0 && v.Start == 0
				piece := v.Range.From >= 0 && !v.Range.Empty() && v.Run > 0 &&
					v.Start >= quantity.At(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) && v.Start.Add(v.Wall) != quantity.Never
				if a.Round == 0 || ids[v.ID] || v.Window == 0 || !signal && !piece || v.Wall < v.Run || v.Wall > config.MaxTime ||
					v.Score < 0 || v.Score > score.One || v.Demand[trp.Memory] < 0 {
					t.Fatalf("accepted %+v", v)
				}
				ids[v.ID] = true
			}
		}
	})
}
