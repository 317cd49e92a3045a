package host

import (
	"runtime/debug"
	"runtime/metrics"
)

// Go's collector lets the heap grow to twice what lives on it. With a large state that is memory for nothing: from largeHeap
// on it may grow by half, also while the state is being recovered.
const (
	largeHeap   = 256 << 20
	defaultGOGC = 100
	largeGOGC   = 50
)

// collect sets how far the heap of this process may grow by what lives on it now, unless somebody has said so by GOGC.
func collect() {
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/gogc:percent"}}
	metrics.Read(read)
	live, percent := read[0].Value.Uint64(), read[1].Value.Uint64()
	switch {
	case live >= largeHeap && percent == defaultGOGC:
		debug.SetGCPercent(largeGOGC)
	case live < largeHeap && percent == largeGOGC:
		debug.SetGCPercent(defaultGOGC)
	}
}
