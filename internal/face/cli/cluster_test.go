package cli

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// answers is a handler as a transport, as a cluster's is.
type answers struct{ http.Handler }

func (h answers) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Host = "localhost"
	w := &recorded{header: http.Header{}, code: http.StatusOK}
	h.ServeHTTP(w, r)
	return &http.Response{StatusCode: w.code, Header: w.header, Body: io.NopCloser(&w.Buffer), Request: r, Proto: "HTTP/1.1", ProtoMajor: 1,
		ProtoMinor: 1}, nil
}

type recorded struct {
	header http.Header
	code   int
	bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }
func (r *recorded) WriteHeader(c int)   { r.code = c }
func (r *recorded) Flush()              {}

// TestWhichIsMeant: a daemon or a cluster, and what is said where both are, or what this build or a namespace has not got.
func TestWhichIsMeant(t *testing.T) {
	for _, c := range []struct {
		what           string
		plugin, kube   bool
		args           string
		code           int
		want, notThere string
	}{
		{"no Kubernetes in it", false, false, "--context x jobs", 2, "this build has no Kubernetes in it", ""},
		{"nor under the plugin's name", true, false, "jobs", 2, "this build has no Kubernetes in it", ""},
		{"the flags are hidden then", false, false, "jobs --help", 0, "--server", "--context"},
		{"and shown otherwise", false, true, "jobs --help", 0, "--context", ""},
		{"a plugin knows no daemon", true, true, "jobs --help", 0, "--namespace", "--server"},
		{"a plugin's commands", true, true, "--help", 0, "cancel", "\n  up "},
		{"a namespace without a context", false, true, "-n team-a jobs", 2, "go with --context NAME", ""},
		{"-n is a namespace for a plugin", true, true, "logs -n team-a nobody", 1, "there is no job nobody", "--tail"},
		{"and beside a context", false, true, "--context x logs -n team-a nobody", 1, "there is no job nobody", "--tail"},
		{"both", false, true, "--context x --server unix:/s jobs", 2, "want one of them", ""},
		{"a command of daemons", false, true, "--context x top", 2, "top is not there for a namespace of a cluster", ""},
		{"one below another", false, true, "--context x journal verify", 2, "journal is not there", ""},
		{"what opening says", false, true, "--context nowhere jobs", 2, "no such context", ""},
	} {
		var out, errs bytes.Buffer
		d := Deps{Args: strings.Fields(c.args), Options: session.Options{Plugin: c.plugin, In: strings.NewReader(""), Out: &out, Err: &errs,
			Now: apitest.Now, Patience: -1, Getenv: func(string) string { return "" }}}
		if c.kube {
			d.Cluster = func(w session.Where) (http.RoundTripper, string, error) {
				if w.Context == "nowhere" {
					return nil, "", command.Usage("%w", errors.New("no such context"))
				}
				return answers{api.Handler(api.Options{Service: apitest.New()})}, "namespace n", nil
			}
		}
		code, all := Run(t.Context(), d), ""
		if all = out.String() + errs.String(); code != c.code || !strings.Contains(all, c.want) || c.notThere != "" &&
			strings.Contains(all, c.notThere) {
			t.Errorf("%s: exit %d, want %d and %q, without %q:\n%s", c.what, code, c.code, c.want, c.notThere, all)
		}
	}
}
