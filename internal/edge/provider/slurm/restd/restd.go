// Package restd asks slurmrestd: it finds out which version of its interface there is, and reads the answers of all that are known by one
// decoder. What runs against a real slurmrestd, and what only against answers in the published form, is in docs/slurm.md.
package restd

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// maxAnswer is the longest answer that is read, in bytes: some 40,000 jobs.
const maxAnswer = 128 << 20

// Client asks one slurmrestd. It is safe for concurrent use.
type Client struct {
	o    Options
	base string
	http *http.Client
	// most is how long an answer may be.
	most int64

	mu sync.Mutex
	// version that was found; empty: none yet.
	version string
}

// New makes a client; it asks nothing yet. Errors: Invalid with all that is wrong, Denied where others may read the token.
func New(o Options) (*Client, error) {
	if err := o.Check(); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "rest: %w", err)
	}
	if o.TokenFile != "" {
		if _, err := o.token(); err != nil {
			return nil, err
		}
	}
	socket, base, err := place(o.URL)
	if err != nil {
		return nil, err
	}
	// slurmrestd ends connections after errors, and a POST on one that is just being ended would be lost: each call has its own.
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSHandshakeTimeout: o.Timeout,
		MaxResponseHeaderBytes: 1 << 20}
	if o.Roots != nil {
		t.TLSClientConfig = &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12}
	}
	if socket != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	return &Client{o: o, base: base, most: maxAnswer, http: &http.Client{Transport: t,
		// Whoever it sends elsewhere would be handed the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// all asks for a list, which an answer must have.
func all[T any](ctx context.Context, c *Client, path string, of func(*answer) *[]T) ([]T, error) {
	a, err := c.get(ctx, path)
	if err != nil {
		return nil, err
	}
	list := of(&a)
	if list == nil {
		return nil, c.unclear(path, errNothing)
	}
	return *list, nil
}

// Jobs are all of the cluster's queue.
func (c *Client) Jobs(ctx context.Context) ([]Job, error) {
	return all(ctx, c, "jobs/", func(a *answer) *[]Job { return a.Jobs })
}

// Job is one, by its id. An error for which Gone is true: there is none.
func (c *Client) Job(ctx context.Context, id string) (*Job, error) {
	list, err := all(ctx, c, "job/"+url.PathEscape(id), func(a *answer) *[]Job { return a.Jobs })
	if err != nil {
		return nil, err
	}
	for i := range list {
		if j := &list[i]; strconv.FormatInt(j.ID.N, 10) == id {
			return j, nil
		}
	}
	return nil, &Refusal{Status: http.StatusOK, Code: noJob, Text: "Invalid job id specified"}
}

// Nodes are all of the cluster.
func (c *Client) Nodes(ctx context.Context) ([]Node, error) {
	return all(ctx, c, "nodes/", func(a *answer) *[]Node { return a.Nodes })
}

// Reservations are all of the cluster.
func (c *Client) Reservations(ctx context.Context) ([]Reservation, error) {
	return all(ctx, c, "reservations/", func(a *answer) *[]Reservation { return a.Reservations })
}

// Partition is one, by its name; nil: there is none.
func (c *Client) Partition(ctx context.Context, name string) (*Partition, error) {
	list, err := all(ctx, c, "partition/"+url.PathEscape(name), func(a *answer) *[]Partition { return a.Partitions })
	if err != nil {
		return nil, err
	}
	for i := range list {
		if p := &list[i]; p.Name == name {
			return p, nil
		}
	}
	return nil, nil
}

// Submit asks for a job. Not idempotent. Errors: Unsupported: the version can't be asked for it.
func (c *Client) Submit(ctx context.Context, o *Order) error {
	a, err := c.call(ctx, http.MethodPost, "job/submit", o)
	if err == nil && (!a.JobID.Set || a.JobID.N <= 0) {
		err = errkind.Errorf(errkind.Unavailable, "slurmrestd: POST job/submit: it named no job")
	}
	return err
}

// Words are how a job is asked for, for people: without its script and its environment, which may hold secrets.
func (c *Client) Words(o *Order) string {
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	if version == "" {
		version = Versions()[0]
	}
	said := *o
	said.Script, said.Environment = "", nil
	body, err := said.body(version)
	if err != nil {
		return err.Error()
	}
	text, err := json.Marshal(body["job"])
	if err != nil {
		return err.Error()
	}
	return "POST /slurm/" + version + "/job/submit " + string(text)
}

// Kill ends a job, by its id, as scancel does.
func (c *Client) Kill(ctx context.Context, id string) error {
	_, err := c.call(ctx, http.MethodDelete, "job/"+url.PathEscape(id), nil)
	return err
}

func (c *Client) get(ctx context.Context, path string) (answer, error) {
	return c.call(ctx, http.MethodGet, path, nil)
}

// unclear is the error for an answer that is none.
func (c *Client) unclear(path string, err error) error {
	return errkind.Errorf(errkind.Unavailable, "slurmrestd: %s: its answer is not understood: %w", path, err)
}

// call does one call in the version that is there. After a 404 it looks which that is, and asks again if it is another than before:
// slurmrestd was replaced, and what was asked was not done.
func (c *Client) call(ctx context.Context, method, path string, o *Order) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, errkind.Errorf(errkind.Unavailable, "slurmrestd: not called: %w", err)
	}
	version, err := c.find(ctx)
	if err != nil {
		return answer{}, err
	}
	a, status, err := c.ask(ctx, version, method, path, o)
	if status != http.StatusNotFound || c.o.Version != "" {
		return a, err
	}
	c.mu.Lock()
	if c.version == version {
		c.version = ""
	}
	c.mu.Unlock()
	again, failed := c.find(ctx)
	if failed != nil {
		return answer{}, failed
	}
	if again != version {
		a, _, err = c.ask(ctx, again, method, path, o)
	}
	return a, err
}

