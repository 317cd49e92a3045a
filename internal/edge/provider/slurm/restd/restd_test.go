package restd

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

const jwt = "eyJhbGciOiJIUzI1NiJ9.secret"

// tokenFile is one that nobody else can read.
func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// serve is a client of a server that answers by a function.
func serve(t *testing.T, change func(*Options), answer http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	o := Options{URL: s.URL, User: "ada", TokenFile: tokenFile(t, jwt), Version: oldest, Timeout: 10 * time.Second}
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestOptionsAreChecked(t *testing.T) {
	good := tokenFile(t, jwt)
	for _, c := range []struct{ url, token, user, version, want string }{
		{"unix:/run/slurmrestd.sock", "", "", "", ""},
		{"unix:///run/slurmrestd.sock", "", "", oldest, ""},
		{"https://slurm.example:6820/api/", good, "ada", "v0.0.43", ""},
		{"http://127.0.0.1:6820", good, "ada", "", ""},
		{"http://[::1]:6820", good, "ada", "", ""},
		{"http://slurm.example:6820", good, "ada", "", "everybody on the way"},
		{"https://slurm.example", "", "ada", "", "tokenFile"},
		{"https://slurm.example", good, "", "", "user"},
		{"https://ada:secret@slurm.example", good, "ada", "", "neither a user"},
		{"https://slurm.example?x=1", good, "ada", "", "neither a user"},
		{"slurm.example:6820", good, "ada", "", "want https://"},
		{"ftp://slurm.example", good, "ada", "", "want https://"},
		{"", good, "ada", "", "want https://"},
		{"unix:", "", "", "", "the path of a socket"},
		{"unix:../sock", "", "", "", "the path of a socket"},
		{"unix:/" + strings.Repeat("a", 107), "", "", "", "107 bytes"},
		{"unix:/sock", "", "", "v0.0.39", "v0.0.38"},
		{"unix:/sock", "", "", "latest", "v0.0.45"},
	} {
		_, err := New(Options{URL: c.url, TokenFile: c.token, User: c.user, Version: c.version, Timeout: time.Second})
		if c.want == "" && err != nil || c.want != "" && (errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v: want %q", c, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "ada:secret") {
			t.Errorf("%v tells a password", err)
		}
	}
}

// A token that others may read is not used, also where that comes later.
func TestTokensThatOthersMayRead(t *testing.T) {
	path := tokenFile(t, "SLURM_JWT="+jwt+"\n")
	var heard []string
	c := serve(t, func(o *Options) { o.TokenFile = path }, func(w http.ResponseWriter, q *http.Request) {
		heard = append(heard, q.Header.Get("X-SLURM-USER-NAME")+" "+q.Header.Get("X-SLURM-USER-TOKEN"))
		fmt.Fprint(w, `{"jobs": []}`)
	})
	if _, err := c.Jobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("renewed.by.cron"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Jobs(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"ada " + jwt, "ada renewed.by.cron"}; !slices.Equal(heard, want) {
		t.Errorf("sent %q, want %q", heard, want)
	}
	for what, spoil := range map[string]func() error{
		"readable by all": func() error { return os.Chmod(path, 0o644) },
		"empty":           func() error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o600)) },
		"two lines":       func() error { return os.WriteFile(path, []byte("a\nb"), 0o600) },
		"a folder":        func() error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"away":            func() error { return os.RemoveAll(path) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Jobs(t.Context()); errkind.Of(err) != errkind.Denied || !strings.Contains(err.Error(), "tokenFile") {
			t.Errorf("%s: %v of kind %v, want denied", what, err, errkind.Of(err))
		}
		if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, []byte(jwt), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if len(heard) != 2 {
		t.Errorf("it asked all the same: %q", heard)
	}
}

// Certificates are checked, and whom it is sent on to is not told the token.
func TestWhomItBelieves(t *testing.T) {
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if strings.HasSuffix(q.URL.Path, "/nodes/") {
			http.Redirect(w, q, other.URL, http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprint(w, `{"jobs": []}`)
	}))
	defer s.Close()
	s.Config.ErrorLog = nil
	for _, known := range []bool{false, true} {
		o := Options{URL: s.URL, User: "ada", TokenFile: tokenFile(t, jwt), Version: oldest, Timeout: 10 * time.Second}
		if known {
			o.Roots = x509.NewCertPool()
			o.Roots.AddCert(s.Certificate())
		}
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Jobs(t.Context()); (err == nil) != known || err != nil && errkind.Of(err) != errkind.Unavailable {
			t.Errorf("known: %t: %v", known, err)
		}
		if _, err := c.Nodes(t.Context()); errkind.Of(err) != errkind.Unavailable {
			t.Errorf("sent elsewhere: %v of kind %v", err, errkind.Of(err))
		}
	}
	if elsewhere > 0 {
		t.Error("it went where it was sent")
	}
}

