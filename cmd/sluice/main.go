// Command sluice is all of Sluice in one program: the daemon (`sluice up`) and its client.
package main

import (
	"os"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/face/cli"
	"sluice.dev/sluice/internal/face/cli/daemon"
	"sluice.dev/sluice/internal/face/cli/data"
	"sluice.dev/sluice/internal/face/cli/session"
	lab "sluice.dev/sluice/internal/lab/cli"
)

// plugin is the name by which kubectl finds this program for `kubectl sluice`.
const plugin = "kubectl-sluice"

// umask of this process. To read it is to set it, so it is done before anything else runs.
func umask() job.Umask {
	bits := syscall.Umask(0)
	syscall.Umask(bits)
	return job.Umask{Named: true, Bits: uint16(bits)} //nolint:gosec // at most 0777
}

func main() {
	os.Exit(cli.Main(cli.Deps{
		Options: session.Options{Version: version, Commit: commit, Umask: umask(), Cluster: cluster,
			Plugin: filepath.Base(os.Args[0]) == plugin},
		Sim: lab.Command, Forecast: lab.ForecastCommand, Operator: inCluster, Open: daemon.Open, Data: data.Here(),
	}))
}
