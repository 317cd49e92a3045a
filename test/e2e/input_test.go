package e2e

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
)

func TestBadFlags(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, three)
	for _, c := range []struct {
		flags []string
		words []string
	}{
		{[]string{"--gpus", "sim:nonsense"}, []string{"nonsense"}},
		{[]string{"--policy", "nope", "--mechanism", "auction", "--listen", "0.0.0.0:1"},
			[]string{`policy "nope"`, "fair", `mechanism "auction"`, "--listen 0.0.0.0:1"}},
		{[]string{"--horizon", "0s"}, []string{"--horizon"}},
		{[]string{"--log", "loud"}, []string{"--log", "debug"}},
		{[]string{"--listen", "here"}, []string{"--listen"}},
		{[]string{"--tls-cert", "x"}, []string{"--tls-key"}},
		{[]string{"--config", "/no/such/file"}, []string{"--config", "/no/such/file"}},
		{[]string{"--config", d.write("bad.yml", "queues: [{name: A}, {name: b, wieght: 2}, {name: c, cap: -1}]")},
			[]string{"queues[0].name", `did you mean "weight"`, "queues[2].cap"}},
		{[]string{"--data", d.write("a-file", "")}, []string{"a-file", "not a directory"}},
		{[]string{"--nope"}, []string{"--nope"}},
	} {
		d.flags = append([]string{"--gpus", three}, c.flags...)
		text := d.refused()
		says(t, text, c.words...)
		if strings.Contains(text, "goroutine ") {
			t.Errorf("%v: a crash: %s", c.flags, text)
		}
	}
}