// What is no answer is Unavailable, in words that say what came instead, and never a list.
func TestAnswersThatAreNone(t *testing.T) {
	for _, c := range []struct {
		name, want string
		answer     http.HandlerFunc
	}{
		{"a page", "status 200, text/html: <html> no such page", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html>\n no such page")
		}},
		{"a proxy's page", "status 502", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			fmt.Fprint(w, "<html>Bad Gateway</html>")
		}},
		{"500 without an error", "status 500", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"jobs": []}`)
		}},
		{"nothing", "not understood", func(http.ResponseWriter, *http.Request) {}},
		{"another list", "not what was asked for", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"nodes": []}`) }},
		{"half a list", "not understood", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"jobs": [{"job_id": 1`) }},
		{"a cut body", "unexpected EOF", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"jobs": []}`)
		}},
		{"an end", "EOF", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
		{"too much", "longer than 2000 bytes", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, `{"jobs": []}`+strings.Repeat(" ", 2000))
		}},
		{"silence", "no answer within 200ms", func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-q.Context().Done():
			case <-time.After(time.Minute):
			}
		}},
		{"half an answer and silence", "no answer within 200ms", func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Content-Length", "1000")
			fmt.Fprint(w, `{"jobs": [`)
			_ = http.NewResponseController(w).Flush()
			select {
			case <-q.Context().Done():
			case <-time.After(time.Minute):
			}
		}},
	} {
		client := serve(t, func(o *Options) {
			if strings.Contains(c.want, "200ms") {
				o.Timeout = 200 * time.Millisecond
			}
		}, c.answer)
		client.most = 2000
		list, err := client.Jobs(t.Context())
		if errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), c.want) || list != nil {
			t.Errorf("%s: %d jobs, %v of kind %v: want %q", c.name, len(list), err, errkind.Of(err), c.want)
		}
	}
	if _, err := New(Options{URL: "unix:/nonexistent/sock", Timeout: time.Second}); err != nil {
		t.Error(err)
	}
	gone, err := New(Options{URL: "unix:/nonexistent/sock", Version: oldest, Timeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Jobs(t.Context()); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "/nonexistent/sock") {
		t.Errorf("%v: want it to name the socket", err)
	}
}

// Errors of Slurm's are told in its words, by whichever name its number goes.
func TestWhatSlurmRefuses(t *testing.T) {
	for _, c := range []struct {
		status     int
		text, want string
		code       int64
		gone       bool
	}{
		{500, `{"errors": [{"error": "Invalid partition name specified", "errno": 2000}], "jobs": []}`,
			"slurmrestd: GET jobs/: Invalid partition name specified (500)", 2000, false},
		{500, `{"errors": [{"error_code": 2014, "error": "Requested node configuration is not available"}]}`,
			"Requested node", 2014, false},
		{500, `{"errors": [{"description": "Unable to find JobId=9", "error_number": 2017, "error": "Invalid job id specified"}]}`,
			"Unable to find JobId=9: Invalid job id specified", 2017, true},
		{500, `{"errors": [{"description": "unable to kill JobId=1 with signal 9: Job/step already completing or completed",
			"error_number": 2021}]}`, "already completing", 2021, true},
		{200, `{"errors": [{"error": "Access/permission denied", "error_number": 2002}], "jobs": []}`, "permission denied", 2002, false},
		{400, `{"errors": [{"description": "Unknown key \"x\""}, {"error_code": 9001, "error": "Failure during parsing"}]}`,
			`Unknown key "x": Failure during parsing (400)`, 9001, false},
		{401, "Authentication failure", "Authentication failure (401)", 0, false},
		{500, `{"errors": [{}]}`, "error 0", 0, false},
	} {
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			fmt.Fprint(w, c.text)
		})
		_, err := client.Jobs(t.Context())
		var r *Refusal
		if !errors.As(err, &r) || r.Status != c.status || r.Code != c.code || !strings.Contains(err.Error(), c.want) ||
			Gone(err) != c.gone {
			t.Errorf("%s: %v: want %q", c.text, err, c.want)
		}
	}
}

