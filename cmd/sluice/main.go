// Command sluice is all of Sluice in one program: the daemon (`sluice up`) and its client.
package main

import (
	"os"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/face/cli"
	lab "sluice.dev/sluice/internal/lab/cli"
)

// version and commit are set by the build.
var (
	version = "dev"
	commit  = "unknown"
)

func main() {
	planted.Plant(planted.Bug(os.Getenv("SLUICE_PLANTED")))
	os.Exit(cli.Main(cli.Deps{
		Version: version, Commit: commit, Sim: lab.Command, Operator: inCluster,
		Open: cli.OpenDaemon, VerifyJournal: cli.VerifyJournal, AcceptJournalEnd: cli.AcceptJournalEnd,
		RepairArchive: cli.RepairArchive,
	}))
}
