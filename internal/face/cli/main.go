package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/face/cli/daemon"
	"sluice.dev/sluice/internal/face/cli/data"
	"sluice.dev/sluice/internal/face/cli/jobs"
	"sluice.dev/sluice/internal/face/cli/logs"
	"sluice.dev/sluice/internal/face/cli/nodes"
	"sluice.dev/sluice/internal/face/cli/people"
	"sluice.dev/sluice/internal/face/cli/pressure"
	"sluice.dev/sluice/internal/face/cli/providers"
	"sluice.dev/sluice/internal/face/cli/reserve"
	"sluice.dev/sluice/internal/face/cli/session"
	"sluice.dev/sluice/internal/face/cli/submit"
	"sluice.dev/sluice/internal/face/cli/top"
)

// Deps is what the command needs of the world around it.
type Deps struct {
	session.Options
	// Args without the program's name; nil for those of the process.
	Args []string
	// Sim makes the commands of simulations; nil: this build has none.
	Sim func(*command.App) *cobra.Command
	// Forecast makes the command that plays a cluster's own log; nil: this build has none. It may ask the daemon for its mechanism and its
	// record of the recent past.
	Forecast func(run *command.App, past func(context.Context) (string, status.History, error)) *cobra.Command
	// Operator makes the command of an operator of a Kubernetes cluster; nil: this build has none.
	Operator func(*command.App) *cobra.Command
	// Open starts a daemon's parts for `sluice up`; nil: this build has no daemon.
	Open func(ctx context.Context, o daemon.Options) (*daemon.Daemon, error)
	// Data reads and mends what a stopped daemon left; a build has each or not.
	Data data.Tools
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
	a := session.New(d.Options)
	root := d.root(a)
	root.SetArgs(d.args())
	root.SetIn(a.In)
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	cmd, err := root.ExecuteContextC(ctx)
	err = errors.Join(err, a.Close())
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

// args are those of the command line.
func (d *Deps) args() []string {
	if d.Args == nil {
		return os.Args[1:]
	}
	return d.Args
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

func (d *Deps) root(a *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use: "sluice", Short: "Turn leftover GPU time into finished work", Long: rootHelp,
		SilenceErrors: true, SilenceUsage: true,
		Example: "  sluice up\n  sluice run --items 1000 --per-item 20ms --mem 1Gi -- ./work\n  sluice submit count.yml --wait\n  " +
			"sluice jobs",
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.Usage("%w", err) })
	a.Flags(root)
	root.AddGroup(&cobra.Group{ID: "jobs", Title: "Jobs:"}, &cobra.Group{ID: "slices", Title: "Slices and queues:"},
		&cobra.Group{ID: "daemon", Title: "The daemon:"}, &cobra.Group{ID: "sim", Title: "Simulation:"})
	for _, g := range []struct {
		id   string
		cmds []*cobra.Command
	}{
		{"jobs", []*cobra.Command{submit.SubmitCmd(a), submit.RunCmd(a), submit.MapCmd(a), submit.SweepCmd(a), submit.TrainCmd(a),
			submit.InitCmd(a), jobs.JobsCmd(a), jobs.JobCmd(a),
			jobs.ExplainCmd(a), logs.LogsCmd(a), logs.OutputCmd(a), jobs.WaitCmd(a), jobs.CancelCmd(a), jobs.RequeueCmd(a),
			jobs.DeleteCmd(a), reserve.PauseCmd(a), reserve.ResumeCmd(a), jobs.AgentCmd(a)}},
		{"slices", []*cobra.Command{nodes.SlicesCmd(a), nodes.WindowsCmd(a), nodes.TimelineCmd(a), reserve.ReserveCmd(a),
			reserve.UnreserveCmd(a), reserve.UnquarantineCmd(a), jobs.QueuesCmd(a), jobs.QueueCmd(a), nodes.ZonesCmd(a),
			nodes.NodesCmd(a), providers.Cmd(a), pressure.AirlockCmd(a)}},
		{"daemon", []*cobra.Command{daemon.UpCmd(a, d.Open), daemon.JoinCmd(a, d.Open), nodes.TokenCmd(a), people.UserCmd(a),
			top.TopCmd(a), statusCmd(a), data.JournalCmd(a, d.Data), data.ArchiveCmd(a, d.Data), data.StoreCmd(a), versionCmd(a)}},
		{"daemon", d.operatorCmds(a)},
		{"sim", d.simCmds(a)},
	} {
		for _, c := range g.cmds {
			c.GroupID, c.Hidden = g.id, d.Plugin && !session.InCluster(c)
			root.AddCommand(c)
		}
	}
	root.Version = strings.TrimSpace(d.Version + " " + d.Commit)
	root.SetVersionTemplate("sluice {{.Version}}\n")
	wrapArgs(root)
	return root
}

// operatorCmds is the command of an operator, if this build has it.
func (d *Deps) operatorCmds(a *session.Session) []*cobra.Command {
	if d.Operator == nil {
		return nil
	}
	return []*cobra.Command{d.Operator(a.App)}
}

// simCmds are the commands of simulations, if this build has them.
func (d *Deps) simCmds(a *session.Session) (out []*cobra.Command) {
	if d.Forecast != nil {
		out = append(out, d.Forecast(a.App, func(ctx context.Context) (string, status.History, error) { return nodes.Past(ctx, a) }))
	}
	if d.Sim != nil {
		out = append(out, d.Sim(a.App))
	}
	return out
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