// A job that is taken, but can't begin now, comes with an error. It is there.
func TestAJobThatIsTakenWithAnError(t *testing.T) {
	text := string(samples(t)["v38-busy"])
	for _, c := range []struct {
		text string
		kind errkind.Kind
		good bool
	}{{text, errkind.Unknown, true}, {strings.Replace(text, `"job_id": 5`, `"job_id": 0`, 1), errkind.Unknown, false},
		{`{"errors": []}`, errkind.Unavailable, false}} {
		client := serve(t, nil, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, c.text) })
		if err := client.Submit(t.Context(), &Order{Name: "a"}); (err == nil) != c.good || errkind.Of(err) != c.kind {
			t.Errorf("%s: %v of kind %v", c.text, err, errkind.Of(err))
		}
	}
}

// A server that says again what it was sent tells nobody a token.
func TestSecretsAreHidden(t *testing.T) {
	for _, form := range []string{`{"errors": [{"error": %q}]}`, `<html>%s</html>`} {
		client := serve(t, nil, func(w http.ResponseWriter, q *http.Request) {
			body, err := io.ReadAll(q.Body)
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprintf(w, form, q.Header.Get("X-SLURM-USER-TOKEN")+string(body))
		})
		err := client.Submit(t.Context(), &Order{Name: "a", Environment: map[string]string{"T": "sluice-join-1-secret"},
			Secret: "sluice-join-1-secret"})
		if err == nil || strings.Contains(err.Error(), jwt) || strings.Contains(err.Error(), "sluice-join") {
			t.Errorf("%v", err)
		}
	}
}

// served is a slurmrestd that has some versions, and counts what it is asked.
type served struct {
	mu       sync.Mutex
	versions []string
	asked    []string
}

