// Command sluice-shim supervises subjobs, one at a time, so that the daemon can die and come back. Sluice starts it; people don't.
package main

import (
	"os"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
)

func main() {
	planted.Plant(planted.Bug(os.Getenv("SLUICE_PLANTED")))
	os.Exit(supervisor.Main(os.Args[1:]))
}
