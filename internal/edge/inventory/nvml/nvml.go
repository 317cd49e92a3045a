// Package nvml is the inventory of real NVIDIA GPUs: whole ones, and the MIG instances that exist. It asks NVIDIA's
// management library and changes nothing. The library is behind our own narrow interface (library.go); the adapter to
// go-nvml needs cgo and is built with the tag nvml only, so that a plain build is pure Go and quiet. It must not know
// how subjobs run.
package nvml

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Spec is how this kind is asked for: "nvml" for every GPU, or "nvml:0,GPU-1f3c..." for some, by minor number or UUID.
const Spec = "nvml"

// Interval is how often Watch looks.
const Interval = 5 * time.Second

// Inventory is the GPUs of this machine as they were when it was opened: one that appears later is not offered, because
// nobody holds its host lock.
type Inventory struct {
	lib      library
	gpus     []string
	describe string
	interval time.Duration
	name     func(pid int) string

	mu sync.Mutex
	// units are the slices as the last scan saw them.
	units map[job.SliceID]unit
	// cards are the GPUs by UUID, each as it last answered.
	cards map[string]*card
	// life of the machine.
	life string

	close    sync.Once
	closeErr error
}

// found is one slice with what is needed to look at it again.
type found struct {
	slice protocol.Slice
	gpu   string
	where unit
	// card is the GPU itself, and at the instance's place; GPUInstance -1: it is whole.
	card gpu
	at   place
}

// open initializes lib and looks at its GPUs. The caller closes the result.
func open(lib library, spec string, name func(pid int) string) (*Inventory, error) {
	only, err := parseSpec(spec)
	if err != nil {
		return nil, err
	}
	if err = lib.Init(); err != nil {
		return nil, fmt.Errorf("start NVML: %w", err)
	}
	inv := &Inventory{lib: lib, interval: Interval, name: name, cards: map[string]*card{}, life: machineLife()}
	if err = inv.look(only); err != nil {
		return nil, errors.Join(err, inv.Close())
	}
	return inv, nil
}

// offer is open, but a failure is a nil interface: an Inventory that holds a nil *Inventory would pass for one to close.
func offer(lib library, spec string, name func(pid int) string) (inventory.Inventory, error) {
	inv, err := open(lib, spec, name)
	if err != nil {
		return nil, err
	}
	return inv, nil
}

// parseSpec returns the GPUs asked for, nil for all.
func parseSpec(spec string) ([]string, error) {
	spec = strings.TrimSpace(spec)
	rest, some := strings.CutPrefix(spec, Spec+":")
	if spec == Spec {
		return nil, nil
	}
	var only []string
	for _, s := range strings.Split(rest, ",") {
		if s = strings.TrimSpace(s); s != "" {
			only = append(only, s)
		}
	}
	if !some || len(only) == 0 {
		return nil, errkind.Errorf(errkind.Invalid, "inventory %q: want %s, or %s: and minor numbers or UUIDs joined by commas", spec, Spec,
			Spec)
	}
	return only, nil
}

// look fills in gpus and describe.
func (inv *Inventory) look(only []string) error {
	all, trouble, err := inv.scan(nil)
	if err != nil {
		return err
	}
	var unknown []string
	for _, want := range only {
		if !slices.ContainsFunc(all, func(f found) bool { return f.named(want) }) {
			unknown = append(unknown, want)
		}
	}
	if len(unknown) > 0 {
		return errkind.Errorf(errkind.NotFound, "no usable GPU %s on this machine; there are %s%s", strings.Join(unknown, ", "),
			listGPUs(all), trouble)
	}
	if only != nil {
		all = slices.DeleteFunc(all, func(f found) bool { return !slices.ContainsFunc(only, f.named) })
	}
	if len(all) == 0 {
		return errkind.Errorf(errkind.NotFound, "the NVIDIA driver is here, but there is no GPU or MIG instance to offer%s", trouble)
	}
	for _, f := range all {
		inv.gpus = append(inv.gpus, f.gpu)
	}
	slices.Sort(inv.gpus)
	inv.gpus = slices.Compact(inv.gpus)
	if l, deaf := inv.lib.Listen(inv.gpus); deaf != nil {
		trouble += "; that they fail is seen only when they are looked at: " + strings.ReplaceAll(deaf.Error(), "\n", ", ")
	} else if err = l.Close(); err != nil {
		return err
	}
	driver, err := inv.lib.Driver()
	if err != nil {
		driver = "of unknown version"
	}
	inv.describe = fmt.Sprintf("%s, NVIDIA driver %s%s", listGPUs(all), driver, trouble)
	return nil
}