// find is the version to ask in. Each is pinged, from the newest on; what is not there is answered with 404. Errors: Unsupported: none is.
func (c *Client) find(ctx context.Context) (string, error) {
	if c.o.Version != "" {
		return c.o.Version, nil
	}
	c.mu.Lock()
	version := c.version
	c.mu.Unlock()
	if version != "" {
		return version, nil
	}
	for _, v := range Versions() {
		_, status, err := c.ask(ctx, v, http.MethodGet, "ping/", nil)
		var r *Refusal
		switch {
		case status == http.StatusNotFound:
			continue
		case err != nil && (!errors.As(err, &r) || status == http.StatusUnauthorized || status == http.StatusForbidden):
			return "", err
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.version = v
		return v, nil // also where slurmctld is not there, which it says
	}
	return "", errkind.Errorf(errkind.Unsupported, "slurmrestd: it serves none of %s: is it slurmrestd, with the plugin openapi/slurmctld "+
		"(of 22.05 openapi/v0.0.38)?", strings.Join(Versions(), ", "))
}

// ask does one call. status is 0 where none came.
func (c *Client) ask(ctx context.Context, version, method, path string, o *Order) (a answer, status int, err error) {
	ctx, end := context.WithTimeout(ctx, c.o.Timeout)
	defer end()
	what := "slurmrestd: " + method + " " + path
	var body io.Reader
	var secrets []string
	if o != nil {
		job, cannot := o.body(version)
		if cannot != nil {
			return a, 0, errkind.Errorf(errkind.Unsupported, "%s: %w", what, cannot)
		}
		text, odd := json.Marshal(job)
		if odd != nil {
			return a, 0, errkind.Errorf(errkind.Invalid, "%s: %w", what, odd)
		}
		body = bytes.NewReader(text)
		secrets = append(secrets, o.Secret)
	}
	q, err := http.NewRequestWithContext(ctx, method, c.base+"/slurm/"+version+"/"+path, body)
	if err != nil {
		return a, 0, errkind.Errorf(errkind.Invalid, "%s: %w", what, err)
	}
	q.Header.Set("Accept", "application/json")
	if o != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if c.o.TokenFile != "" {
		token, none := c.o.token()
		if none != nil {
			return a, 0, none
		}
		secrets = append(secrets, token)
		q.Header.Set("X-SLURM-USER-NAME", c.o.User)
		q.Header.Set("X-SLURM-USER-TOKEN", token)
	}
	reply, err := c.http.Do(q)
	if err != nil {
		return a, 0, lost(what, c.o.Timeout, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, c.most+1))
	switch {
	case err != nil:
		return a, reply.StatusCode, lost(what, c.o.Timeout, err)
	case int64(len(text)) > c.most:
		return a, reply.StatusCode, errkind.Errorf(errkind.Unavailable, "%s: its answer is longer than %d bytes", what, c.most)
	}
	a, err = judge(what, reply, text)
	if err != nil {
		err = hide(err, secrets)
	}
	return a, reply.StatusCode, err
}

// judge is what a reply says.
func judge(what string, reply *http.Response, text []byte) (answer, error) {
	a, odd := parse(text)
	status := reply.StatusCode
	// A job that is taken, and can't begin now, comes with an error that says so (22.05.8: 2068, with 200).
	if taken := status/100 == 2 && a.JobID.N > 0; odd == nil && !taken {
		if r := refusal(status, a.Errors); r != nil {
			return answer{}, fmt.Errorf("%s: %w", what, r)
		}
	}
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return answer{}, fmt.Errorf("%s: %w", what, &Refusal{Status: status, Text: clip(string(text))})
	case status/100 != 2 || odd != nil:
		return answer{}, errkind.Errorf(errkind.Unavailable, "%s: its answer is not understood: status %d, %s: %s", what, status,
			reply.Header.Get("Content-Type"), clip(string(text)))
	}
	return a, nil
}

// lost is the error where no whole answer came.
func lost(what string, timeout time.Duration, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // the rest is said by what
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errkind.Errorf(errkind.Unavailable, "%s: no answer within %v: is slurmctld there? %w", what, timeout, err)
	}
	return errkind.Errorf(errkind.Unavailable, "%s: %w", what, err)
}

// hide takes secrets out of an error: a server may say again what it was sent.
func hide(err error, secrets []string) error {
	text := err.Error()
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "(secret)")
		}
	}
	if text == err.Error() {
		return err
	}
	var r *Refusal
	if errors.As(err, &r) {
		return &Refusal{Status: r.Status, Code: r.Code, Text: text}
	}
	return errkind.Errorf(errkind.Of(err), "%s", text)
}
