package data

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// JournalCmd is the command journal.
func JournalCmd(a *session.Session, t Tools) *cobra.Command {
	c := &cobra.Command{Use: "journal", Short: "Look at a daemon's journal on this machine",
		Example: "  sluice journal verify --data /var/lib/sluice"}
	var dir string
	verify := &cobra.Command{
		Use: "verify", Short: "Check that a journal is whole",
		Long: `Read a daemon's journal from its data directory and check every record. Nothing is
changed. Exit 1 if a record that was promised is missing or damaged; the message names
it. The daemon makes the same check when it starts, and refuses to go on without it.`,
		Example: "  sluice journal verify --data /var/lib/sluice",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if t.Verify == nil {
				return command.Usage("this build can't read journals")
			}
			text, err := t.Verify(cmd.Context(), dir)
			if text != "" {
				whole := command.Record{{Key: "dataDir", Value: dir}, {Key: "whole", Value: err == nil}, {Key: "text", Value: text}}
				err = errors.Join(err, a.Done(dir, "verified", whole, text))
			}
			return err
		},
	}
	verify.Flags().StringVar(&dir, "data", DefaultData(a.Getenv), "the daemon's data directory")
	c.AddCommand(a.Output(verify), truncateCmd(a, t))
	return c
}

func truncateCmd(a *session.Session, t Tools) *cobra.Command {
	var dir string
	var last uint64
	c := &cobra.Command{
		Use: "truncate", Aliases: []string{"accept-end"}, Short: "Go on with a journal that has lost its HEAD",
		Long: `Write the HEAD of a journal anew where it is missing or can't be read. Only HEAD says
where the journal ended: if records were cut off too, what they held is lost and nobody
will be told. So name the last record as journal verify shows it, and only do this where
nothing but HEAD can have gone. With any other damage nothing is changed.`,
		Example: "  sluice journal verify --data /var/lib/sluice\n  sluice journal truncate --data /var/lib/sluice --record 41234",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a.Renamed(cmd, "accept-end")
			if !cmd.Flags().Changed("record") {
				return command.Usage("--record is missing: name the last record, as sluice journal verify shows it")
			}
			if t.AcceptEnd == nil {
				return command.Usage("this build can't write journals")
			}
			if err := t.AcceptEnd(dir, last); err != nil {
				return err
			}
			return a.Done(dir, "ended", command.Record{{Key: "dataDir", Value: dir}, {Key: "record", Value: last}},
				fmt.Sprintf("the journal ends with record %d", last))
		},
	}
	c.Flags().StringVar(&dir, "data", DefaultData(a.Getenv), "the daemon's data directory")
	c.Flags().Uint64Var(&last, "record", 0, "the last record, as journal verify shows it")
	return a.Output(c)
}
