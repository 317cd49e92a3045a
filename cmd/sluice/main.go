// Command sluice is all of Sluice in one program: the daemon (`sluice up`) and its client.
package main

import (
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/face/cli"
	lab "sluice.dev/sluice/internal/lab/cli"
)

// version and commit are set by the build.
var (
	version = "dev"
	commit  = "unknown"
)

// plugin is the name by which kubectl finds this program for `kubectl sluice`.
const plugin = "kubectl-sluice"

func main() {
	planted.Plant(planted.Bug(os.Getenv("SLUICE_PLANTED")))
	os.Exit(cli.Main(cli.Deps{
		Version: version, Commit: commit, Sim: lab.Command, Operator: inCluster, Cluster: cluster, Plugin: filepath.Base(os.Args[0]) == plugin,
		Open: cli.OpenDaemon, VerifyJournal: cli.VerifyJournal, AcceptJournalEnd: cli.AcceptJournalEnd,
		RepairArchive: cli.RepairArchive,
	}))
}
