package cli

import (
	"errors"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
)

func (a *app) versionCmd() *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version of this program",
		Long:    "Print the version of this program. `sluice status` says the daemon's.",
		Example: "  sluice version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			switch a.Format {
			case "json", "yaml":
				return a.Dump(command.Record{{Key: "version", Value: a.deps.Version}, {Key: "commit", Value: a.deps.Commit}, {Key: "go", Value: runtime.Version()}, {Key: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH}})
			case "name":
				fmt.Fprintln(a.Out, a.deps.Version)
				return nil
			}
			fmt.Fprintf(a.Out, "sluice %s %s %s %s/%s\n", a.deps.Version, a.deps.Commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	return a.Output(c)
}

func (a *app) journalCmd() *cobra.Command {
	c := &cobra.Command{Use: "journal", Short: "Look at a daemon's journal on this machine", Example: "  sluice journal verify --data /var/lib/sluice"}
	var dir string
	verify := &cobra.Command{
		Use: "verify", Short: "Check that a journal is whole",
		Long: `Read a daemon's journal from its data directory and check every record. Nothing is
changed. Exit 1 if a record that was promised is missing or damaged; the message names
it. The daemon makes the same check when it starts, and refuses to go on without it.`,
		Example: "  sluice journal verify --data /var/lib/sluice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if a.deps.VerifyJournal == nil {
				return command.Usage("this build can't read journals")
			}
			text, err := a.deps.VerifyJournal(cmd.Context(), dir)
			if text != "" {
				whole := command.Record{{Key: "dataDir", Value: dir}, {Key: "whole", Value: err == nil}, {Key: "text", Value: text}}
				err = errors.Join(err, a.done(dir, "verified", whole, text))
			}
			return err
		},
	}
	verify.Flags().StringVar(&dir, "data", defaultData(a.Getenv), "the daemon's data directory")
	c.AddCommand(a.Output(verify), a.acceptEndCmd())
	return c
}

func (a *app) acceptEndCmd() *cobra.Command {
	var dir string
	var last uint64
	c := &cobra.Command{
		Use: "accept-end", Short: "Go on with a journal that has lost its HEAD",
		Long: `Write the HEAD of a journal anew where it is missing or can't be read. Only HEAD says
where the journal ended: if records were cut off too, what they held is lost and nobody
will be told. So name the last record as journal verify shows it, and only do this where
nothing but HEAD can have gone. With any other damage nothing is changed.`,
		Example: "  sluice journal verify --data /var/lib/sluice\n  sluice journal accept-end --data /var/lib/sluice --record 41234",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("record") {
				return command.Usage("--record is missing: name the last record, as sluice journal verify shows it")
			}
			if a.deps.AcceptJournalEnd == nil {
				return command.Usage("this build can't write journals")
			}
			if err := a.deps.AcceptJournalEnd(dir, last); err != nil {
				return err
			}
			return a.done(dir, "ended", command.Record{{Key: "dataDir", Value: dir}, {Key: "record", Value: last}}, fmt.Sprintf("the journal ends with record %d", last))
		},
	}
	c.Flags().StringVar(&dir, "data", defaultData(a.Getenv), "the daemon's data directory")
	c.Flags().Uint64Var(&last, "record", 0, "the last record, as journal verify shows it")
	return a.Output(c)
}
