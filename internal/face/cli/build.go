package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/cli/session"
)

func versionCmd(a *session.Session) *cobra.Command {
	c := &cobra.Command{
		Use: "version", Short: "Print the version of this program",
		Long:    "Print the version of this program. `sluice status` says the daemon's.",
		Example: "  sluice version -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			version, commit := a.Version()
			switch a.Format {
			case "json", "yaml":
				return a.Dump(command.Record{{Key: "version", Value: version}, {Key: "commit", Value: commit},
					{Key: "go", Value: runtime.Version()}, {Key: "platform", Value: runtime.GOOS + "/" + runtime.GOARCH}})
			case "name":
				fmt.Fprintln(a.Out, version)
				return nil
			}
			fmt.Fprintf(a.Out, "sluice %s %s %s %s/%s\n", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	return a.Output(c)
}
