package place_test

import (
	"math"
	"slices"

	"sluice.dev/sluice/internal/lab/planner"
)

// world is a placement planner without any cleverness: it keeps what is left of every device, and for every waiting task
// asks every node, and scores it by the published formula from nothing but these lists.
type world struct {
	c       planner.Cluster
	policy  string
	ranks   []int32
	typical []planner.Typical

	left        []int32 // by device
	node        []int32
	class       []uint8
	cpu, memory []int64 // by node
	queue       []planner.Task
	running     map[planner.ID]*run
}

type run struct {
	task    planner.Task
	node    int32
	devices []planner.Device
}

func newWorld(policy string, o planner.Options) *world {
	w := &world{c: o.Cluster, policy: policy, ranks: o.Ranks, typical: o.Typical, running: map[planner.ID]*run{}}
	for i, n := range o.Cluster.Nodes {
		w.cpu, w.memory = append(w.cpu, n.CPU), append(w.memory, n.Memory)
		for _, class := range n.Devices {
			w.left, w.node, w.class = append(w.left, planner.Whole), append(w.node, int32(i)), append(w.class, class)
		}
	}
	return w
}

func (w *world) bounded(node int32) bool {
	return w.c.Nodes[node].CPU != 0 || w.c.Nodes[node].Memory != 0
}

// bySize is the classes, smaller devices first.
func (w *world) bySize() []uint8 {
	var out []uint8
	for class := range w.c.Classes {
		out = append(out, uint8(class))
	}
	slices.SortStableFunc(out, func(a, b uint8) int {
		x, y := w.c.Classes[a], w.c.Classes[b]
		if x.Memory != y.Memory {
			return int(x.Memory - y.Memory)
		}
		return int(x.Weight - y.Weight)
	})
	return out
}

// on lists the devices of a class on a node.
func (w *world) on(node int32, class uint8) []planner.Device {
	var out []planner.Device
	for d := range w.left {
		if w.node[d] == node && w.class[d] == class {
			out = append(out, planner.Device(d))
		}
	}
	return out
}

func shared(t *planner.Task) bool { return t.Devices == 1 && t.Share < planner.Whole }

// ways lists the devices that t may take of a class on a node: for a share each one that it fits on, else the lowest.
func (w *world) ways(t *planner.Task, node int32, class uint8) [][]planner.Device {
	if w.bounded(node) && (w.cpu[node] < t.CPU || w.memory[node] < t.Memory) {
		return nil
	}
	var fit []planner.Device
	for _, d := range w.on(node, class) {
		if w.left[d] >= t.Share {
			fit = append(fit, d)
		}
	}
	if !shared(t) {
		if len(fit) < int(t.Devices) {
			return nil
		}
		return [][]planner.Device{fit[:t.Devices]}
	}
	var out [][]planner.Device
	for _, d := range fit {
		out = append(out, []planner.Device{d})
	}
	if w.policy != "fgd" {
		slices.SortStableFunc(out, func(a, b []planner.Device) int { return int(w.left[a[0]] - w.left[b[0]]) })
		out = out[:min(1, len(out))]
	}
	return out
}

// spot is a place with what it is worth.
type spot struct {
	value   int
	node    int32
	class   uint8
	devices []planner.Device
}

// best looks at every node in the order of ranks, at every class from the smallest, at every way.
func (w *world) best(t *planner.Task, classes uint32) (spot, bool) {
	best, found := spot{value: -1}, false
	for rank := range w.c.Nodes {
		node := int32(slices.Index(w.ranks, int32(rank)))
		if t.Devices == 0 {
			if w.bounded(node) && (w.cpu[node] < t.CPU || w.memory[node] < t.Memory) {
				continue
			}
			if v := w.score(t, node, 0, nil); v > best.value {
				best, found = spot{value: v, node: node}, true
			}
			continue
		}
		for i, class := range w.bySize() {
			if classes>>class&1 == 0 {
				continue
			}
			for _, devices := range w.ways(t, node, class) {
				v := w.score(t, node, class, devices)
				if w.policy == "bestfit" {
					v += 1000 * w.larger(i)
				}
				if v > best.value {
					best, found = spot{v, node, class, devices}, true
				}
			}
		}
	}
	return best, found
}

// larger is how many classes are larger than the i-th in size.
func (w *world) larger(i int) int {
	order, n := w.bySize(), 0
	for _, class := range order[i+1:] {
		a, b := w.c.Classes[order[i]], w.c.Classes[class]
		if a.Memory != b.Memory || a.Weight != b.Weight {
			n++
		}
	}
	return n
}

// place finds a place for a whole task: a run that is taken already, or nil.
func (w *world) place(t *planner.Task) *run {
	if !t.Spread || t.Devices == 0 {
		s, ok := w.best(t, t.Classes)
		if !ok {
			return nil
		}
		r := &run{*t, s.node, s.devices}
		w.take(r, 1)
		return r
	}
	piece := *t
	piece.Devices, piece.CPU, piece.Memory = 1, 0, 0
	for tried := uint32(0); ; {
		var first spot
		any := false
		for _, class := range w.bySize() {
			if s, ok := w.best(&piece, t.Classes&^tried&(1<<class)); ok && (!any || s.value > first.value) {
				first, any = s, true
			}
		}
		if !any {
			return nil
		}
		r := &run{task: piece, node: first.node}
		for range t.Devices {
			s, ok := w.best(&piece, 1<<first.class)
			if !ok {
				break
			}
			w.take(&run{piece, s.node, s.devices}, 1)
			r.devices = append(r.devices, s.devices...)
		}
		if len(r.devices) == int(t.Devices) {
			return r
		}
		w.take(r, -1)
		tried |= 1 << first.class
	}
}