// named says whether a person means this slice's GPU.
func (f found) named(want string) bool {
	gpu, _, _ := strings.Cut(string(f.slice.ID), "/")
	return want == f.gpu || "gpu"+want == gpu
}

// listGPUs is "gpu0 NVIDIA H200 (whole), gpu1 NVIDIA A100 (3g.40gb, 1g.10gb)".
func listGPUs(all []found) string {
	var out []string
	for i := 0; i < len(all); {
		gpu, _, _ := strings.Cut(string(all[i].slice.ID), "/")
		var profiles []string
		first := all[i]
		for ; i < len(all) && all[i].gpu == first.gpu; i++ {
			profiles = append(profiles, all[i].slice.Profile)
		}
		out = append(out, fmt.Sprintf("%s %s (%s)", gpu, first.slice.Model, strings.Join(profiles, ", ")))
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, "; ")
}

// Slices looks again and lists what there is of the GPUs found at open; MIG instances may have come and gone.
func (inv *Inventory) Slices(ctx context.Context) ([]protocol.Slice, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	all, trouble, err := inv.scan(inv.gpus)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errkind.Errorf(errkind.Unavailable, "no GPU answers any more%s", trouble)
	}
	out := make([]protocol.Slice, len(all))
	for i, f := range all {
		out[i] = f.slice
	}
	slices.SortFunc(out, func(a, b protocol.Slice) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return out, nil
}

// GPUs names the GPUs found at open.
func (inv *Inventory) GPUs() []string { return slices.Clone(inv.gpus) }

// Describe says what was found at open.
func (inv *Inventory) Describe() string { return inv.describe }

// Close unloads the library.
func (inv *Inventory) Close() error {
	inv.close.Do(func() {
		if err := inv.lib.Shutdown(); err != nil {
			inv.closeErr = fmt.Errorf("stop NVML: %w", err)
		}
	})
	return inv.closeErr
}

// scan asks for every GPU in turn; only limits it to some UUIDs. A GPU that does not answer is left out and named in
// trouble, which is empty or begins with "; ": one lost GPU must not take the others from the market.
func (inv *Inventory) scan(only []string) (all []found, trouble string, err error) {
	n, err := inv.lib.Count()
	if err != nil {
		return nil, "", fmt.Errorf("count GPUs: %w", err)
	}
	for i := range n {
		some, err := inv.scanGPU(i, only)
		if err != nil {
			trouble += fmt.Sprintf("; GPU %d left out: %s", i, err)
			continue
		}
		all = append(all, some...)
	}
	inv.remember(all)
	return all, trouble, nil
}

func (inv *Inventory) scanGPU(index int, only []string) ([]found, error) {
	g, err := inv.lib.GPU(index)
	if err != nil {
		return nil, err
	}
	uuid, err := g.UUID()
	if err != nil || (only != nil && !slices.Contains(only, uuid)) {
		return nil, err
	}
	minor, err1 := g.Minor()
	if errkind.Of(err1) == errkind.Unsupported {
		minor, err1 = index, nil // WSL has no device files
	}
	model, err2 := g.Name()
	slots, err3 := g.Slots()
	if err = errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	name := "gpu" + strconv.Itoa(minor)
	if slots < 0 {
		memory, memErr := g.Memory()
		if memErr != nil {
			return nil, memErr
		}
		s := protocol.Slice{ID: job.SliceID(name), Model: model, Profile: "gpu", Speed: 1000, Device: uuid}
		s.Capacity[trp.Memory] = quantity.Amount(memory)
		return []found{{slice: s, gpu: uuid, where: g, card: g, at: place{GPUInstance: -1}}}, nil
	}
	whole, err := g.Multiprocessors()
	if err != nil {
		return nil, err
	}
	var all []found
	for slot := range slots {
		inst, ok, err := g.Instance(slot)
		if err == nil && ok {
			var s protocol.Slice
			var at place
			if s, at, err = instanceSlice(inst, name, model, whole); err == nil {
				all = append(all, found{slice: s, gpu: uuid, where: inst, card: g, at: at})
			}
		}
		if err != nil {
			return nil, fmt.Errorf("MIG slot %d: %w", slot, err)
		}
	}
	return all, nil
}

