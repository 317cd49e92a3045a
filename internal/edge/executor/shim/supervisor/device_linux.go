package supervisor

import (
	"fmt"
	"strings"
	"syscall"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// noDeviceMemory is how programs say at their end that the GPU had no memory left: PyTorch's message and its exception's
// name, the CUDA driver's error and the runtime's.
func noDeviceMemory() []string {
	return []string{"CUDA out of memory", "OutOfMemoryError", "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation"}
}

// outgrewDevice turns a failure into a memory kill if the program ran on a real GPU and its last words are that the memory
// there was not enough: nobody but the program is told when the GPU refuses it memory. It wanted more than the slice has.
func outgrewDevice(l *shim.Lease, r *job.Result, lastWords string) {
	// An exception that nobody catches ends a C++ program by abort(3).
	itself := r.Signal == 0 || syscall.Signal(r.Signal) == syscall.SIGABRT
	if l.DeviceMemory == 0 || r.Outcome != job.ExitFailed || !itself {
		return
	}
	for _, text := range noDeviceMemory() {
		if strings.Contains(lastWords, text) {
			r.Outcome = job.MemoryKilled
			r.Peak[trp.Memory] = max(r.Peak[trp.Memory], l.DeviceMemory)
			why := fmt.Sprintf("its last words say %q: the %d bytes of the GPU slice were not enough", text, l.DeviceMemory)
			r.Detail = detail(r, r.Detail, why, "")
			return
		}
	}
}
