package nvml

import (
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// fakeLibrary is a machine made of plain values. fail names a call that goes wrong, and how.
type fakeLibrary struct {
	mu       sync.Mutex
	gpus     []*fakeGPU
	initErr  error
	shutdown int
	// events are what its drivers tell of; broken is what becomes of the next wait, once. deaf: nobody tells of anything.
	events []event
	broken error
	deaf   error
	// heard is how often somebody began to listen.
	heard int
}

func (l *fakeLibrary) Listen([]string) (listener, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard++
	return fakeEar{l}, l.deaf
}

// tell has a driver tell of something.
func (l *fakeLibrary) tell(e ...event) { l.change(func() { l.events = append(l.events, e...) }) }

type fakeEar struct{ *fakeLibrary }

func (e fakeEar) Close() error { return nil }

// Wait looks once, and once more at the end: an event that comes meanwhile is late by less than that.
func (e fakeEar) Wait(d time.Duration) (event, bool, error) {
	for range 2 {
		e.mu.Lock()
		err := e.broken
		e.broken = nil
		var next event
		told := len(e.events) > 0 && err == nil
		if told {
			next, e.events = e.events[0], e.events[1:]
		}
		e.mu.Unlock()
		if err != nil || told {
			return next, told, err
		}
		time.Sleep(d / 2)
	}
	return event{}, false, nil
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

func (u *fakeUnit) UUID() (string, error) {
	u.lib.mu.Lock()
	defer u.lib.mu.Unlock()
	return u.uuid, u.err
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
	condition condition
	sick      error // what it answers when it is asked how it is
	mig       bool
	instances [7]*fakeInstance
}

func (g *fakeGPU) Health() (condition, error) {
	g.lib.mu.Lock()
	defer g.lib.mu.Unlock()
	return g.condition, g.sick
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
