package data

import (
	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

// ArchiveCmd is the command archive.
func ArchiveCmd(a *session.Session, t Tools) *cobra.Command {
	c := &cobra.Command{
		Use: "archive", Short: "Mend a daemon's archive of jobs that are over",
		Example: "  sluice archive repair --data /var/lib/sluice",
	}
	c.AddCommand(repairCmd(a, t))
	return c
}

func repairCmd(a *session.Session, t Tools) *cobra.Command {
	var dir string
	var without int64
	var change uint64
	c := &cobra.Command{
		Use: "repair", Short: "Write an archive anew with all that is whole",
		Long: `Write the archive of jobs that are over anew, while the daemon is stopped, with
everything in it that is whole. What is damaged is named and left out, space that is free
is given back, and the file of before stays beside the new one.

A daemon whose archive has fewer jobs, or fewer changes, than its journal knows of refuses
to start, and says how many. A newer copy from a backup has them; where there is none,
--without and --change go on without: nothing is known of the missing jobs any more, their
names are free, and their output is removed at the next start.`,
		Example: "  sluice archive repair --data /var/lib/sluice\n  sluice archive repair --data /var/lib/sluice --without 3 --change 4711",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if without < 0 {
				return command.Usage("--without %d: want a number above 0", without)
			}
			if t.Repair == nil {
				return command.Usage("this build can't write archives")
			}
			text, err := t.Repair(dir, without, change)
			if err != nil {
				return err
			}
			return a.Done(dir, "repaired", command.Record{{Key: "dataDir", Value: dir}, {Key: "without", Value: without},
				{Key: "text", Value: text}}, text)
		},
	}
	c.Flags().StringVar(&dir, "data", DefaultData(a.Getenv), "the daemon's data directory")
	c.Flags().Int64Var(&without, "without", 0, "go on without so many jobs that the journal knows of")
	c.Flags().Uint64Var(&change, "change", 0, "go on as after that change, which the journal knows of")
	return a.Output(c)
}
