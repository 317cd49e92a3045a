//go:build cgo && linux && nvml

package nvml

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Open looks at the GPUs of this machine (Spec says how spec is written). An error is of kind Unsupported without a
// driver, NotFound if there is nothing to offer, Invalid for a bad spec.
func Open(spec string) (inventory.Inventory, error) {
	return offer(adapter{nvml.New()}, spec, commandName)
}

// adapter is go-nvml as a library.
type adapter struct{ nvml nvml.Interface }

// failed makes an error of a return code; doing says what was asked.
func failed(doing string, ret nvml.Return) error {
	kind, hint := errkind.Unavailable, ""
	switch ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_LIBRARY_NOT_FOUND, nvml.ERROR_DRIVER_NOT_LOADED:
		kind, hint = errkind.Unsupported, " (no NVIDIA driver on this machine)"
	case nvml.ERROR_NOT_SUPPORTED, nvml.ERROR_FUNCTION_NOT_FOUND:
		kind = errkind.Unsupported
	case nvml.ERROR_NO_PERMISSION:
		kind, hint = errkind.Denied, " (run as a user who may use the GPU)"
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		hint = " (the driver was updated while it is loaded: reload it or restart the machine)"
	case nvml.ERROR_NOT_FOUND:
		kind = errkind.NotFound
	case nvml.ERROR_GPU_IS_LOST:
		return errkind.Errorf(kind, "%s: %w: %w", doing, ret, errLost)
	case nvml.ERROR_RESET_REQUIRED:
		return errkind.Errorf(kind, "%s: %w: %w", doing, ret, errReset)
	default: // the GPU or its driver is in trouble, which may pass
	}
	return errkind.Errorf(kind, "%s: %w%s", doing, ret, hint)
}

func (a adapter) Init() error     { return failed("load libnvidia-ml", a.nvml.Init()) }
func (a adapter) Shutdown() error { return failed("let go of libnvidia-ml", a.nvml.Shutdown()) }

func (a adapter) Driver() (string, error) {
	v, ret := a.nvml.SystemGetDriverVersion()
	return v, failed("driver version", ret)
}

func (a adapter) Count() (int, error) {
	n, ret := a.nvml.DeviceGetCount()
	return n, failed("number of GPUs", ret)
}

func (a adapter) GPU(index int) (gpu, error) {
	d, ret := a.nvml.DeviceGetHandleByIndex(index)
	return device{d}, failed("handle", ret)
}

// device is a GPU or a MIG instance: NVML has one kind of handle for both.
type device struct{ nvml nvml.Device }

func (d device) UUID() (string, error) {
	s, ret := d.nvml.GetUUID()
	return s, failed("UUID", ret)
}

func (d device) Name() (string, error) {
	s, ret := d.nvml.GetName()
	return s, failed("name", ret)
}

// Memory leaves out what the driver reserves, where it is recent enough to say.
func (d device) Memory() (int64, error) {
	if m, ret := d.nvml.GetMemoryInfo_v2(); ret == nvml.SUCCESS && m.Reserved < m.Total {
		return int64(m.Total - m.Reserved), nil
	}
	m, ret := d.nvml.GetMemoryInfo()
	return int64(m.Total), failed("memory", ret)
}

func (d device) Processes() ([]process, error) {
	infos, ret := d.nvml.GetComputeRunningProcesses()
	if ret != nvml.SUCCESS {
		return nil, failed("processes", ret)
	}
	out := make([]process, len(infos))
	for i, p := range infos {
		out[i] = process{PID: int(p.Pid), Memory: int64(p.UsedGpuMemory)} // all ones, "not available", becomes -1
	}
	return out, nil
}

func (d device) Minor() (int, error) {
	n, ret := d.nvml.GetMinorNumber()
	return n, failed("minor number", ret)
}

func (d device) Slots() (int, error) {
	mode, _, ret := d.nvml.GetMigMode()
	if ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND || (ret == nvml.SUCCESS && mode != nvml.DEVICE_MIG_ENABLE) {
		return -1, nil
	}
	if ret != nvml.SUCCESS {
		return 0, failed("MIG mode", ret)
	}
	n, ret := d.nvml.GetMaxMigDeviceCount()
	return n, failed("number of MIG slots", ret)
}

func (d device) Instance(slot int) (instance, bool, error) {
	m, ret := d.nvml.GetMigDeviceHandleByIndex(slot)
	if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT {
		return nil, false, nil // an empty slot; older drivers say it the second way
	}
	return migDevice{device{m}, d.nvml}, ret == nvml.SUCCESS, failed("MIG handle", ret)
}

// Multiprocessors is that of the profile of all seven slices, or of four on a board that has but four.
func (d device) Multiprocessors() (int, error) {
	for _, profile := range []int{nvml.GPU_INSTANCE_PROFILE_7_SLICE, nvml.GPU_INSTANCE_PROFILE_4_SLICE} {
		info, ret := d.nvml.GetGpuInstanceProfileInfo(profile)
		if ret == nvml.SUCCESS {
			return int(info.MultiprocessorCount), nil
		}
		if ret != nvml.ERROR_NOT_SUPPORTED && ret != nvml.ERROR_INVALID_ARGUMENT {
			return 0, failed("MIG profile", ret)
		}
	}
	return 0, nil
}

type migDevice struct {
	device
	parent nvml.Device
}

func (m migDevice) Place() (place, error) {
	gi, ret1 := m.nvml.GetGpuInstanceId()
	ci, ret2 := m.nvml.GetComputeInstanceId()
	attributes, ret3 := m.nvml.GetAttributes()
	err := errors.Join(failed("GPU instance", ret1), failed("compute instance", ret2), failed("attributes", ret3))
	if err != nil {
		return place{}, err
	}
	p := place{
		GPUInstance: gi, ComputeInstance: ci, Start: -1,
		Slices: int(attributes.GpuInstanceSliceCount), Multiprocessors: int(attributes.MultiprocessorCount),
		Part: attributes.ComputeInstanceSliceCount < attributes.GpuInstanceSliceCount,
	}
	handle, ret := m.parent.GetGpuInstanceById(gi)
	if ret == nvml.SUCCESS {
		var info nvml.GpuInstanceInfo
		if info, ret = handle.GetInfo(); ret == nvml.SUCCESS {
			p.Start = int(info.Placement.Start)
			return p, nil
		}
	}
	if ret == nvml.ERROR_NO_PERMISSION {
		return p, nil // only the place stays unknown
	}
	return p, fmt.Errorf("GPU instance %d: %w", gi, failed("place", ret))
}
