package host

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
)

// Go's collector lets the heap grow to twice what lives on it. From largeHeap on it may grow by three quarters: with more a million
// jobs that wait would not fit in 2 KB each, with less each submission would pay for more collections. While a state is recovered
// nearly all that is allocated stays, collections would find nothing and take a third of the time. So until the daemon has answered,
// the heap may grow by recoveringGOGC, in percent of what lived when it was collected last, but by no more than recoveringAhead bytes.
const (
	largeHeap       = 256 << 20
	defaultGOGC     = 100
	largeGOGC       = 75
	recoveringGOGC  = 400
	recoveringAhead = 2 << 30
)

// gogc is how far the heap may grow, in percent: by what is on it, and what of that lived when it was collected last, both in bytes.
func gogc(there, lived uint64, recovering bool) int {
	switch {
	case recovering:
		return int(max(largeGOGC, min(recoveringGOGC, 100*recoveringAhead/max(1, lived)))) //nolint:gosec // at most recoveringGOGC
	case there >= largeHeap:
		return largeGOGC
	}
	return defaultGOGC
}

// collect sets how far the heap of this process may grow by what is on it now, unless somebody has said so by GOGC.
func collect(recovering bool) {
	if os.Getenv("GOGC") != "" {
		return
	}
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	if want := gogc(read[0].Value.Uint64(), read[1].Value.Uint64(), recovering); read[2].Value.Uint64() != uint64(want) { //nolint:gosec // it is positive
		debug.SetGCPercent(want)
	}
}

// recoveredTurns of the loop end what a recovery may take, where none before was idle.
const recoveredTurns = 16

// settle ends what a recovery may take, once everybody who waited for the daemon was answered, and has it given back beside the loop.
func (h *Host) settle(idle bool) {
	if h.recovering == 0 {
		return
	}
	if h.recovering--; idle || h.recovering == 0 {
		h.recovering = 0
		collect(false)
		go giveBack()
	}
}

// giveBack returns to the system what a recovery took and a large state does not need. By itself the collector would wait for as
// much again to be allocated, which in a daemon that is idle is for ever.
func giveBack() {
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(read)
	if os.Getenv("GOGC") == "" && read[0].Value.Uint64()+read[1].Value.Uint64() >= largeHeap {
		debug.FreeOSMemory()
	}
}
