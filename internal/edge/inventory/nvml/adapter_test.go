//go:build cgo && linux && nvml

package nvml

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/inventorytest"
)

// patched is go-nvml's model of a DGX A100 with the calls filled in that it lacks (they panic there): MIG handles,
// processes and reserved memory. The first GPU has MIG on and one 3g.20gb instance at memory slice 4.
func patched(t *testing.T) *server.Server {
	t.Helper()
	s := dgxa100.New()
	for i, d := range s.Devices {
		g := d.(*server.Device)
		g.GetMemoryInfo_v2Func = func() (nvml.Memory_v2, nvml.Return) {
			if i == 1 {
				return nvml.Memory_v2{}, nvml.ERROR_FUNCTION_NOT_FOUND
			}
			return nvml.Memory_v2{Total: 40 << 30, Reserved: 1 << 30}, nvml.SUCCESS
		}
		g.GetFieldValuesFunc = func(f []nvml.FieldValue) nvml.Return {
			f[0].Value = [8]byte{byte(i)} // each GPU needs something else
			return nvml.SUCCESS
		}
		g.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 1, 1, i == 1, i == 2, nvml.SUCCESS }
		g.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) {
			return nvml.FEATURE_DISABLED,
				nvml.ERROR_NOT_SUPPORTED
		}
		g.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) {
			return nvml.EventTypeXidCriticalError | nvml.EventTypePState, nvml.SUCCESS
		}
		g.RegisterEventsFunc = func(kinds uint64, _ nvml.EventSet) nvml.Return {
			if kinds != nvml.EventTypeXidCriticalError {
				t.Errorf("registered for %d", kinds)
			}
			return nvml.SUCCESS
		}
		g.GetComputeRunningProcessesFunc = func() ([]nvml.ProcessInfo, nvml.Return) {
			return []nvml.ProcessInfo{{Pid: 42, UsedGpuMemory: 1 << 20}, {Pid: 43, UsedGpuMemory: ^uint64(0)}}, nvml.SUCCESS
		}
	}
	s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) {
		told := []nvml.EventData{
			{Device: s.Devices[1], EventType: nvml.EventTypeXidCriticalError, EventData: 79, GpuInstanceId: notMIG,
				ComputeInstanceId: notMIG},
			{Device: s.Devices[0], EventType: nvml.EventTypeXidCriticalError, EventData: 94, GpuInstanceId: 2, ComputeInstanceId: 0},
			{Device: s.Devices[2], EventType: nvml.EventTypeDoubleBitEccError, EventData: 5},
		}
		return &mock.EventSet{
			FreeFunc: func() nvml.Return { return nvml.SUCCESS },
			WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
				if len(told) == 0 {
					return nvml.EventData{}, nvml.ERROR_TIMEOUT
				}
				next := told[0]
				told = told[1:]
				return next, nvml.SUCCESS
			},
		}, nvml.SUCCESS
	}
	g := s.Devices[0].(*server.Device)
	if ret, _ := g.SetMigMode(nvml.DEVICE_MIG_ENABLE); ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	info, ret := g.GetGpuInstanceProfileInfo(nvml.GPU_INSTANCE_PROFILE_3_SLICE)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	gi, ret := g.CreateGpuInstanceWithPlacement(&info, &nvml.GpuInstancePlacement{Start: 4, Size: 4})
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	g.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	g.GetGpuInstanceByIdFunc = func(int) (nvml.GpuInstance, nvml.Return) { return gi, nvml.SUCCESS }
	g.GetMigDeviceHandleByIndexFunc = func(slot int) (nvml.Device, nvml.Return) {
		if slot != 2 {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetUUIDFunc:              func() (string, nvml.Return) { return "MIG-5", nvml.SUCCESS },
			GetNameFunc:              func() (string, nvml.Return) { return "NVIDIA A100-SXM4-40GB MIG 3g.20gb", nvml.SUCCESS },
			GetMemoryInfo_v2Func:     func() (nvml.Memory_v2, nvml.Return) { return nvml.Memory_v2{}, nvml.ERROR_NOT_SUPPORTED },
			GetMemoryInfoFunc:        func() (nvml.Memory, nvml.Return) { return nvml.Memory{Total: 19968 << 20}, nvml.SUCCESS },
			GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return 2, nvml.SUCCESS },
			GetComputeInstanceIdFunc: func() (int, nvml.Return) { return 0, nvml.SUCCESS },
			GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
				return nvml.DeviceAttributes{MultiprocessorCount: 42, GpuInstanceSliceCount: 3, ComputeInstanceSliceCount: 3}, nvml.SUCCESS
			},
			GetComputeRunningProcessesFunc: func() ([]nvml.ProcessInfo, nvml.Return) { return nil, nvml.ERROR_NOT_FOUND },
		}, nvml.SUCCESS
	}
	return s
}

func TestAdapterOverTheMock(t *testing.T) {
	inv := opened(t, adapter{patched(t)}, Spec)
	got := list(t, inv)
	if len(got) != 8 {
		t.Fatalf("offers %q", got)
	}
	if got[0] != "gpu0/3g.20gb@4 MIG-5 3g.20gb 19968Mi 428 false" {
		t.Errorf("the instance is %q", got[0])
	}
	if !strings.HasSuffix(got[1], " gpu 40960Mi 1000 false") || !strings.HasSuffix(got[2], " gpu 39936Mi 1000 false") {
		t.Errorf("whole GPUs without and with reserved memory: %q", got[1:3])
	}
	if len(inv.GPUs()) != 8 || !strings.Contains(inv.Describe(), "NVIDIA driver 5") {
		t.Errorf("%v, %s", inv.GPUs(), inv.Describe())
	}
}

