package nvml

import (
	"sync"

	"sluice.dev/sluice/internal/core/errkind"
)

// fakeLibrary is a machine made of plain values. fail names a call that goes wrong, and how.
type fakeLibrary struct {
	mu       sync.Mutex
	gpus     []*fakeGPU
	initErr  error
	shutdown int
}

func (l *fakeLibrary) Init() error { return l.initErr }
func (l *fakeLibrary) Shutdown() error {
	l.shutdown++
	return nil
}
func (l *fakeLibrary) Driver() (string, error)   { return "580.1", nil }
func (l *fakeLibrary) Count() (int, error)       { return len(l.gpus), nil }
func (l *fakeLibrary) GPU(i int) (gpu, error)    { return l.gpus[i], nil }
func (l *fakeLibrary) change(do func())          { l.mu.Lock(); do(); l.mu.Unlock() }
func (u *fakeUnit) UUID() (string, error)        { return u.uuid, u.err }
func (u *fakeUnit) Name() (string, error)        { return u.name, nil }
func (u *fakeUnit) Memory() (int64, error)       { return u.memory, nil }
func (g *fakeGPU) Minor() (int, error)           { return g.minor, g.minorErr }
func (g *fakeGPU) Multiprocessors() (int, error) { return 98 - g.silent, nil }

type fakeUnit struct {
	lib        *fakeLibrary
	uuid, name string
	memory     int64
	processes  []process
	procErr    error
	err        error
}

func (u *fakeUnit) Processes() ([]process, error) {
	u.lib.mu.Lock()
	defer u.lib.mu.Unlock()
	return u.processes, u.procErr
}

type fakeGPU struct {
	fakeUnit
	minor    int
	minorErr error
	// silent of its 98 multiprocessors are not told.
	silent    int
	mig       bool
	instances [7]*fakeInstance
}

func (g *fakeGPU) Slots() (int, error) {
	if !g.mig {
		return -1, nil
	}
	return len(g.instances), nil
}

func (g *fakeGPU) Instance(slot int) (instance, bool, error) {
	if g.instances[slot] == nil {
		return nil, false, nil
	}
	return g.instances[slot], true, nil
}

type fakeInstance struct {
	fakeUnit
	at place
}

func (i *fakeInstance) Place() (place, error) { return i.at, nil }

// machine has a whole GPU (minor 1) and one cut in three instances (minor 0).
func machine() *fakeLibrary {
	l := &fakeLibrary{}
	whole := &fakeGPU{minor: 1, fakeUnit: fakeUnit{lib: l, uuid: "GPU-bb", name: "NVIDIA H200", memory: 140 << 30}}
	cut := &fakeGPU{minor: 0, mig: true, fakeUnit: fakeUnit{lib: l, uuid: "GPU-aa", name: "NVIDIA A100-SXM4-80GB", memory: 80 << 30}}
	cut.instances = [7]*fakeInstance{
		{fakeUnit{lib: l, uuid: "MIG-1", name: "NVIDIA A100-SXM4-80GB MIG 3g.40gb", memory: 40192 << 20}, place{1, 0, 4, 3, 42, false}},
		{fakeUnit{lib: l, uuid: "MIG-2", name: "odd", memory: 9856 << 20}, place{7, 0, -1, 1, 14, false}},
		nil,
		{fakeUnit{lib: l, uuid: "MIG-3", name: "NVIDIA A100-SXM4-80GB MIG 1c.2g.20gb", memory: 19968 << 20}, place{5, 1, 0, 2, 14, true}},
	}
	l.gpus = []*fakeGPU{whole, cut}
	return l
}

func unavailable(text string) error { return errkind.Errorf(errkind.Unavailable, "%s", text) }
