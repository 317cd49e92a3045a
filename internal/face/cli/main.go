package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
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
	// Umask is the caller's, for the commands that it submits; the zero value: theirs is as if nobody had said.
	Umask job.Umask
	// Interactive says whether somebody sits at a terminal who can be asked; nil: In and Out tell.
	Interactive func() bool
	// Sim makes the commands of simulations; nil: this build has none.
	Sim func(*command.App) *cobra.Command
	// Operator makes the command of an operator of a Kubernetes cluster; nil: this build has none.
	Operator func(*command.App) *cobra.Command
	// Cluster reaches the jobs of a namespace of a Kubernetes cluster: what answers the API's calls for it, and what people are told that it is; nil: this build has
	// no Kubernetes in it. Plugin: the program runs as kubectl's, and always does that.
	Cluster func(w Where) (answers http.RoundTripper, where string, err error)
	Plugin  bool
	// Open starts a daemon's parts for `sluice up`; nil: this build has no daemon.
	Open func(ctx context.Context, o UpOptions) (*Daemon, error)
	// VerifyJournal reads a data directory's journal and says in one line what stands there; an error names what is
	// damaged. nil: this build can't.
	VerifyJournal func(ctx context.Context, dataDir string) (string, error)
	// AcceptJournalEnd takes record last, which must be the last there is, as the end of a journal that has lost its head.
	AcceptJournalEnd func(dataDir string, last uint64) error
	// RepairArchive writes the archive of a data directory anew with all that is whole, and says what it found. without is how many
	// jobs that the journal knows of may be missing from then on, change the last one that it knows of; 0: as it was.
	RepairArchive func(dataDir string, without int64, change uint64) (string, error)
}

// app is one run of the command.
type app struct {
	*command.App
	deps              Deps
	server, token, ca string
	where             Where
	http              *http.Client
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
	a := newApp(d)
	root := a.root()
	root.SetArgs(a.deps.Args)
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	if a.http != nil {
		a.http.CloseIdleConnections()
	}
	err = errors.Join(err, a.Flush())
	if err == nil {
		return command.ExitOK
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		err = &command.Failure{Code: command.ExitUsage, Err: err}
	}
	code := command.ExitCode(err)
	if text := err.Error(); text != "" {
		lines := strings.Split(strings.TrimSpace(text), "\n")
		for i := range lines {
			lines[i] = terminal.Line(lines[i])
		}
		begin := root.Name() + ": "
		fmt.Fprintln(a.Err, begin+strings.Join(lines, "\n"+strings.Repeat(" ", len(begin))))
	}
	if code == command.ExitUsage && errors.As(err, new(*command.Failure)) {
		fmt.Fprintf(a.Err, "        %s --help says how\n", cmd.CommandPath())
	}
	return code
}

func newApp(d Deps) *app {
	if d.Args == nil {
		d.Args = os.Args[1:]
	}
	if d.Patience == 0 {
		d.Patience = patience
	}
	a := &app{App: &command.App{In: d.In, Getenv: d.Getenv, Now: d.Now}, deps: d}
	if a.In == nil {
		a.In = os.Stdin
	}
	if a.Getenv == nil {
		a.Getenv = os.Getenv
	}
	if a.Now == nil {
		a.Now = time.Now
	}
	out, err := d.Out, d.Err
	if out == nil {
		out = os.Stdout
	}
	if err == nil {
		err = os.Stderr
	}
	a.Guard(out, err)
	return a
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.Usage("%w", err) })
	server := a.Getenv("SLUICE_SERVER")
	if server == "" {
		server = defaultServer
	}
	f := root.PersistentFlags()
	f.StringVar(&a.server, "server", server, "the daemon's address (SLUICE_SERVER): host:port, https://host:port, or unix:PATH")
	f.StringVar(&a.token, "token", "", "the daemon's token (better: SLUICE_TOKEN, which other users can't see)")
	f.StringVar(&a.ca, "tls-ca", a.Getenv("SLUICE_TLS_CA"), "trust this PEM file for the daemon's certificate (SLUICE_TLS_CA)")
	a.clusterFlags(root)
	root.AddGroup(&cobra.Group{ID: "jobs", Title: "Jobs:"}, &cobra.Group{ID: "slices", Title: "Slices and queues:"}, &cobra.Group{ID: "daemon", Title: "The daemon:"}, &cobra.Group{ID: "sim", Title: "Simulation:"})
	for _, g := range []struct {
		id   string
		cmds []*cobra.Command
	}{
		{"jobs", []*cobra.Command{a.submitCmd(), a.runCmd(), a.initCmd(), a.jobsCmd(), a.jobCmd(), a.explainCmd(), a.logsCmd(), a.outputCmd(), a.waitCmd(), a.cancelCmd(), a.requeueCmd(), a.deleteCmd(), a.pauseCmd(), a.resumeCmd(), a.agentCmd()}},
		{"slices", []*cobra.Command{a.slicesCmd(), a.windowsCmd(), a.timelineCmd(), a.reserveCmd(), a.unreserveCmd(), a.unquarantineCmd(), a.queuesCmd(), a.queueCmd(), a.zonesCmd(), a.airlockCmd()}},
		{"daemon", []*cobra.Command{a.upCmd(), a.topCmd(), a.statusCmd(), a.journalCmd(), a.archiveCmd(), a.storeCmd(), a.versionCmd()}},
		{"daemon", a.operatorCmds()},
		{"sim", a.simCmds()},
	} {
		for _, c := range g.cmds {
			c.GroupID, c.Hidden = g.id, a.deps.Plugin && !inCluster(c)
			root.AddCommand(c)
		}
	}
	root.Version = strings.TrimSpace(a.deps.Version + " " + a.deps.Commit)
	root.SetVersionTemplate("sluice {{.Version}}\n")
	wrapArgs(root)
	return root
}

// operatorCmds is the command of an operator, if this build has it.
func (a *app) operatorCmds() []*cobra.Command {
	if a.deps.Operator == nil {
		return nil
	}
	return []*cobra.Command{a.deps.Operator(a.App)}
}

// simCmds are the commands of simulations, if this build has them.
func (a *app) simCmds() []*cobra.Command {
	if a.deps.Sim == nil {
		return nil
	}
	return []*cobra.Command{a.deps.Sim(a.App)}
}

// wrapArgs makes a wrong number of arguments an error of usage, for every command.
func wrapArgs(c *cobra.Command) {
	if check := c.Args; check != nil {
		c.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return command.Usage("%s: %w", cmd.CommandPath(), err)
			}
			return nil
		}
	} else if !c.Runnable() && c.HasParent() {
		c.RunE = func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usage("%s: %q is no command", cmd.CommandPath(), args[0])
			}
			return cmd.Help()
		}
	}
	for _, sub := range c.Commands() {
		wrapArgs(sub)
	}
}
