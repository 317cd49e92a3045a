package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
)

// The first argument says which part of the program is wanted.
const (
	// Await DIR runs the subjobs whose run directories below DIR stdin names.
	Await = "await"
	// Supervise DIR runs the subjob of one run directory, as daemons of older versions ask for it.
	Supervise = "supervise"
	// Probe DIR prints what can hold a tree of processes together here, and how work directories that are unpacked in DIR
	// can be given out, as JSON (shim.Isolation).
	Probe = "probe"
)

// Main is the program: args are those after the name. It returns the exit status: 0 done, 1 failed, 2 wrong use.
func Main(args []string) int {
	// The kernel ends the init when the thread that started it ends, so this goroutine keeps its thread.
	runtime.LockOSThread()
	switch {
	case len(args) == 2 && args[0] == Await:
		return report(await(args[1], os.Stdin, os.Stdout))
	case len(args) == 2 && args[0] == Supervise:
		return report(superviseOne(shim.Dir(args[1]), os.Stdout))
	case len(args) == 2 && args[0] == Probe:
		return report(json.NewEncoder(os.Stdout).Encode(probe(args[1])))
	case len(args) > 0 && args[0] == adapter.Verb:
		return adapter.Main(args[1:])
	}
	fmt.Fprintln(os.Stderr, "sluice-shim supervises subjobs, one at a time; sluice starts it. Usage: sluice-shim await RUN-DIRECTORIES")
	return 2
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		return 1
	}
	return 0
}
