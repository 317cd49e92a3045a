package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

func (a *app) versionCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version of this program",
		Long:    "Print the version of this program. `sluice about` says the daemon's.",
		Example: "  sluice version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch a.format {
			case "json", "yaml":
				return a.dump(record{{"version", a.Version}, {"commit", a.Commit}, {"go", runtime.Version()}, {"platform", runtime.GOOS + "/" + runtime.GOARCH}})
			case "name":
				fmt.Fprintln(a.Out, a.Version)
				return nil
			}
			fmt.Fprintf(a.Out, "sluice %s %s %s %s/%s\n", a.Version, a.Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	return a.output(c)
}

func (a *app) journalCmd() *cobra.Command {
	c := &cobra.Command{Use: "journal", Short: "Look at a daemon's journal on this machine"}
	var dir string
	verify := &cobra.Command{
		Use: "verify", Short: "Check that a journal is whole",
		Long: `Read a daemon's journal from its data directory and check every record. Nothing is
changed. Exit 1 if a record that was promised is missing or damaged; the message names
it. The daemon makes the same check when it starts, and refuses to go on without it.`,
		Example: "  sluice journal verify --data /var/lib/sluice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.VerifyJournal == nil {
				return usage("this build can't read journals")
			}
			text, err := a.VerifyJournal(cmd.Context(), dir)
			if err != nil {
				return err
			}
			fmt.Fprintln(a.Out, text)
			return nil
		},
	}
	verify.Flags().StringVar(&dir, "data", defaultData(a.Getenv), "the daemon's data directory")
	c.AddCommand(verify)
	return c
}
