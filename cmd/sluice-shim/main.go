// Command sluice-shim supervises subjobs, one at a time, so that the daemon can die and come back; and it watches the machine's memory for
// them. With the build tag kubernetes it is the first process of a Pod too. Sluice starts it; people don't.
package main

import (
	"os"

	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/survival/all"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

func main() {
	if args := os.Args[1:]; len(args) > 0 && args[0] == watch.Verb {
		os.Exit(watch.Main(args[1:], all.Detect))
	}
	if status, its := inPod(os.Args[1:]); its {
		os.Exit(status)
	}
	os.Exit(supervisor.Main(os.Args[1:]))
}
