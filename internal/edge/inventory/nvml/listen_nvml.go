//go:build cgo && linux && nvml

package nvml

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// told are the kinds of events that are listened to: errors by number, and others after which it is worth a look.
const told = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeGpuRecoveryAction

// notMIG is the instance of an event that is about a GPU as a whole.
const notMIG = 0xFFFFFFFF

// ear is an event set. of has the UUIDs by handle: a GPU that is lost does not tell its own.
type ear struct {
	set nvml.EventSet
	of  map[nvml.Device]string
}

// Listen registers for the events of these GPUs.
func (a adapter) Listen(gpus []string) (listener, error) {
	set, ret := a.nvml.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, failed("event set", ret)
	}
	e := ear{set, map[nvml.Device]string{}}
	n, err := a.Count()
	for i := range n {
		d, ret := a.nvml.DeviceGetHandleByIndex(i)
		if ret != nvml.SUCCESS {
			err = errors.Join(err, failed("handle", ret))
			continue
		}
		uuid, ret := d.GetUUID()
		if ret != nvml.SUCCESS || !slices.Contains(gpus, uuid) {
			err = errors.Join(err, failed("UUID", ret))
			continue
		}
		kinds, ret := d.GetSupportedEventTypes()
		if kinds&told == 0 && ret == nvml.SUCCESS {
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		if ret == nvml.SUCCESS {
			ret = d.RegisterEvents(kinds&told, set)
		}
		if ret != nvml.SUCCESS {
			err = errors.Join(err, failed("events of "+uuid, ret))
			continue
		}
		e.of[d] = uuid
	}
	if len(e.of) == 0 {
		return nil, errors.Join(errors.New("no GPU tells of errors"), err, e.Close())
	}
	return e, nil
}

// Wait waits for the next event.
func (e ear) Wait(d time.Duration) (event, bool, error) {
	data, ret := e.set.Wait(uint32(d.Milliseconds()))
	if ret == nvml.ERROR_TIMEOUT {
		return event{}, false, nil
	}
	if ret != nvml.SUCCESS {
		return event{}, false, failed("wait for events", ret)
	}
	ev := event{UUID: e.of[data.Device], GPUInstance: -1, ComputeInstance: -1}
	if data.EventType == nvml.EventTypeXidCriticalError {
		ev.Xid = uint32(min(data.EventData, notMIG))
		if data.GpuInstanceId != notMIG {
			ev.GPUInstance = int(data.GpuInstanceId)
		}
		if data.ComputeInstanceId != notMIG {
			ev.ComputeInstance = int(data.ComputeInstanceId)
		}
	}
	return ev, true, nil
}

// Close frees the event set.
func (e ear) Close() error { return failed("free the event set", e.set.Free()) }

// recoveries are what a driver says is to be done; what is not named is not known.
var recoveries = map[nvml.DeviceGpuRecoveryAction]condition{ //nolint:gochecknoglobals // a table, written to by nobody
	nvml.GPU_RECOVERY_ACTION_NONE:                {Told: true},
	nvml.GPU_RECOVERY_ACTION_GPU_RESET:           {Told: true, Recovery: "a reset"},
	nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:         {Told: true, Recovery: "a restart of the machine"},
	nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:           {Told: true, Drain: true, Recovery: "that nothing uses its links to other GPUs"},
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET:     {Told: true, Drain: true, Recovery: "a reset once nothing runs on it"},
	nvml.GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: {Told: true, Drain: true, Recovery: "that its IMEX domain is recovered"},
	nvml.GPU_RECOVERY_ACTION_BUS_RESET:           {Told: true, Recovery: "a reset of its bus"},
	nvml.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:       {Told: true, Recovery: "a restart of the machine"},
}

// Health reads a GPU's recovery action and memory repairs. What the driver does not support is left out; a GPU that does not answer is an
// error.
func (d device) Health() (condition, error) {
	var c condition
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	ret := d.nvml.GetFieldValues(fields)
	if err := failed("recovery action", ret); err != nil && !unknown(ret) {
		return c, err
	}
	if ret == nvml.SUCCESS && nvml.Return(fields[0].NvmlReturn) == nvml.SUCCESS {
		c = recoveries[nvml.DeviceGpuRecoveryAction(binary.NativeEndian.Uint32(fields[0].Value[:4]))]
	}
	_, _, pending, failure, ret := d.nvml.GetRemappedRows()
	if err := failed("remapped rows", ret); err != nil && !unknown(ret) {
		return c, err
	}
	if ret == nvml.SUCCESS {
		c.RowsPending, c.RowsFailed = pending, failure
	}
	pages, ret := d.nvml.GetRetiredPagesPendingStatus()
	if err := failed("retired pages", ret); err != nil && !unknown(ret) {
		return c, err
	}
	c.RowsPending = c.RowsPending || ret == nvml.SUCCESS && pages == nvml.FEATURE_ENABLED
	return c, nil
}

// unknown: this GPU or this driver has no such thing, or does not say it to us.
func unknown(ret nvml.Return) bool {
	return ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT ||
		ret == nvml.ERROR_NO_PERMISSION
}
