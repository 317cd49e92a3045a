// Package command is what all commands of the program share, whichever wing they stand in: streams, exit codes, and the forms of
// an answer. No concurrency.
package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/terminal"
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

// App is one run of the program, as its commands see it.
type App struct {
	In io.Reader
	// Out and Err are guarded where they are terminals; RawOut and RawErr are the same without, for what draws there itself.
	Out, Err, RawOut, RawErr io.Writer
	Getenv                   func(string) string
	// Now is the clock. Times are shown in its zone.
	Now func() time.Time
	// Format of the answer: what -o says.
	Format string
}

// Guard sets Out and Err: jobs, tenants and daemons wrote much of what is printed, so a terminal gets a guard. Files and pipes get the
// bytes as they are.
func (a *App) Guard(out, err io.Writer) {
	a.RawOut, a.RawErr = out, err
	a.Out, a.Err = guarded(out), guarded(err)
}

func guarded(w io.Writer) io.Writer {
	if terminal.Is(w) {
		return terminal.NewWriter(w)
	}
	return w
}

// Flush writes what the guard of Out still holds back.
func (a *App) Flush() error {
	if g, ok := a.Out.(*terminal.Writer); ok {
		return g.Flush()
	}
	return nil
}

// Failure is an error with the exit code it ends in.
type Failure struct {
	Code int
	Err  error
}

func (f *Failure) Error() string { return f.Err.Error() }
func (f *Failure) Unwrap() error { return f.Err }

// Usage is an error in what was typed.
func Usage(format string, args ...any) error {
	return &Failure{ExitUsage, fmt.Errorf(format, args...)}
}

// ExitCode is what an error ends in.
func ExitCode(err error) int {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f.Code
	case errkind.Of(err) == errkind.Invalid, errkind.Of(err) == errkind.NotFound && errors.Is(err, fs.ErrNotExist):
		return ExitUsage
	case errkind.Of(err) == errkind.Unavailable:
		return ExitUnavailable
	}
	return ExitFailed
}

// OutputAs adds -o with forms of its own to a command; the first is the default.
func (a *App) OutputAs(c *cobra.Command, forms ...string) *cobra.Command {
	return FormAs(a, c, "output", forms...)
}

// FormAs is OutputAs for a command that has another use for --output: the flag is long.
func FormAs(a *App, c *cobra.Command, long string, forms ...string) *cobra.Command {
	c.Flags().StringVarP(&a.Format, long, "o", forms[0], "the form of the answer: "+strings.Join(forms, ", "))
	pre := c.PreRunE
	c.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed(long) {
			a.Format = forms[0] // all commands share the variable, and so the default that was set last
		}
		for _, f := range forms {
			if a.Format == f {
				if pre != nil {
					return pre(cmd, args)
				}
				return nil
			}
		}
		return Usage("-o %s is no form; want one of %s", a.Format, strings.Join(forms, ", "))
	}
	_ = c.RegisterFlagCompletionFunc(long, cobra.FixedCompletions(forms, cobra.ShellCompDirectiveNoFileComp)) // the flag is there
	return c
}

// Output adds -o with the forms of a list to a command.
func (a *App) Output(c *cobra.Command) *cobra.Command {
	return a.OutputAs(c, "table", "wide", "json", "yaml", "name")
}