// instanceSlice describes one MIG instance, and says where it is.
func instanceSlice(inst instance, gpu, model string, whole int) (protocol.Slice, place, error) {
	uuid, err1 := inst.UUID()
	name, err2 := inst.Name()
	memory, err3 := inst.Memory()
	at, err4 := inst.Place()
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return protocol.Slice{}, at, err
	}
	// The driver names an instance "NVIDIA A100-SXM4-80GB MIG 3g.40gb".
	_, profile, ok := strings.Cut(name, " MIG ")
	if !ok {
		profile = fmt.Sprintf("%dg.%dgb", at.Slices, memory>>30)
	}
	profile, _ = mig.Canonical(profile)
	s := protocol.Slice{Model: model, Profile: profile, Device: uuid, Speed: mig.Lookup(model, profile).Speed}
	s.Capacity[trp.Memory] = quantity.Amount(memory)
	if whole > 0 {
		s.Speed = min(1000, max(1, int64(at.Multiprocessors)*1000/int64(whole)))
	}
	id := fmt.Sprintf("%s/%s@%d", gpu, profile, at.Start)
	if at.Start < 0 {
		// Without privileges the driver does not tell the place; its own number is the next best.
		id = fmt.Sprintf("%s/%s@gi%d", gpu, profile, at.GPUInstance)
	}
	if at.Part {
		// Several compute instances in one GPU instance share its memory.
		id += "." + strconv.Itoa(at.ComputeInstance)
		s.Shared = true
	}
	s.ID = job.SliceID(id)
	return s, at, nil
}

// remember keeps what a scan found, so that a slice's processes can be asked for without scanning again.
func (inv *Inventory) remember(all []found) {
	units := make(map[job.SliceID]unit, len(all))
	for _, f := range all {
		units[f.slice.ID] = f.where
	}
	inv.mu.Lock()
	inv.units = units
	inv.rememberCards(all)
	inv.mu.Unlock()
}

// rememberCards keeps what was found of each GPU, of those that do not answer what was found before. mu is held.
func (inv *Inventory) rememberCards(all []found) {
	now := map[string]*card{}
	for _, f := range all {
		c := now[f.gpu]
		if c == nil {
			c = &card{gpu: f.card}
			now[f.gpu] = c
		}
		c.slices, c.places = append(c.slices, f.slice.ID), append(c.places, f.at)
	}
	maps.Copy(inv.cards, now)
}

var _ inventory.Meter = (*Inventory)(nil)

// Use implements inventory.Meter. A process that the driver lists twice (compute and MPS) counts once, with the larger
// figure.
func (inv *Inventory) Use(slice job.SliceID) (map[int]int64, error) {
	inv.mu.Lock()
	u := inv.units[slice]
	inv.mu.Unlock()
	if u == nil {
		return nil, errkind.Errorf(errkind.NotFound, "slice %s is not on this machine", slice)
	}
	processes, err := u.Processes()
	if err != nil {
		return nil, fmt.Errorf("memory in use on %s: %w", slice, err)
	}
	use := map[int]int64{}
	for _, p := range processes {
		if p.Memory >= 0 {
			use[p.PID] = max(use[p.PID], p.Memory)
		}
	}
	return use, nil
}
