// Package heap says how far the heap of this process may grow before it is collected.
package heap

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

// collect sets how far the heap of this process may grow by what is on it now, unless GOGC is set.
func collect(recovering bool) {
	if os.Getenv("GOGC") != "" {
		return
	}
	read := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	if want := gogc(read[0].Value.Uint64(), read[1].Value.Uint64(), recovering); read[2].Value.Uint64() != uint64(
		want) { //nolint:gosec // it is positive
		debug.SetGCPercent(want)
	}
}

// Adjust sets how far the heap may grow by what is on it now.
func Adjust() { collect(false) }

// recoveredTurns is after how many turns of the loop a recovery's allowance ends if none of them was idle.
const recoveredTurns = 16

// Recovery lets the heap grow further while a state is recovered, and until everybody who waited for the daemon was answered. It belongs
// to the goroutine of the loop.
type Recovery struct{ left int } // turns of the loop

// Begin starts the allowance.
func (r *Recovery) Begin() {
	r.left = recoveredTurns
	collect(true)
}

// Grown is called now and then while the heap grows.
func (r *Recovery) Grown() { collect(true) }

// Turn ends the allowance after the first idle turn of the loop, or the last that it may take. The memory is returned to the system beside
// the loop.
func (r *Recovery) Turn(idle bool) {
	if r.left == 0 {
		return
	}
	if r.left--; idle || r.left == 0 {
		r.left = 0
		Adjust()
		go giveBack()
	}
}

// End ends the allowance when the daemon stops.
func (r *Recovery) End() {
	if r.left > 0 {
		Adjust()
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
