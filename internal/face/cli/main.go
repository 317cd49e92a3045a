package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/face/terminal"
)

// Exit codes. They are part of the interface: scripts depend on them.
const (
	// ExitOK: done.
	ExitOK = 0
	// ExitFailed: the operation failed, or a job that was waited for did not complete.
	ExitFailed = 1
	// ExitUsage: the arguments or a file given are wrong; nothing was done.
	ExitUsage = 2
	// ExitUnavailable: no daemon answers, or it cannot work now; trying again later may help.
	ExitUnavailable = 3
	// ExitTimeout: wait's time was over before the job.
	ExitTimeout = 4
	// ExitInterrupted: a simulation was ended by a signal; what it had was printed.
	ExitInterrupted = 130
)

// Deps is what the command needs of the world around it.
type Deps struct {
	// Version and Commit of the build.
	Version, Commit string
	// Args without the program's name; nil for those of the process.
	Args []string
	// In, Out and Err; nil for those of the process.
	In       io.Reader
	Out, Err io.Writer
	// Getenv; nil for that of the process.
	Getenv func(string) string
	// Now; nil for the clock. Times are shown in its zone.
	Now func() time.Time
	// Patience is how long to wait for a daemon on this machine that does not listen yet; 0: a few seconds; negative: not at
	// all.
	Patience time.Duration
	// Interactive says whether somebody sits at a terminal who can be asked; nil: In and Out tell.
	Interactive func() bool
	// Open starts a daemon's parts for `sluice up`; nil: this build has no daemon.
	Open func(ctx context.Context, o UpOptions) (*Daemon, error)
	// VerifyJournal reads a data directory's journal and says in one line what stands there; an error names what is
	// damaged. nil: this build can't.
	VerifyJournal func(ctx context.Context, dataDir string) (string, error)
	// AcceptJournalEnd takes record last, which must be the last there is, as the end of a journal that has lost its head.
	AcceptJournalEnd func(dataDir string, last uint64) error
}

// app is one run of the command.
type app struct {
	Deps
	server, token, ca string
	format            string
	http              *http.Client
	// rawOut and rawErr are Out and Err without the guard that fill puts before a terminal: for what draws there itself.
	rawOut, rawErr io.Writer
}

// failure is an error with the exit code it ends in.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// usage is an error in what was typed.
func usage(format string, args ...any) error {
	return &failure{ExitUsage, fmt.Errorf(format, args...)}
}

// Main runs the command and returns its exit code. SIGINT and SIGTERM end it in order.
func Main(d Deps) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A later signal ends it at once; not one that comes with the first, as from timeout(1), which sends it twice.
	context.AfterFunc(ctx, func() {
		time.Sleep(time.Second)
		stop()
	})
	return Run(ctx, d)
}

// Run is Main under the caller's context.
func Run(ctx context.Context, d Deps) int {
	a := &app{Deps: d}
	a.fill()
	root := a.root()
	root.SetArgs(a.Args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if a.http != nil {
		a.http.CloseIdleConnections()
	}
	err = errors.Join(err, flush(a.Out))
	if err == nil {
		return ExitOK
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		err = &failure{ExitUsage, err}
	}
	code := exitCode(err)
	if text := err.Error(); text != "" {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i := range lines {
			lines[i] = terminal.Line(lines[i])
		}
		fmt.Fprintln(a.Err, "sluice: "+strings.Join(lines, "\n        "))
	}
	if code == ExitUsage && errors.As(err, new(*failure)) {
		fmt.Fprintf(a.Err, "        %s --help says how\n", cmd.CommandPath())
	}
	return code
}

func (a *app) fill() {
	if a.Args == nil {
		a.Args = os.Args[1:]
	}
	if a.In == nil {
		a.In = os.Stdin
	}
	if a.Out == nil {
		a.Out = os.Stdout
	}
	if a.Err == nil {
		a.Err = os.Stderr
	}
	if a.Getenv == nil {
		a.Getenv = os.Getenv
	}
	if a.Now == nil {
		a.Now = time.Now
	}
	if a.Patience == 0 {
		a.Patience = patience
	}
	a.rawOut, a.rawErr = a.Out, a.Err
	a.Out, a.Err = guarded(a.Out), guarded(a.Err)
}

// guarded puts a guard before a terminal: jobs, tenants and daemons wrote much of what is printed. Files and pipes get the
// bytes as they are.
func guarded(w io.Writer) io.Writer {
	if terminal.Is(w) {
		return terminal.NewWriter(w)
	}
	return w
}

// flush writes what a guard still holds back.
func flush(w io.Writer) error {
	if g, ok := w.(*terminal.Writer); ok {
		return g.Flush()
	}
	return nil
}

// exitCode is what an error ends in.
func exitCode(err error) int {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.code
	case errkind.Of(err) == errkind.Invalid, errkind.Of(err) == errkind.NotFound && errors.Is(err, fs.ErrNotExist):
		return ExitUsage
	case errkind.Of(err) == errkind.Unavailable:
		return ExitUnavailable
	}
	return ExitFailed
}

