package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

const jobFile = `
apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec: {items: {total: 100, perItem: 20ms}, memory: 600Mi, command: [./count.sh]%s}
`

// serve answers on a loopback port until the test ends.
func serve(t *testing.T, o api.Options) (url string, c sluicev1alpha1connect.SluiceServiceClient) {
	t.Helper()
	o.Listen = "127.0.0.1:0"
	s, err := api.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	transport := &http.Transport{}
	t.Cleanup(func() {
		cancel()
		transport.CloseIdleConnections()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	url = "http://" + s.Addr()
	return url, sluicev1alpha1connect.NewSluiceServiceClient(&http.Client{Transport: transport}, url)
}

// post sends JSON as curl would and returns the status and the answer.
func post(t *testing.T, url, method, body string, header ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/sluice.v1alpha1.SluiceService/"+method,
		strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			req.Host = header[i+1]
		} else {
			req.Header.Set(header[i], header[i+1])
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// TestPlainJSON: what a person with curl sees.
func TestPlainJSON(t *testing.T) {
	url, _ := serve(t, api.Options{Service: apitest.New()})
	code, body := post(t, url, "GetJob", `{"name": "count-words"}`)
	var got struct {
		Job struct {
			Name, State, StateCode, Progress, Total, Wait, Submitted string
			History                                                  []struct {
				Subjob, Outcome, PeakMemoryBytes string
				Range                            struct{ From, To string }
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != 200 {
		t.Fatalf("status %d, %v: %s", code, err, body)
	}
	j := got.Job
	if j.Name != "count-words" || j.State != "RUNNING" || j.StateCode != "R" || j.Progress != "4000" || j.Wait != "60s" ||
		j.Submitted != "2026-03-01T11:49:00Z" ||
		len(j.History) != 2 || j.History[0].Subjob != "1-42" || j.History[0].Outcome != "DONE" || j.History[0].Range.To != "4000" ||
		j.History[0].PeakMemoryBytes != "536870912" {
		t.Errorf("got %s", body)
	}

	text, _ := json.Marshal(map[string]string{"job": fmt.Sprintf(jobFile, "fresh", ""), "request_id": "r1"})
	code, body = post(t, url, "Submit", string(text))
	if code != 200 || !strings.Contains(body, `"created":true`) || !strings.Contains(body, "no workdir comes along") {
		t.Errorf("submit: %d %s", code, body)
	}
	code, body = post(t, url, "Submit", string(text))
	if code != 200 || !strings.Contains(body, `"created":false`) {
		t.Errorf("the same submit again: %d %s", code, body)
	}
}

// TestEveryProblemIsTold: a refused job file comes back with all its mistakes and their places.
func TestEveryProblemIsTold(t *testing.T) {
	url, _ := serve(t, api.Options{Service: apitest.New()})
	text, _ := json.Marshal(map[string]string{"job": "apiVersion: sluice.dev/v1alpha1\nkind: Jbo\nmetadata: {nam: x}\nspec: {}\n",
		"fileName": "my.yml"})
	code, body := post(t, url, "Submit", string(text))
	var e struct{ Code, Message string }
	if err := json.Unmarshal([]byte(body), &e); err != nil || code != 400 || e.Code != "invalid_argument" {
		t.Fatalf("%d %s %v", code, body, err)
	}
	for _, want := range []string{"my.yml:2:7: kind:", "my.yml:3:12: metadata.nam: unknown key", `"memory" is missing`,
		`"command" is missing`, "does not say what the work is"} {
		if !strings.Contains(e.Message, want) {
			t.Errorf("no %q in %s", want, e.Message)
		}
	}
}

// TestRequestsAreChecked: wrong fields never reach the service.
func TestRequestsAreChecked(t *testing.T) {
	fake := apitest.New()
	url, _ := serve(t, api.Options{Service: fake})
	for _, c := range []struct{ method, body, want string }{
		{"GetJob", `{}`, "name: is missing"},
		{"GetJob", `{"name": "../etc"}`, "want 1 to 63 of a-z"},
		{"GetJob", `{"nam": "x"}`, "nam"},
		{"GetJob", `{`, "unmarshal"},
		{"Cancel", `{"name": "a", "requestId": "a b"}`, "request_id"},
		{"ListJobs", `{"states": ["RUNNING", "SLEEPING"], "limit": -1}`, "SLEEPING"},
		{"ListJobs", `{"states": ["RUNNING", 99], "limit": -1}`, "states: 99 is no state"},
		{"ListJobs", `{"states": ["STATE_UNSPECIFIED"], "limit": -1}`, "limit: is -1"},
		{"WaitJob", `{"names": []}`, "names: has 0 names"},
		{"WaitJob", `{"names": ["a"], "timeout": "3600s"}`, "timeout: is 1h0m0s; want 0s to 5m0s"},
		{"Reserve", `{"kind": "LEASE"}`, "kind: is"},
		{"Reserve", `{"kind": "DRAIN", "start": "2026-03-01T12:00:00Z", "end": "2026-03-01T11:00:00Z"}`, "end: is not after start"},
		{"Reserve", `{"kind": "DRAIN", "start": "2026-03-01T12:00:00Z", "end": "2026-03-01T14:00:00Z", "every": "3600s"}`,
			"every: is shorter"},
		{"Reserve", hours(`"every": "0s"`), "every: is 0s"},
		{"Reserve", hours(`"days": "mon-fri", "to": "18:00"`), `to: is \"18:00\"; it needs time_zone`},
		{"Reserve", hours(`"every": "86400s", "timeZone": "Europe/Berln"`), `time_zone: no time zone is called \"Europe/Berln\"`},
		{"Reserve", hours(`"every": "86400s", "timeZone": "Local"`), "time_zone: no time zone"},
		{"Reserve", hours(`"timeZone": "UTC"`), "time_zone: is for what repeats"},
		{"Reserve", hours(`"every": "129600s", "timeZone": "UTC"`),
			"every: is 36h0m0s; the clock of a time zone is followed by whole days"},
		{"Reserve", hours(`"days": "m-f", "timeZone": "UTC"`), `days: \"m-f\" is no day of the week`},
		{"Reserve", hours(`"days": "mon", "every": "172800s", "timeZone": "UTC"`), "days of the week need 24h"},
		{"Reserve", hours(`"days": "mon", "timeZone": "UTC", "from": "8 am"`), "from: "},
		{"Reserve", `{"kind": "DRAIN", "days": "mon", "timeZone": "UTC"}`, "end: is missing"},
		{"Reserve", strings.Replace(hours(`"days": "mon,tue", "timeZone": "UTC"`), "01T14", "03T14", 1), "it lasts 50h"},
		{"Reserve", strings.ReplaceAll(hours(`"days": "mon,tue", "timeZone": "UTC"`), "2026", "2200"), "beyond all calendars"},
		{"Reserve", `{"kind": "DRAIN", "start": "0001-03-01T12:00:00Z"}`, "start: is outside"},
		{"Reserve", `{"kind": "DRAIN", "slice": "a b"}`, "slice: is"},
		{"Unreserve", `{}`, "id: is missing"},
		{"Release", `{}`, "slice: is missing"},
		{"SetQueue", `{"queue": {"name": "q", "cap": -1, "weight": "-3", "maxWindow": "-1s"}}`, "queue.cap: is -1"},
		{"DrainZone", `{"name": "A b"}`, "name: is"},
		{"DrainZone", `{}`, "name: is"},
		{"SetQueue", `{"queue": {"name": "q", "cap": -1, "weight": "-3", "maxWindow": "-1s"}}`, "queue.weight: is -3"},
		{"Submit", `{"job": "x", "snapshot": "AAAA"}`, "snapshot: is no gzip"},
		{"Submit", string(mustJSON(map[string]string{"job": fmt.Sprintf(jobFile, "a", ", workdir: .")})), "did not come along"},
		{"ListOutputs", `{"name": "A"}`, "want 1 to 63"},
		{"History", `{"since": "1026-03-01T12:00:00Z"}`, "since: is outside"},
	} {
		code, body := post(t, url, c.method, c.body)
		if code != 400 || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s, want %q", c.method, c.body, code, body, c.want)
		}
	}
	if calls := fake.Calls(); len(calls) > 0 {
		t.Errorf("calls reached the service: %q", calls)
	}
}

// hours is a reservation of two hours, with more.
func hours(more string) string {
	return `{"kind": "SERVING", "start": "2026-03-01T12:00:00Z", "end": "2026-03-01T14:00:00Z", ` + more + `}`
}

// TestAReservationOfATimeZone: the service is asked for its first occurrence and for how it goes on, and the caller is told the next ones.
func TestAReservationOfATimeZone(t *testing.T) {
	fake := apitest.New()
	url, _ := serve(t, api.Options{Service: fake, Now: apitest.Now})
	for body, want := range map[string]string{
		// 2026-03-01 is a Sunday, and New York changes its clocks on the 8th.
		hours(`"every": "86400s", "timeZone": "America/New_York"`): "SERVING 07:00+2h0m0s " +
			"2026-03-01T07:00:00-05:00 2026-03-08T07:00:00-04:00",
		hours(`"days": "mon-fri", "timeZone": "America/New_York", "from": "08:00", "to": "18:00"`): "SERVING 08:00-18:00+10h0m0s " +
			"2026-03-02T08:00:00-05:00 2026-03-09T08:00:00-04:00",
		hours(`"every": "86400s"`): "SERVING +2h0m0s 2026-03-01T12:00:00Z 2026-03-08T12:00:00Z",
	} {
		code, text := post(t, url, "Reserve", body)
		var got struct {
			Reservations []struct {
				Kind, From, To string
				Start, End     time.Time
				Upcoming       []struct{ Start time.Time }
			}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || code != 200 || len(got.Reservations) != 1 {
			t.Fatalf("%s: %d %s (%v)", body, code, text, err)
		}
		r, asked := got.Reservations[0], fake.Reserved()
		if r.To != "" {
			r.To = "-" + r.To
		}
		zone := time.UTC
		if asked.Calendar.Zone != "" {
			var err error
			if zone, err = time.LoadLocation(asked.Calendar.Zone); err != nil {
				t.Fatal(err)
			}
		}
		later, ok := timeline.Overlap(&asked, apitest.At(6*24*time.Hour+12*time.Hour), quantity.Never)
		said := fmt.Sprintf("%s %s%s+%v %s %s", r.Kind, r.From, r.To, r.End.Sub(r.Start),
			r.Start.In(zone).Format(time.RFC3339), later.Start.Time().In(zone).Format(time.RFC3339))
		if said != want || !ok {
			t.Errorf("%s\nis  %s\nwant %s", body, said, want)
		}
		if len(r.Upcoming) != 3 || !r.Upcoming[0].Start.Equal(r.Start) || quantity.At(r.Start) != asked.Start {
			t.Errorf("upcoming are %v, it begins at %v, asked for was %v", r.Upcoming, r.Start, asked.Start.Time())
		}
	}
}

// TestAJobOfAnyNameIsFound: a journal of an older version may hold a job without a name, and only who can name it can cancel it.
func TestAJobOfAnyNameIsFound(t *testing.T) {
	fake := apitest.New()
	url, _ := serve(t, api.Options{Service: fake})
	for name, method := range map[string]string{"": "Cancel", "a/b": "Explain", "A": "GetJob"} {
		body := string(mustJSON(map[string]string{"name": name}))
		if code, answer := post(t, url, method, body); code != 400 {
			t.Errorf("%s of no job %q: %d %s", method, name, code, answer)
		}
		fake.Set(status.Job{Name: job.ID(name), State: job.Waiting})
		if code, answer := post(t, url, method, body); code != 200 {
			t.Errorf("%s of job %q: %d %s", method, name, code, answer)
		}
	}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// TestKindsTravel: every kind of error arrives as itself, with its whole message.
func TestKindsTravel(t *testing.T) {
	fake := apitest.New()
	_, c := serve(t, api.Options{Service: fake})
	for k := errkind.Unknown; k <= errkind.Corrupt; k++ {
		fake.Err = errkind.Errorf(k, "first line\nsecond line")
		_, err := c.ListSlices(t.Context(), connect.NewRequest(&pb.ListSlicesRequest{}))
		var sent *connect.Error
		if !errors.As(err, &sent) || api.Kind(err) != k || sent.Message() != "first line\nsecond line" {
			t.Errorf("kind %s arrives as %s: %v", k, api.Kind(err), err)
		}
	}
}

// TestLists: every list arrives whole.
func TestLists(t *testing.T) {
	_, c := serve(t, api.Options{Service: apitest.New()})
	ctx := t.Context()
	jobs, err := c.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{States: []pb.Job_State{pb.Job_PENDING, pb.Job_FAILED}, Limit: 1}))
	if err != nil || len(jobs.Msg.Jobs) != 1 || jobs.Msg.Jobs[0].Name != "gang" || jobs.Msg.LeftOut != 1 ||
		len(jobs.Msg.Jobs[0].History) != 0 {
		t.Errorf("jobs: %v %v", jobs, err)
	}
	slices, err := c.ListSlices(ctx, connect.NewRequest(&pb.ListSlicesRequest{}))
	if err != nil || len(slices.Msg.Slices) != 1 || slices.Msg.Slices[0].MemoryBytes != 40<<30 ||
		slices.Msg.Slices[0].Reservations[0].Kind != pb.Reservation_OWNER {
		t.Errorf("slices: %v %v", slices, err)
	}
	windows, err := c.ListWindows(ctx, connect.NewRequest(&pb.ListWindowsRequest{}))
	if err != nil || windows.Msg.Windows[0].Until != pb.Reservation_OWNER || windows.Msg.Windows[0].Asked != 3 {
		t.Errorf("windows: %v %v", windows, err)
	}
	queues, err := c.ListQueues(ctx, connect.NewRequest(&pb.ListQueuesRequest{}))
	if err != nil || queues.Msg.Queues[0].Settings.Weight != 1 || queues.Msg.Queues[0].AttainedGibSeconds != 1234.5 {
		t.Errorf("queues: %v %v", queues, err)
	}
	zones, err := c.ListZones(ctx, connect.NewRequest(&pb.ListZonesRequest{}))
	if err != nil || len(zones.Msg.Zones) != 2 || zones.Msg.Zones[0].Name != "local-1" || zones.Msg.Zones[0].Nodes[1] != "vm-3" ||
		zones.Msg.Zones[0].Homed != 3 || zones.Msg.Zones[1].Slices != 4 {
		t.Errorf("zones: %v %v", zones, err)
	}
	locks, err := c.ListAirlocks(ctx, connect.NewRequest(&pb.ListAirlocksRequest{}))
	if err != nil || len(locks.Msg.Airlocks) != 2 || locks.Msg.Airlocks[1].Level != "off" || locks.Msg.Airlocks[1].Memory != nil ||
		locks.Msg.Airlocks[1].At != nil {
		t.Errorf("airlocks: %v %v", locks, err)
	} else if l := locks.Msg.Airlocks[0]; l.Memory.Share != 937 || l.Stands[0].Subjob != "1-43" || l.Steps[1].Spared != "train" ||
		l.Steps[1].SparedPlace.Priority != 5 || l.Steps[2].SparedPlace != nil || l.Counts.Suspended != 2 {
		t.Errorf("the first airlock: %v", l)
	}
	told, err := c.Explain(ctx, connect.NewRequest(&pb.ExplainRequest{Name: "count-words"}))
	if err != nil || len(told.Msg.Explanation.Endured) != 3 || told.Msg.Explanation.Endured[1].Step != "recovered" {
		t.Errorf("what a job endured: %v %v", told, err)
	}
	past, err := c.History(ctx, connect.NewRequest(&pb.HistoryRequest{Since: timestamppb.New(apitest.Now())}))
	if err != nil || past.Msg.Slices[0].Spans[0].Kind != 0 || past.Msg.Slices[0].Spans[1].Committed.To != 4000 {
		t.Errorf("history: %v %v", past, err)
	}
	about, err := c.About(ctx, connect.NewRequest(&pb.AboutRequest{}))
	if err != nil || about.Msg.About.Mechanism != "sja" || about.Msg.About.Uptime.AsDuration() != time.Hour {
		t.Errorf("about: %v %v", about, err)
	}
	dry, err := c.DryRun(ctx, connect.NewRequest(&pb.DryRunRequest{Job: fmt.Sprintf(jobFile, "a", ", workdir: .") + "---" +
		fmt.Sprintf(jobFile, "b", "")}))
	if err != nil || len(dry.Msg.Explanations) != 2 || len(dry.Msg.Warnings) != 1 || !strings.HasPrefix(dry.Msg.Warnings[0], "b: ") {
		t.Errorf("dry run: %v %v", dry, err)
	}
}

// TestSubmitSeveral: the jobs of a file go in order; what was accepted before an error is said.
func TestSubmitSeveral(t *testing.T) {
	fake := apitest.New()
	_, c := serve(t, api.Options{Service: fake})
	_, err := c.Submit(t.Context(), connect.NewRequest(&pb.SubmitRequest{Job: fmt.Sprintf(jobFile, "one", "") + "---" +
		fmt.Sprintf(jobFile, "train", ""), RequestId: "r"}))
	if api.Kind(err) != errkind.Exists || !strings.Contains(err.Error(), "accepted, and standing: one") {
		t.Errorf("error %v", err)
	}
}

// TestLogs: the bytes arrive, in pieces where there are many; an end of the server ends a follower with a reason.
func TestLogs(t *testing.T) {
	fake := apitest.New()
	fake.LogText = strings.Repeat("0123456789abcdef", 20_000)
	_, c := serve(t, api.Options{Service: fake})
	stream, err := c.Logs(t.Context(), connect.NewRequest(&pb.LogsRequest{Name: "train", Subjob: "1-42"}))
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	for stream.Receive() {
		got.Write(stream.Msg().Data)
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || got.String() != fake.LogText {
		t.Errorf("got %d bytes, %v", got.Len(), err)
	}
	for _, r := range []*pb.LogsRequest{{Name: "nobody"}, {Name: "train", Subjob: "x"}} {
		stream, err := c.Logs(t.Context(), connect.NewRequest(r))
		if err != nil {
			t.Fatal(err)
		}
		if stream.Receive() || stream.Err() == nil {
			t.Errorf("%v: no error", r)
		}
		stream.Close()
	}
}

// TestReadOutput: files come in order; what a subjob planted there does not lead out or block.
func TestReadOutput(t *testing.T) {
	dir := t.TempDir()
	big := bytes.Repeat([]byte("x"), 200_000)
	for name, data := range map[string][]byte{"1/a.txt": []byte("first\n"), "1/empty": nil, "2/b.bin": big, "secret": []byte("secret")} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, data, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("../secret", filepath.Join(dir, "2/link")),
		unix.Mkfifo(filepath.Join(dir, "2/pipe"), 0o644)); err != nil {
		t.Fatal(err)
	}
	fake := apitest.New()
	one := status.Output{Token: job.Token{Epoch: 1, Seq: 1}, Range: job.Range{To: 10}, Path: filepath.Join(dir, "1"),
		Files: []string{"a.txt", "empty"}, Bytes: 6}
	two := status.Output{Token: job.Token{Epoch: 1, Seq: 2}, Range: job.Range{From: 10, To: 20}, Path: filepath.Join(dir, "2"),
		Files: []string{"b.bin"}}
	fake.OutputList = []status.Output{one, two}
	_, c := serve(t, api.Options{Service: fake})
	files := ""
	read := func(subjob string) (text string, paths []string, err error) {
		stream, err := c.ReadOutput(t.Context(), connect.NewRequest(&pb.ReadOutputRequest{Name: "train", Subjob: subjob, File: files}))
		if err != nil {
			t.Fatal(err)
		}
		for stream.Receive() {
			text += string(stream.Msg().Data)
			if p := stream.Msg().Path; p != "" {
				paths = append(paths, p)
			}
		}
		return text, paths, errors.Join(stream.Err(), stream.Close())
	}
	if text, paths, err := read(""); err != nil || text != "first\n"+string(big) || fmt.Sprint(paths) != "[a.txt empty b.bin]" {
		t.Errorf("%d bytes, %v, %v", len(text), paths, err)
	}
	if text, _, err := read("1-1"); err != nil || text != "first\n" {
		t.Errorf("%q, %v", text, err)
	}
	if _, _, err := read("1-9"); api.Kind(err) != errkind.NotFound {
		t.Errorf("unknown subjob: %v", err)
	}
	for pattern, want := range map[string]string{"a.txt": "[a.txt]", "?.*": "[a.txt b.bin]", "none": "[]"} {
		files = pattern
		if _, paths, err := read(""); err != nil || fmt.Sprint(paths) != want {
			t.Errorf("%s: %v, %v", pattern, paths, err)
		}
	}
	files = "["
	if _, _, err := read(""); api.Kind(err) != errkind.Invalid || !strings.Contains(err.Error(), "no pattern") {
		t.Errorf("%v", err)
	}
	files = ""
	for _, planted := range []string{"link", "pipe", "../secret", "missing"} {
		two.Files = []string{planted}
		fake.OutputList = []status.Output{two}
		if text, _, err := read(""); err == nil || strings.Contains(text, "secret") {
			t.Errorf("%s: %q, %v", planted, text, err)
		}
	}
	fake.OutputList = []status.Output{{Token: one.Token, Path: "store://2c26", Bytes: 6}}
	if _, _, err := read(""); api.Kind(err) != errkind.Unsupported || !strings.Contains(err.Error(), "sluice store get 2c26") {
		t.Errorf("in the store: %v, want it said and not nothing shown", err)
	}
	fake.OutputList = []status.Output{two}
	list, err := c.ListOutputs(t.Context(), connect.NewRequest(&pb.ListOutputsRequest{Name: "train"}))
	if err != nil || len(list.Msg.Outputs) != 1 || list.Msg.Outputs[0].Range.From != 10 {
		t.Errorf("%v %v", list, err)
	}
}

// TestNamesThatAreNoText: a file whose name is not UTF-8 is shown escaped, and hides nothing beside it.
func TestNamesThatAreNoText(t *testing.T) {
	dir, names := t.TempDir(), []string{"caf\xe9", "two\nlines", "zoë"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fake := apitest.New()
	fake.OutputList = []status.Output{{Token: job.Token{Epoch: 1, Seq: 1}, Range: job.Range{To: 10}, Path: dir, Files: names}}
	_, c := serve(t, api.Options{Service: fake})
	want := fmt.Sprintf("%q", []string{`caf\xe9`, "two\nlines", "zoë"})
	list, err := c.ListOutputs(t.Context(), connect.NewRequest(&pb.ListOutputsRequest{Name: "train"}))
	if err != nil || len(list.Msg.Outputs) != 1 || fmt.Sprintf("%q", list.Msg.Outputs[0].Files) != want {
		t.Errorf("%v, %v, want %s", list, err, want)
	}
	stream, err := c.ReadOutput(t.Context(), connect.NewRequest(&pb.ReadOutputRequest{Name: "train"}))
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	text := ""
	for stream.Receive() {
		text += string(stream.Msg().Data)
		if p := stream.Msg().Path; p != "" {
			paths = append(paths, p)
		}
	}
	if err := errors.Join(stream.Err(), stream.Close()); err != nil || text != strings.Join(names, "") || fmt.Sprintf("%q", paths) != want {
		t.Errorf("%q of %q: %v, want all of %s", text, paths, err, want)
	}
}

// TestGRPC: the same port speaks gRPC, without TLS on this machine.
func TestGRPC(t *testing.T) {
	url, _ := serve(t, api.Options{Service: apitest.New()})
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	c := sluicev1alpha1connect.NewSluiceServiceClient(&http.Client{Transport: transport}, url, connect.WithGRPC())
	resp, err := c.GetJob(t.Context(), connect.NewRequest(&pb.GetJobRequest{Name: "gang"}))
	if err != nil || resp.Msg.Job.State != pb.Job_FAILED {
		t.Errorf("%v %v", resp, err)
	}
}

// TestAddressInUse: the message says what to do.
func TestAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = api.Listen(api.Options{Service: apitest.New(), Listen: l.Addr().String()})
	if errkind.Of(err) != errkind.Conflict || !strings.Contains(err.Error(), "is in use") || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("error %v", err)
	}
}

// TestStopEndsFollowers: a daemon that stops does not wait for those who watch.
func TestStopEndsFollowers(t *testing.T) {
	s, err := api.Listen(api.Options{Service: apitest.New(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	c := sluicev1alpha1connect.NewSluiceServiceClient(&http.Client{Transport: transport}, "http://"+s.Addr())
	stream, err := c.Logs(t.Context(), connect.NewRequest(&pb.LogsRequest{Name: "train", Follow: true}))
	if err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() {
		t.Fatalf("no log: %v", stream.Err())
	}
	cancel()
	for stream.Receive() {
	}
	if api.Kind(stream.Err()) != errkind.Unavailable || !strings.Contains(stream.Err().Error(), "is stopping") {
		t.Errorf("follower: %v", stream.Err())
	}
	stream.Close()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}

// FuzzJSON: no body breaks the server or is answered with its own fault.
func FuzzJSON(f *testing.F) {
	h := api.Handler(api.Options{Service: apitest.New()})
	methods := []string{"Submit", "DryRun", "Cancel", "Requeue", "Delete", "PauseJob", "ListJobs", "GetJob", "Explain", "SetQueue",
		"Reserve", "Unreserve", "Release", "ListOutputs", "History", "DrainZone"}
	f.Add(uint8(0), `{"job": "kind: Job", "snapshot": "H4sI", "requestId": "a"}`)
	f.Add(uint8(8), `{"kind": "DRAIN", "start": "2026-03-01T12:00:00Z", "every": "1s"}`)
	f.Add(uint8(7), `{"queue": {"name": "a", "weight": "3", "maxWindow": "9999999999s"}}`)
	f.Add(uint8(4), `{"states": ["R"], "limit": 3}`)
	f.Fuzz(func(t *testing.T, which uint8, body string) {
		req := httptest.NewRequest(http.MethodPost, "http://localhost/sluice.v1alpha1.SluiceService/"+methods[int(which)%len(methods)],
			strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, req)
		// A client's mistakes are its own; 429 is the fuzzer being quick.
		if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
			t.Fatalf("%s %q: %d %s", req.URL.Path, body, w.Code, w.Body)
		}
	})
}

// TestAJobShowsTheFileItCameFrom, under its name, which the spec that jobs like it share does not have.
func TestAJobShowsTheFileItCameFrom(t *testing.T) {
	fake := apitest.New()
	url, _ := serve(t, api.Options{Service: fake})
	file := "apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: one-of-many}\nspec:\n  command: [sh]\n  memory: 64Mi\n  " +
		"items: {total: 10, perItem: 1s}\n"
	if code, answer := post(t, url, "Submit", string(mustJSON(map[string]string{"job": file}))); code != 200 {
		t.Fatalf("submit: %d %s", code, answer)
	}
	if code, answer := post(t, url, "GetJob", `{"name": "one-of-many"}`); code != 200 || !strings.Contains(answer, `name: one-of-many\n`) {
		t.Errorf("%d %s", code, answer)
	}
}
