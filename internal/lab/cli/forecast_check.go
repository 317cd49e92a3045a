package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/forecast"
)

// checkFlags are those of `sluice forecast --check`.
type checkFlags struct{ check, backlog string }

const checkHelp = `--check FILE holds an answer (of -o json) to account, after installation: beside what it foretold it
shows what the daemon has measured in the day that it remembers, from its own record of its slices.

`

func (f *checkFlags) flags(flags *pflag.FlagSet) {
	flags.StringVar(&f.check, "check", "", "hold this answer (of -o json) against what the daemon has measured since")
	flags.StringVar(&f.backlog, "backlog", "", "with --check: the backlog of the answer that is most like the jobs that run")
}

// args says what is wrong with a command line; done if there is no more to be said of it.
func (f *checkFlags) args(cmd *cobra.Command, args []string) (done bool, err error) {
	if f.check == "" {
		if f.backlog != "" {
			return true, command.Usage("--backlog: it goes with --check")
		}
		return false, nil
	}
	if len(args) > 0 {
		return true, command.Usage("%s: --check asks the daemon, and reads no log: leave one out", args[0])
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		if cmd.InheritedFlags().Lookup(flag.Name) != nil {
			return
		}
		switch flag.Name {
		case "check", "backlog", "output":
		default:
			err = command.Usage("--%s: --check makes no forecast: leave one out", flag.Name)
		}
	})
	return true, err
}

// checkForecast prints an answer beside what was measured.
func checkForecast(ctx context.Context, a *command.App, f *checkFlags,
	past func(context.Context) (string, status.History, error)) error {
	answer, err := lastAnswer(f.check)
	if err != nil {
		return err
	}
	mechanism, remembered, err := past(ctx)
	if err != nil {
		return err
	}
	// What a daemon remembers is up to a day long, and some of that has passed when it says so.
	m, err := forecast.ActualOf(&remembered, forecast.Day-time.Minute)
	if err != nil {
		return err
	}
	c, err := forecast.Check(answer, mechanism, f.backlog, m)
	if err != nil {
		return err
	}
	if a.Format == "json" {
		enc := json.NewEncoder(a.Out)
		enc.SetIndent("", "  ")
		return enc.Encode(c)
	}
	return c.Text(a.Out)
}

// lastAnswer reads the last answer of a file: --live -o json prints one a day.
func lastAnswer(path string) (*forecast.Answer, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, command.Usage("--check: %w", err)
	}
	defer file.Close()
	var last *forecast.Answer
	for in := json.NewDecoder(file); ; {
		var a forecast.Answer
		if err := in.Decode(&a); errors.Is(err, io.EOF) && last != nil {
			return last, nil
		} else if err != nil {
			return nil, command.Usage("--check %s: this is no answer: %w: give what sluice forecast -o json printed", path, err)
		}
		if last = &a; len(a.Outcomes) == 0 {
			return nil, command.Usage("--check %s: this is no answer: give what sluice forecast -o json printed", path)
		}
	}
}
