// Command sluice is all of Sluice in one program: the daemon (`sluice up`) and its client.
package main

import (
	"os"
	"runtime/debug"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/face/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	planted.Plant(planted.Bug(os.Getenv("SLUICE_PLANTED")))
	os.Exit(cli.Main(cli.Deps{
		Version: version, Commit: commit(), Open: cli.OpenDaemon, VerifyJournal: cli.VerifyJournal,
	}))
}

// commit is the revision the program was built from, as the Go tool noted it.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
