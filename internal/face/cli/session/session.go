// Package session is one run of the program as its commands see it: its streams, and the daemon or the cluster that it calls, with
// the token, the wait for one that does not listen yet, and questions to the person at the terminal.
package session

import (
	"io"
	"net/http"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
)

const (
	// DefaultServer is where `sluice up` listens.
	DefaultServer = "127.0.0.1:7117"
	// patience is how long a command waits for a daemon on this machine that does not listen yet: it may be starting, as in
	// `sluice up & sluice jobs`.
	patience = 5 * time.Second
)

// Options is what a session is made of. In, Out, Err, Getenv and Now are those of the process where they are nil.
type Options struct {
	Version, Commit string
	In              io.Reader
	Out, Err        io.Writer
	Getenv          func(string) string
	Now             func() time.Time
	// Patience is how long to wait for a daemon on this machine that does not listen yet; 0: a few seconds; negative: not at all.
	Patience time.Duration
	// Umask is the caller's, for the commands that it submits.
	Umask job.Umask
	// Interactive reports whether a person at a terminal can be asked; nil: whether In and Out are terminals.
	Interactive func() bool
	// Cluster reaches the jobs of a namespace of a Kubernetes cluster; nil: this build can't. Plugin: the program always does that.
	Cluster func(w Where) (answers http.RoundTripper, where string, err error)
	Plugin  bool
}

// Session is one run of the program: its streams, and the daemon or cluster that it calls. Everything below it asks it for a client.
type Session struct {
	*command.App
	Options           Options
	server, token, ca string
	where             Where
	http              *http.Client
}

// New begins a session; nothing is called yet.
func New(o Options) *Session {
	if o.Patience == 0 {
		o.Patience = patience
	}
	a := &Session{App: &command.App{In: o.In, Getenv: o.Getenv, Now: o.Now}, Options: o}
	if a.In == nil {
		a.In = os.Stdin
	}
	if a.Getenv == nil {
		a.Getenv = os.Getenv
	}
	if a.Now == nil {
		a.Now = time.Now
	}
	if o.Out == nil {
		o.Out = os.Stdout
	}
	if o.Err == nil {
		o.Err = os.Stderr
	}
	a.Guard(o.Out, o.Err)
	return a
}

// Call names the daemon, as --server does.
func (a *Session) Call(server string) { a.server = server }

// Secret is the token that calls show; empty: none.
func (a *Session) Secret() string {
	if a.token == "" {
		a.token = a.Getenv("SLUICE_TOKEN")
	}
	return a.token
}

// Version and commit of the build.
func (a *Session) Version() (version, commit string) { return a.Options.Version, a.Options.Commit }

// Umask is the caller's.
func (a *Session) Umask() job.Umask { return a.Options.Umask }

// Close gives the connection back and writes what is held back.
func (a *Session) Close() error {
	if a.http != nil {
		a.http.CloseIdleConnections()
	}
	return a.Flush()
}

// Where says which cluster is meant, as kubectl's flags of these names do; empty: what kubectl would take. StoreAddress is where its
// operator's store is reached from here; empty: where it says.
type Where struct{ Kubeconfig, Context, Namespace, StoreAddress string }
