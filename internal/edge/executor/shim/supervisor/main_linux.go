package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// The first argument says which part of the program is wanted.
const (
	// Supervise DIR runs the subjob of a run directory.
	Supervise = "supervise"
	// Probe DIR prints what can hold a tree of processes together here, and how work directories that are unpacked in DIR
	// can be given out, as JSON (shim.Isolation).
	Probe = "probe"
	// Init DIR is the process the command hangs below; ProbeInit tries its surroundings. Only Supervise and Probe start them.
	Init      = "init"
	ProbeInit = "probe-init"
)

// Main is the program: args are those after the name. It returns the exit status: 0 done, 1 failed, 2 wrong use.
func Main(args []string) int {
	// The kernel ends the init when the thread that started it ends, so this goroutine keeps its thread.
	runtime.LockOSThread()
	switch {
	case len(args) == 2 && args[0] == Supervise:
		return report(supervise(shim.Dir(args[1])))
	case len(args) == 2 && args[0] == Init:
		return report(initialize(shim.Dir(args[1])))
	case len(args) == 2 && args[0] == Probe:
		return report(json.NewEncoder(os.Stdout).Encode(probe(args[1])))
	case len(args) == 3 && args[0] == ProbeInit:
		return report(probeInit(args[1], args[2]))
	}
	fmt.Fprintln(os.Stderr, "sluice-shim supervises one subjob; sluice starts it. Usage: sluice-shim supervise RUN-DIRECTORY")
	return 2
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		return 1
	}
	return 0
}
