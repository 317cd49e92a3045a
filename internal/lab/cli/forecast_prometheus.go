package cli

import (
	"context"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/history"
	"sluice.dev/sluice/internal/lab/history/prometheus"
	"sluice.dev/sluice/internal/lab/history/prometheus/client"
)

// prometheusFlags say which Prometheus is asked, and for what.
type prometheusFlags struct {
	url, since, token string
	step, timeout     time.Duration
}

func (f *prometheusFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.url, "prometheus", "", "ask this Prometheus for its samples, such as http://prometheus:9090")
	flags.StringVar(&f.since, "since", "28d", "from when on --prometheus is asked: so long ago")
	flags.DurationVar(&f.step, "step", prometheus.DefaultStep, "how far apart the samples of --prometheus are")
	flags.StringVar(&f.token, "prometheus-token", "", "a file with the bearer's token that --prometheus wants")
	flags.DurationVar(&f.timeout, "prometheus-timeout", 2*time.Minute, "how long one question to --prometheus may take")
}

// files checks that there is something to read.
func (f *prometheusFlags) files(cmd *cobra.Command, args []string) error {
	if f.url != "" {
		return nil
	}
	for _, name := range []string{"since", "step", "prometheus-token", "prometheus-timeout"} {
		if cmd.Flags().Changed(name) {
			return command.Usage("--%s is for --prometheus URL, which is not given", name)
		}
	}
	return cobra.MinimumNArgs(1)(cmd, args)
}

// source puts what the Prometheus says into a book; nil where none is asked.
func (f *prometheusFlags) source(ctx context.Context, show func(what string, done, total int)) (func(*history.Book) error, error) {
	if f.url == "" {
		return nil, nil
	}
	since, err := quantity.ParseDuration(f.since)
	if err != nil || since < 24*time.Hour || since > 366*24*time.Hour {
		return nil, command.Usage("--since %s: want 1d to 366d", f.since)
	}
	if f.step < time.Second || f.step > time.Hour {
		return nil, command.Usage("--step %s: want 1s to 1h", f.step)
	}
	if f.timeout < time.Second {
		return nil, command.Usage("--prometheus-timeout %s: want 1s or more", f.timeout)
	}
	server := client.Server{URL: f.url, Step: f.step, Client: &http.Client{Timeout: f.timeout},
		Progress: func(done, total int) { show("questions to Prometheus", done, total) }}
	if f.token != "" {
		text, err := os.ReadFile(f.token)
		if err != nil {
			return nil, command.Usage("--prometheus-token: %w", err)
		}
		server.Token = strings.TrimSpace(string(text))
	}
	now := time.Now()
	return func(b *history.Book) error { return server.Read(ctx, b, now.Add(-since), now) }, nil
}