// take puts a run on its devices, or with -1 takes it away.
func (w *world) take(r *run, sign int32) {
	if w.bounded(r.node) {
		w.cpu[r.node] -= int64(sign) * r.task.CPU
		w.memory[r.node] -= int64(sign) * r.task.Memory
	}
	for _, d := range r.devices {
		w.left[d] -= sign * r.task.Share
		if w.left[d] < 0 || w.left[d] > planner.Whole {
			panic("a device is oversubscribed")
		}
	}
}

// plan starts what fits, in the order of arrival.
func (w *world) plan(out *planner.Out) {
	var waiting []planner.Task
	for i := range w.queue {
		t := w.queue[i]
		r := w.place(&t)
		if r == nil {
			waiting = append(waiting, t)
			continue
		}
		w.running[t.ID] = r
		from := len(out.Devices)
		class := uint8(0)
		if len(r.devices) > 0 {
			class = w.class[r.devices[0]]
		}
		out.Devices = append(out.Devices, r.devices...)
		out.Start(t.ID, class, r.node, from)
	}
	w.queue = waiting
}

// possible says whether t fits on the idle cluster.
func (w *world) possible(t planner.Task) bool {
	empty := newWorld(w.policy, planner.Options{Cluster: w.c, Ranks: w.ranks, Typical: w.typical})
	return empty.place(&t) != nil
}

func (w *world) leave(id planner.ID) {
	if r := w.running[id]; r != nil {
		w.take(r, -1)
		delete(w.running, id)
	}
	w.queue = slices.DeleteFunc(w.queue, func(t planner.Task) bool { return t.ID == id })
}

// idle is the weight left on a node in thousandths of a GPU.
func (w *world) idle(node int32) float64 {
	sum := int64(0)
	for d := range w.left {
		if w.node[d] == node {
			sum += int64(w.left[d]) * w.c.Classes[w.class[d]].Weight
		}
	}
	return float64(sum) / planner.Whole
}

// score by the published formulas (FGD's authors' program, as the packages of the kinds state them).
func (w *world) score(t *planner.Task, node int32, class uint8, devices []planner.Device) int {
	cpu, asked := 0.0, 0.0
	if w.bounded(node) {
		cpu, asked = float64(w.cpu[node]), float64(t.CPU)
	}
	gpu := w.idle(node)
	gpuAsked := 0.0
	if t.Devices > 0 {
		gpuAsked = float64(int64(t.Devices)*int64(t.Share)*w.c.Classes[class].Weight) / planner.Whole
	}
	const cpus, gpus = 128_000, 8000
	switch w.policy {
	case "bestfit":
		return int(100 * (1 - ((cpu-asked)/cpus*0.5 + (gpu-gpuAsked)/gpus*0.5)))
	case "dotproduct":
		return int(100 * (1 - (cpu/cpus*(asked/cpus)+gpu/gpus*(gpuAsked/gpus))/2))
	case "clustering":
		return w.clustering(t, node, gpu)
	case "packing":
		return w.packing(t, node, devices)
	case "fgd":
		before := w.fragments(node)
		r := &run{*t, node, devices}
		w.take(r, 1)
		fall := before - w.fragments(node)
		w.take(r, -1)
		return int(100 / (1 + math.Exp(-fall/1000)))
	}
	return 0
}

func size(t *planner.Task) int32 {
	if shared(t) {
		return 0
	}
	return t.Devices
}

func (w *world) clustering(t *planner.Task, node int32, gpu float64) int {
	if t.Devices == 0 {
		return 0
	}
	sizes := map[int32]bool{}
	for _, r := range w.running {
		for _, d := range r.devices {
			if w.node[d] == node {
				sizes[size(&r.task)] = true
			}
		}
	}
	score := int(math.Floor(25 * (8000 - math.Floor(gpu)) / 8000))
	switch {
	case sizes[size(t)] && len(sizes) == 1:
		return score + 75
	case sizes[size(t)]:
		return score + 50
	case len(sizes) == 0:
		return score + 25
	}
	return score
}

func (w *world) packing(t *planner.Task, node int32, devices []planner.Device) int {
	if t.Devices == 0 {
		return 0
	}
	all, idle := 0, 0
	for d := range w.left {
		if w.node[d] == node {
			all++
			if w.left[d] == planner.Whole {
				idle++
			}
		}
	}
	if all == idle {
		return min(max(33-all, all), 33)
	}
	fresh, left := 0, 0
	for _, d := range devices {
		if w.left[d] == planner.Whole {
			fresh++
		}
		left += int(w.left[d]) * 100 / planner.Whole
	}
	if fresh > 0 {
		return max(50-fresh, 33)
	}
	return max(100-left/10, 50)
}

// fragments is F of a node in thousandths of a GPU, for one typical task.
func (w *world) fragments(node int32) float64 {
	sum, total := int64(0), int64(0)
	for _, kind := range w.typical {
		m := kind.Task
		total += kind.Count
		for class := range w.c.Classes {
			weight := w.c.Classes[class].Weight
			idle, room, count := int64(0), int64(0), int32(0)
			for _, d := range w.on(node, uint8(class)) {
				idle += int64(w.left[d]) * weight
				if w.left[d] >= m.Share {
					room += int64(w.left[d]) * weight
					count++
				}
			}
			need, cpu := m.Devices, m.CPU
			if m.Spread {
				need, cpu = 1, 0
			}
			if m.Devices == 0 || m.Classes>>class&1 == 0 || count < need || w.bounded(node) && w.cpu[node] < cpu {
				room = 0
			}
			sum += kind.Count * (idle - room)
		}
	}
	return float64(sum) / planner.Whole / float64(total)
}