func TestAdapterConformance(t *testing.T) {
	s := patched(t)
	inventorytest.Run(t, func(t *testing.T) inventory.Inventory {
		inv, err := open(adapter{s}, Spec, noName)
		if err != nil {
			t.Fatal(err)
		}
		return inv
	})
}

func TestAdapterProcesses(t *testing.T) {
	g, err := adapter{patched(t)}.GPU(0)
	if err != nil {
		t.Fatal(err)
	}
	got, err := g.Processes()
	if err != nil || !slices.Equal(got, []process{{42, 1 << 20}, {43, -1}}) {
		t.Errorf("processes %v, %v", got, err)
	}
	inst, ok, err := g.Instance(2)
	if err != nil || !ok {
		t.Fatal(err)
	}
	if _, err = inst.Processes(); errkind.Of(err) != errkind.NotFound {
		t.Errorf("an error of the driver became %v", err)
	}
}

func TestPlaceWithoutPrivileges(t *testing.T) {
	s := patched(t)
	s.Devices[0].(*server.Device).GetGpuInstanceByIdFunc = func(int) (nvml.GpuInstance, nvml.Return) {
		return nil,
			nvml.ERROR_NO_PERMISSION
	}
	if got := list(t, opened(t, adapter{s}, "nvml:0")); !slices.Equal(got, []string{"gpu0/3g.20gb@gi2 MIG-5 3g.20gb 19968Mi 428 false"}) {
		t.Errorf("offers %q", got)
	}
}

func TestReturnCodesBecomeKinds(t *testing.T) {
	for ret, want := range map[nvml.Return]errkind.Kind{
		nvml.ERROR_LIBRARY_NOT_FOUND: errkind.Unsupported, nvml.ERROR_DRIVER_NOT_LOADED: errkind.Unsupported,
		nvml.ERROR_NO_PERMISSION: errkind.Denied, nvml.ERROR_LIB_RM_VERSION_MISMATCH: errkind.Unavailable,
		nvml.ERROR_GPU_IS_LOST: errkind.Unavailable, nvml.ERROR_NOT_FOUND: errkind.NotFound,
	} {
		if err := failed("x", ret); errkind.Of(err) != want {
			t.Errorf("%v is %v, want %v", ret, errkind.Of(err), want)
		}
	}
	if failed("x", nvml.SUCCESS) != nil {
		t.Error("success is an error")
	}
}

// Open itself: on a machine without a driver it says so, on one with a driver it offers something.
func TestOpenThisMachine(t *testing.T) {
	inv, err := Open(Spec)
	if err != nil {
		if inv != nil {
			t.Errorf("an inventory beside the error %v: %#v", err, inv)
		}
		if k := errkind.Of(err); k != errkind.Unsupported && k != errkind.NotFound {
			t.Errorf("%v of kind %v", err, k)
		}
		return
	}
	defer inv.Close()
	if all, err := inv.Slices(t.Context()); err != nil || len(all) == 0 {
		t.Errorf("slices %v, %v", all, err)
	}
}

func TestAdapterListens(t *testing.T) {
	s := patched(t)
	uuid := func(i int) string { u, _ := s.Devices[i].GetUUID(); return u }
	l, err := adapter{s}.Listen([]string{uuid(0), uuid(1), uuid(2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []event{{uuid(1), 79, -1, -1}, {uuid(0), 94, 2, 0}, {uuid(2), 0, -1, -1}} {
		if got, ok, err := l.Wait(time.Second); got != want || !ok || err != nil {
			t.Errorf("heard %+v, %v, %v; want %+v", got, ok, err, want)
		}
	}
	if got, ok, err := l.Wait(time.Second); ok || err != nil {
		t.Errorf("heard %+v, %v", got, err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := (adapter{s}).Listen([]string{"GPU-of-nobody"}); err == nil {
		t.Error("nobody tells of anything, and that is no error")
	}
}

func TestAdapterHealth(t *testing.T) {
	s := patched(t)
	at := func(i int) condition {
		g, err := adapter{s}.GPU(i)
		if err != nil {
			t.Fatal(err)
		}
		c, err := g.Health()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for i, want := range []condition{
		{Told: true}, {Told: true, Recovery: "a reset", RowsPending: true}, {Told: true, Recovery: "a restart of the machine",
			RowsFailed: true},
		{Told: true, Drain: true, Recovery: "that nothing uses its links to other GPUs"},
		{Told: true, Drain: true, Recovery: "a reset once nothing runs on it"},
	} {
		if got := at(i); got != want {
			t.Errorf("GPU %d: %+v, want %+v", i, got, want)
		}
	}
	old := s.Devices[0].(*server.Device)
	old.GetFieldValuesFunc = func(f []nvml.FieldValue) nvml.Return {
		f[0].NvmlReturn = uint32(nvml.ERROR_NOT_SUPPORTED)
		return nvml.SUCCESS
	}
	old.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) { return 0, 0, false, false, nvml.ERROR_NOT_SUPPORTED }
	old.GetRetiredPagesPendingStatusFunc = func() (nvml.EnableState, nvml.Return) { return nvml.FEATURE_ENABLED, nvml.SUCCESS }
	if got := at(0); got != (condition{RowsPending: true}) {
		t.Errorf("a GPU and a driver that are old: %+v", got)
	}
	for ret, want := range map[nvml.Return]error{nvml.ERROR_GPU_IS_LOST: errLost, nvml.ERROR_RESET_REQUIRED: errReset} {
		old.GetFieldValuesFunc = func([]nvml.FieldValue) nvml.Return { return ret }
		g, _ := adapter{s}.GPU(0)
		if _, err := g.Health(); !errors.Is(err, want) {
			t.Errorf("%v is %v", ret, err)
		}
	}
}