const rootHelp = `Sluice turns leftover GPU time into finished work.

It advertises the gaps on GPU slices as windows; jobs cut themselves into subjobs
that fit. Start a daemon with "sluice up", then submit job files to it.

Exit codes: 0 done; 1 the operation failed, or a job waited for did not complete;
2 wrong arguments or a wrong file; 3 no daemon answers; 4 wait's time was over;
130 a simulation was interrupted.

Every command is a call of the daemon's API, which is also plain JSON over HTTP:

  curl -s -H 'Content-Type: application/json' -d '{}' \
    http://127.0.0.1:7117/sluice.v1alpha1.SluiceService/ListJobs`

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "sluice", Short: "Turn leftover GPU time into finished work", Long: rootHelp,
		SilenceErrors: true, SilenceUsage: true,
		Example: "  sluice up\n  sluice run --items 1000 --per-item 20ms --mem 1Gi -- ./work\n  sluice submit count.yml --wait\n  sluice jobs",
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%w", err) })
	server := a.Getenv("SLUICE_SERVER")
	if server == "" {
		server = defaultServer
	}
	f := root.PersistentFlags()
	f.StringVar(&a.server, "server", server, "the daemon's address (SLUICE_SERVER): host:port, https://host:port, or unix:PATH")
	f.StringVar(&a.token, "token", "", "the daemon's token (better: SLUICE_TOKEN, which other users can't see)")
	f.StringVar(&a.ca, "tls-ca", a.Getenv("SLUICE_TLS_CA"), "trust this PEM file for the daemon's certificate (SLUICE_TLS_CA)")
	root.AddGroup(&cobra.Group{ID: "jobs", Title: "Jobs:"}, &cobra.Group{ID: "slices", Title: "Slices and queues:"}, &cobra.Group{ID: "daemon", Title: "The daemon:"}, &cobra.Group{ID: "sim", Title: "Simulation:"})
	for _, g := range []struct {
		id   string
		cmds []*cobra.Command
	}{
		{"jobs", []*cobra.Command{a.submitCmd(), a.runCmd(), a.initCmd(), a.jobsCmd(), a.jobCmd(), a.explainCmd(), a.logsCmd(), a.outputCmd(), a.waitCmd(), a.cancelCmd(), a.requeueCmd(), a.deleteCmd(), a.pauseCmd(), a.resumeCmd(), a.agentCmd()}},
		{"slices", []*cobra.Command{a.slicesCmd(), a.windowsCmd(), a.timelineCmd(), a.reserveCmd(), a.unreserveCmd(), a.releaseCmd(), a.queuesCmd(), a.queueCmd()}},
		{"daemon", []*cobra.Command{a.upCmd(), a.topCmd(), a.aboutCmd(), a.journalCmd(), a.versionCmd()}},
		{"sim", []*cobra.Command{a.simCmd()}},
	} {
		for _, c := range g.cmds {
			c.GroupID = g.id
			root.AddCommand(c)
		}
	}
	root.Version = strings.TrimSpace(a.Version + " " + a.Commit)
	root.SetVersionTemplate("sluice {{.Version}}\n")
	wrapArgs(root)
	return root
}

// wrapArgs makes a wrong number of arguments an error of usage, for every command.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage("%s: %w", cmd.CommandPath(), err)
			}
			return nil
		}
	} else if !c.Runnable() && c.HasParent() {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage("%s: %q is no command", cmd.CommandPath(), args[0])
			}
			return cmd.Help()
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}
