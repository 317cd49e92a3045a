package session

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
)

// Interactive reports whether a person sees a question and can answer it.
func (a *Session) Interactive() bool {
	if a.Options.Interactive != nil {
		return a.Options.Interactive()
	}
	in, ok := a.In.(*os.File)
	return ok && term.IsTerminal(int(in.Fd())) && terminal.Is(a.RawOut)
}

// Confirmed waits for a line that says yes. It is the only place that waits for what somebody types, but for a job file
// named "-".
func (a *Session) Confirmed(ctx context.Context) error {
	said := make(chan string, 1)
	go func() {
		line, err := bufio.NewReader(a.In).ReadString('\n')
		if err != nil && err != io.EOF {
			line = ""
		}
		said <- line
	}()
	select {
	case line := <-said:
		if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
			return nil
		}
	case <-ctx.Done():
	}
	return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("nothing was done")}
}

// ForEach does something to each name, goes on after an error, and says what was done: at once to people, at the end to
// programs.
func (a *Session) ForEach(names []string, done string, do func(string) error) error {
	return a.ForEachSaying(names, func(name string) (string, error) { return done, do(name) })
}

// ForEachSaying does the same where what was done differs.
func (a *Session) ForEachSaying(names []string, do func(string) (done string, err error)) error {
	var errs []error
	did := []command.Record{}
	for _, n := range names {
		done, err := do(n)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", n, err))
			continue
		}
		switch a.Format {
		case "json", "yaml":
			did = append(did, command.Record{{Key: "name", Value: n}, {Key: "done", Value: done}})
		case "name":
			fmt.Fprintln(a.Out, n)
		default:
			fmt.Fprintf(a.Out, "%s %s\n", n, done)
		}
	}
	if a.Format == "json" || a.Format == "yaml" {
		errs = append(errs, a.Dump(did))
	}
	return errors.Join(errs...)
}

// Done says that one thing was done, in the form asked for.
func (a *Session) Done(name, did string, r command.Record, line string) error {
	switch a.Format {
	case "json", "yaml":
		return a.Dump(append(r, command.Pair{Key: "done", Value: did}))
	case "name":
		line = name
	}
	_, err := fmt.Fprintln(a.Out, line)
	return err
}

// Warn says on stderr which jobs are missing.
func (a *Session) Warn(warnings []string) {
	for _, w := range warnings {
		fmt.Fprintln(a.Err, "sluice: "+terminal.Line(w))
	}
}

// Text is where text goes that jobs wrote: behind the guard of a terminal, unless it is wanted raw.
func (a *Session) Text(raw bool) io.Writer {
	if raw {
		return a.RawOut
	}
	return a.Out
}

// Colored reports whether the output is a terminal whose user has not declined colors (no-color.org).
func (a *Session) Colored() bool {
	return a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb" && terminal.Is(a.RawOut)
}

// Renamed says once that a command was called by its older name.
func (a *Session) Renamed(cmd *cobra.Command, old string) {
	if cmd.CalledAs() == old {
		fmt.Fprintf(a.Err, "sluice: %s is called %s now; the old name is there for one version more\n", old, cmd.Name())
	}
}

// CompleteJobs proposes the names of jobs, if a daemon answers at once.
func (a *Session) CompleteJobs() cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		c, err := a.Client()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), time.Second)
		defer cancel()
		resp, err := c.ListJobs(ctx, connect.NewRequest(&pb.ListJobsRequest{Limit: PageOfJobs}))
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, j := range resp.Msg.Jobs {
			names = append(names, j.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// PageOfJobs is how many jobs one call asks for.
const PageOfJobs = 1000