func TestTwoDaemons(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	same := newDaemon(t, three)
	same.data = d.data
	says(t, same.refused(), d.data, "in use by another daemon")
	same = newDaemon(t, three)
	same.addr = d.addr
	says(t, same.refused(), d.addr, "in use", "--listen")
	d.submit(spec("still", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
}

func TestNoPermission(t *testing.T) {
	t.Parallel()
	if os.Geteuid() == 0 {
		t.Skip("skipped: root is permitted everything")
	}
	d := newDaemon(t, three)
	if err := os.Mkdir(d.data, 0o500); err != nil {
		t.Fatal(err)
	}
	says(t, d.refused(), d.data, "permission denied")
}

// Every job of a file that could not run is named with what would fit, and none of the file is taken.
func TestJobsThatCanNeverRun(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	text := spec("good", "items: {total: 10, perItem: 1ms}", each(":")) +
		spec("wide", "items: {total: 10, perItem: 1ms}", each(":"), "memory: 10Gi") +
		spec("long", "items: {total: 100000, perItem: 1s, grid: 100000}", each(":")) +
		spec("many", "rigid: {walltime: 10m, slices: 9}", "true") +
		spec("lost", "items: {total: 10, perItem: 1ms}", each(":"), "queue: nowhere")
	for _, args := range [][]string{{"submit", "-f", "-"}, {"submit", "-f", "-", "--dry-run"}} {
		_, errs, code := d.as([]byte(text), args...)
		if code != 2 {
			t.Errorf("%v: exit %d, want 2", args, code)
		}
		says(t, errs, `job "wide"`, "256 MiB", `job "long"`, `job "many"`, `job "lost"`, `no queue "nowhere"`, "what would fit")
	}
	if out := d.must("jobs", "-o", "name"); out != "" {
		t.Errorf("of a refused file these were taken: %s", out)
	}
}

func TestBadJobFilesNameEveryMistake(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	path := d.write("bad.yml", `apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: ../x}
spec:
  items: {total: -5, perItem: 20, gird: 3}
  memory: 99Zi
  command: []
  env: {SLUICE_X: 1}
  subdir: ../..
`)
	d.fails(2, []string{"bad.yml:3:18", "metadata.name", "bad.yml:5:18", "spec.items.total", "20s or 20m", `did you mean "grid"`,
		"bad.yml:6:11", "99Zi", "spec.command", "spec.env.SLUICE_X", "spec.subdir"}, "submit", path)
	d.fails(2, []string{"no-file.yml"}, "submit", "no-file.yml")
	for name, text := range map[string]string{
		"not yaml": "{{{", "binary": "\x00\x01\x02", "empty": "", "bomb": "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]",
		"huge": strings.Repeat("a", 5<<20),
	} {
		if _, errs, code := d.as([]byte(text), "submit", "-f", "-"); code == 0 || errs == "" || len(errs) > 10_000 {
			t.Errorf("%s: exit %d, says %.500s", name, code, errs)
		}
	}
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("good", "items: {total: 10, perItem: 1ms}", each(":")) + spec("bad", "items: {total: 1, perItem: 1ms}",
		"echo why >&2; exit 3"))
	d.must("wait", "good")
	d.fails(1, []string{"bad", "FAILED"}, "wait", "good", "bad")
	d.submit(spec("sleeps", "items: {total: 1, perItem: 20s}", "sleep 20"))
	d.fails(4, []string{"sleeps"}, "wait", "sleeps", "--timeout", "200ms")
	d.must("cancel", "sleeps")
	d.fails(1, []string{"CANCELLED"}, "wait", "sleeps")
	d.fails(1, []string{`no job "nope"`}, "wait", "nope")
	d.fails(1, []string{`no job "nope"`, `no job "nope-2"`}, "cancel", "good", "nope", "nope-2")
	d.fails(2, []string{"--help"}, "wait")
	d.fails(2, []string{"xml"}, "jobs", "-o", "xml")
	says(t, d.must("logs", "bad"), "why")
	if j := d.job("bad"); !strings.Contains(j.Reason, "why") {
		t.Errorf("the reason %q has not the program's last words", j.Reason)
	}
	d.kill()
	d.fails(3, []string{"no daemon answers at " + d.addr, "sluice up"}, "jobs")
}

// call posts a body and returns status and answer.
func (d *daemon) call(method, body string, header ...string) (int, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodPost, "http://"+d.addr+"/sluice.v1alpha1.SluiceService/"+method,
		strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestHostileCalls(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	d.submit(spec("good", "items: {total: 10, perItem: 1ms}", each(":")), "--wait")
	for _, c := range []struct {
		method, body string
		header       []string
		status       int
		word         string
	}{
		{"ListJobs", "{}", nil, 200, `"good"`}, // the example of sluice --help
		{"ListJobs", "{}", []string{"Content-Type", "text/plain"}, 415, ""},
		{"ListJobs", "no", nil, 400, "syntax error"},
		{"ListJobs", strings.Repeat("[", 100_000), nil, 400, "syntax error"},
		{"ListJobs", `{"wat": 1}`, nil, 400, "wat"},
		{"ListJobs", `{"limit": -1}`, nil, 400, "limit"},
		{"ListJobs", "{}", []string{"Host", "rebound.example"}, 403, "not this machine"},
		{"ListJobs", "{}", []string{"Origin", "http://evil.example", "Sec-Fetch-Site", "cross-site"}, 403, "another site"},
		{"GetJob", `{"name": "../../etc/passwd"}`, nil, 400, "name"},
		{"GetJob", `{"name": "none"}`, nil, 404, "no job"},
		{"ListOutputs", `{"name": "../journal"}`, nil, 400, "name"},
		{"SetQueue", `{"queue": {"name": "A B", "weight": -1}}`, nil, 400, "queue.weight"},
		{"Submit", `{"job": "a: b"}`, nil, 400, "apiVersion"},
		{"Nope", "{}", nil, 404, ""},
		{"GetJob", `{"name": "` + strings.Repeat("x", 3<<20) + `"}`, nil, 400, ""},
	} {
		status, text := d.call(c.method, c.body, c.header...)
		if status != c.status || !strings.Contains(text, c.word) {
			t.Errorf("%s %.60s %v: %d %.300s; want %d and %q", c.method, c.body, c.header, status, text, c.status, c.word)
		}
	}
	// A body without end is cut off and not kept.
	resp, err := http.Post("http://"+d.addr+"/sluice.v1alpha1.SluiceService/Submit", "application/json",
		io.MultiReader(strings.NewReader(`{"snapshot":"`), io.LimitReader(letters{}, 200<<20)))
	if err == nil {
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Error("200 MB were taken")
		}
	}
	d.done("good") // it is all still there
}

// letters never ends.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	copy(p, bytes.Repeat([]byte("A"), len(p)))
	return len(p), nil
}