func (s *served) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := strings.Split(strings.Trim(q.URL.Path, "/"), "/")
	s.asked = append(s.asked, q.Method+" "+strings.Join(parts[1:], "/"))
	switch {
	case !slices.Contains(s.versions, parts[1]):
		http.Error(w, "Unable find requested URL. Please view /openapi/v3 for API reference.", http.StatusNotFound)
	case parts[2] == "ping":
		w.WriteHeader(http.StatusInternalServerError) // as without slurmctld
		fmt.Fprint(w, `{"errors": [{"error": "Unspecified error", "error_number": -1}]}`)
	case parts[2] == "job" && q.Method == http.MethodGet:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"errors": [{"error": "Invalid job id specified", "error_number": 2017}], "jobs": []}`)
	case parts[2] == "job":
		fmt.Fprint(w, `{"errors": [], "job_id": 7}`)
	default:
		fmt.Fprint(w, `{"jobs": []}`)
	}
}

// The newest version is found and remembered, and looked for again after a 404: a POST is done once.
func TestTheVersionIsFound(t *testing.T) {
	s := &served{versions: []string{"v0.0.36", "v0.0.37", oldest, "v0.0.40"}}
	c := serve(t, func(o *Options) { o.Version = "" }, s.ServeHTTP)
	took := func() string {
		s.mu.Lock()
		defer s.mu.Unlock()
		text := strings.Join(s.asked, ", ")
		s.asked = nil
		return text
	}
	for _, want := range []string{"GET v0.0.45/ping, GET v0.0.44/ping, GET v0.0.43/ping, GET v0.0.42/ping, GET v0.0.41/ping, " +
		"GET v0.0.40/ping, GET v0.0.40/jobs", "GET v0.0.40/jobs"} {
		if _, err := c.Jobs(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := took(); got != want {
			t.Errorf("asked %s, want %s", got, want)
		}
	}
	s.versions = []string{"v0.0.44", "v0.0.45"} // upgraded
	if err := c.Submit(t.Context(), &Order{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	if got, want := took(), "POST v0.0.40/job/submit, GET v0.0.45/ping, POST v0.0.45/job/submit"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	if _, err := c.Job(t.Context(), "9"); !Gone(err) {
		t.Errorf("%v: want it gone", err)
	}
	if got, want := took(), "GET v0.0.45/job/9, GET v0.0.45/ping"; got != want {
		t.Errorf("asked %s, want %s: a 404 of a job's is no other version", got, want)
	}
	s.versions = []string{"v0.0.37"}
	if _, err := c.Jobs(t.Context()); errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), "v0.0.38") {
		t.Errorf("%v of kind %v, want unsupported, and what is known", err, errkind.Of(err))
	}
	s.versions = []string{oldest}
	if _, err := c.Jobs(t.Context()); err != nil {
		t.Errorf("%v: it does not look again", err)
	}
}

// Each version is asked in its own form. The keys of v0.0.38 that its description leaves out were tried on 22.05.8.
func TestWhatEachVersionIsSent(t *testing.T) {
	o := Order{Name: "n", Comment: "c", Partition: "p", Script: "#!/bin/sh\n", Minutes: 10, CPUs: 2, MiB: 100,
		Gres: "gpu:1g.10gb:1,shard:2", Account: "lab", Exclude: "n[1-3]", Environment: map[string]string{"PATH": "/bin", "A": "b=c"}}
	const same = `"account":"lab","comment":"c","cpus_per_task":2,"current_working_directory":"/",`
	const files = `"partition":"p",%s"standard_error":"/dev/null","standard_input":"/dev/null","standard_output":"/dev/null",` +
		`"tasks":1,"time_limit":`
	for version, want := range map[string]string{
		oldest: same + `"environment":{"A":"b=c","PATH":"/bin"},"exclude_nodes":"n[1-3]","gres":"gpu:1g.10gb:1,shard:2",` +
			`"memory_per_node":100,"name":"n","no_requeue":true,"nodes":[1,1],` + fmt.Sprintf(files, "") + `10`,
		"v0.0.43": same + `"environment":["A=b=c","PATH=/bin"],"excluded_nodes":["n[1-3]"],` +
			`"memory_per_node":{"infinite":false,"number":100,"set":true},"name":"n","nodes":"1",` +
			fmt.Sprintf(files, `"requeue":false,`) + `{"infinite":false,"number":10,"set":true},` +
			`"tres_per_node":"gres/gpu:1g.10gb:1,gres/shard:2"`,
	} {
		body, err := o.body(version)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(body)
		if want = `{"job":{` + want + `},"script":"#!/bin/sh\n"}`; err != nil || string(text) != want {
			t.Errorf("%s: %v\n%s\nwant\n%s", version, err, text, want)
		}
	}
	o.Signal, o.Before = "USR1", 60
	if _, err := o.body(oldest); err == nil {
		t.Error("v0.0.38 sends signals to steps alone")
	}
	body, err := o.body("v0.0.45")
	text, failed := json.Marshal(body)
	want := `"kill_warning_delay":{"infinite":false,"number":60,"set":true},"kill_warning_flags":["BATCH_JOB"],"kill_warning_signal":"USR1"`
	if err != nil || failed != nil || !strings.Contains(string(text), want) {
		t.Errorf("%v, %v: %s: want %s", err, failed, text, want)
	}
}

// Who is asked while the context is over is not called.
func TestACallThatIsOver(t *testing.T) {
	called := false
	c := serve(t, nil, func(http.ResponseWriter, *http.Request) { called = true })
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := c.Jobs(ctx); errkind.Of(err) != errkind.Unavailable || called {
		t.Errorf("%v of kind %v, called: %t", err, errkind.Of(err), called)
	}
}
