package nvml

import (
	"errors"
	"time"
)

// library is what we need of NVML. Errors carry a kind: Unsupported for a machine without the driver.
type library interface {
	// Init loads the library and attaches to the driver; Shutdown detaches.
	Init() error
	Shutdown() error
	// Driver is the driver's version.
	Driver() (string, error)
	// Count is the number of GPUs, GPU one of them by index.
	Count() (int, error)
	GPU(index int) (gpu, error)
	// Listen registers for the driver events of these GPUs, by UUID. GPUs without events are left out; an error says that none has any.
	Listen(gpus []string) (listener, error)
}

// listener receives drivers' events.
type listener interface {
	// Wait returns the next event, or false after that time.
	Wait(d time.Duration) (event, bool, error)
	Close() error
}

// event is an error by its Xid, or, 0, that it is time to look.
type event struct {
	// UUID of the whole GPU; empty: the driver does not say.
	UUID string
	Xid  uint32
	// GPUInstance and ComputeInstance under MIG, as in place; -1: the GPU as a whole.
	GPUInstance, ComputeInstance int
}

// errLost and errReset are in the chain of errors of a GPU that is gone, or must be reset.
var (
	errLost  = errors.New("the GPU is lost")
	errReset = errors.New("the GPU must be reset")
)

// condition is the health that a GPU reports.
type condition struct {
	// Told: the driver reported a recovery action, named by Recovery (empty: none is needed). Drain: running subjobs may finish first.
	Told, Drain bool
	Recovery    string
	// RowsPending: rows or pages of its memory wait for a reset to be replaced. RowsFailed: one could not be.
	RowsPending, RowsFailed bool
}

// unit is what a whole GPU and a MIG instance have in common.
type unit interface {
	// UUID is what goes into CUDA_VISIBLE_DEVICES.
	UUID() (string, error)
	Name() (string, error)
	// Memory that processes can use, in bytes: what the driver keeps for itself is not in it.
	Memory() (int64, error)
	// Processes that compute there now.
	Processes() ([]process, error)
}

// gpu is one physical GPU.
type gpu interface {
	unit
	// Minor is N in /dev/nvidiaN.
	Minor() (int, error)
	// Slots is how many MIG instances there can be; -1 when MIG is off or the GPU has none.
	Slots() (int, error)
	// Instance is the MIG instance in a slot, if there is one.
	Instance(slot int) (inst instance, there bool, err error)
	// Multiprocessors of the largest MIG profile; 0 if the driver does not say.
	Multiprocessors() (int, error)
	// Health is how it is. An error has errLost or errReset in its chain where it is one of these.
	Health() (condition, error)
}

// instance is one MIG instance.
type instance interface {
	unit
	Place() (place, error)
}

// place is where a MIG instance lies and how large it is.
type place struct {
	GPUInstance, ComputeInstance int
	// Start is its first memory slice, -1 if the driver does not tell.
	Start int
	// Slices of the GPU instance, and its Multiprocessors as far as they belong to this compute instance.
	Slices, Multiprocessors int
	// Part: the compute instance is only a part of its GPU instance.
	Part bool
}

// process is one process on a unit, by the pid of the host's outermost namespace.
type process struct {
	PID int
	// Memory it uses, in bytes; -1 if the driver does not tell.
	Memory int64
}
