package pool

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// TestSetAgainstSlice covers one to three levels.
func TestSetAgainstSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{1, 64, 65, 5000, 300_000}).Draw(t, "size")
		s, in := NewSet(size), map[int32]bool{}
		near := rapid.Int32Range(0, int32(size-1))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			i := near.Draw(t, "i")
			if rapid.Bool().Draw(t, "few") {
				i %= 70
				i = min(i, int32(size-1))
			}
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				s.Add(i)
				in[i] = true
			case 1:
				s.Remove(i)
				delete(in, i)
			case 2:
				word := rapid.Uint64().Draw(t, "word")
				if i |= 63; int(i) >= size {
					continue // a word that the set ends within
				}
				s.setWord(i>>6, word)
				for b := range int32(64) {
					if delete(in, i&^63|b); word&(1<<b) != 0 {
						in[i&^63|b] = true
					}
				}
			}
			from, want := near.Draw(t, "from"), int32(-1)
			for k := range in {
				if k >= from && (want < 0 || k < want) {
					want = k
				}
			}
			if got := s.Next(from); got != want {
				t.Fatalf("the next from %d is %d, want %d", from, got, want)
			}
		}
	})
}

// TestPlaces takes and gives at random, and wants of every place what the package says: as many devices as there are, of
// one class, on the node that suits best; a copy agrees; and in the end everything is free again.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCluster(t)
		p, err := New(c)
		if err != nil {
			t.Fatal(err)
		}
		other, _ := New(c)
		tasks := map[planner.ID]planner.Task{}
		for id := range planner.ID(rapid.IntRange(1, 30).Draw(t, "tasks")) {
			for old := range id {
				if task, there := tasks[old]; there && rapid.IntRange(0, 4).Draw(t, "ends") == 0 {
					p.Give(&task)
					delete(tasks, old)
				}
			}
			task := drawTask(t, id, 1)
			class := rapid.IntRange(0, len(c.Classes)-1).Draw(t, "class")
			fits := p.Fits(&task, class)
			if want := canPlace(p, &task, class); fits != want {
				t.Fatalf("task %+v fits on class %d: %v, want %v", task, class, fits, want)
			}
			if fits && !p.Possible(&task, class) {
				t.Fatalf("task %+v fits on class %d and is called impossible", task, class)
			}
			before := freeByNode(p, class)
			devices, at, ok := p.Take(&task, class, nil)
			if ok != fits || ok && len(devices) != int(task.Devices) {
				t.Fatalf("task %+v is given %v (%v), and it fits: %v", task, devices, ok, fits)
			}
			if !ok {
				continue
			}
			tasks[id] = task
			if task.Devices > 1 && !task.Spread {
				for n, free := range before {
					if free >= task.Devices && p.host(int32(n), &planner.Task{CPU: task.CPU, Memory: task.Memory}) && free < before[at] {
						t.Fatalf("a gang of %d goes to node %d with %d free, and node %d has %d", task.Devices, at, before[at], n, free)
					}
				}
			}
			where, list := p.Where(&task, nil)
			slices.Sort(list)
			slices.Sort(devices)
			if !slices.Equal(list, devices) || len(devices) > 0 && !task.Spread && where != at {
				t.Fatalf("task %+v was given %v on %d, and is on %v on %d", task, devices, at, list, where)
			}
			other.CopyFrom(p)
			if other.CanHold(&task, at, devices) && task.Devices > 0 && task.Share*2 > planner.Whole {
				t.Fatalf("%v are taken, and the copy has room there", devices)
			}
			other.Give(&task)
			if !other.CanHold(&task, at, devices) {
				t.Fatalf("the copy got %v back and has no room there", devices)
			}
			other.Hold(&task, at, devices)
			for k := range c.Classes {
				if other.Free(k) != p.Free(k) {
					t.Fatalf("class %d has %d free, and %d in a copy", k, p.Free(k), other.Free(k))
				}
			}
		}
		for _, task := range tasks {
			p.Give(&task)
		}
		for k := range c.Classes {
			if p.Free(k) != p.empty.total[k] {
				t.Fatalf("in the end %d devices of class %d are free, and there are %d", p.Free(k), k, p.empty.total[k])
			}
		}
		for n := range p.nodes {
			if p.nodes[n] != p.empty.nodes[n] {
				t.Fatalf("in the end node %d has %+v, want %+v", n, p.nodes[n], p.empty.nodes[n])
			}
		}
	})
}

func freeByNode(p *Pool, class int) []int32 {
	free := make([]int32, len(p.nodes))
	for i := range p.devices {
		if d := &p.devices[i]; int(d.class) == class && d.free == planner.Whole {
			free[d.node]++
		}
	}
	return free
}

// canPlace tries every node.
func canPlace(p *Pool, t *planner.Task, class int) bool {
	all := int32(0)
	for n := range p.nodes {
		h, here := &p.nodes[n], int32(0)
		for d := h.from; d < h.to; d++ {
			if int(p.devices[d].class) == class && int32(p.devices[d].free) >= t.Share {
				here++
			}
		}
		all += here
		if here >= t.Devices && (h.unlimited || t.Spread || t.CPU <= h.cpu && t.Memory <= h.memory) {
			return true
		}
	}
	return t.Spread && t.Devices > 0 && all >= t.Devices
}

// drawCluster draws a small cluster: up to 3 classes and 4 nodes, with and without limits of their hosts.
func drawCluster(t *rapid.T) planner.Cluster {
	var c planner.Cluster
	classes := rapid.IntRange(1, 3).Draw(t, "classes")
	for i := range classes {
		c.Classes = append(c.Classes, planner.Class{Name: string(rune('a' + i)), Weight: planner.Whole,
			Memory: quantity.Amount(10 * (i + 1))})
	}
	limited := rapid.Bool().Draw(t, "limited hosts")
	for range rapid.IntRange(1, 4).Draw(t, "nodes") {
		n := planner.Node{Name: "n"}
		for range rapid.IntRange(0, 4).Draw(t, "devices") {
			n.Devices = append(n.Devices, uint8(rapid.IntRange(0, classes-1).Draw(t, "class")))
		}
		if limited && rapid.Bool().Draw(t, "limit") {
			n.CPU, n.Memory = rapid.Int64Range(0, 8).Draw(t, "cpu"), rapid.Int64Range(1, 8).Draw(t, "memory")
		}
		c.Nodes = append(c.Nodes, n)
	}
	return c
}

// drawTask draws a task of any sort, with run times of whole units or none.
func drawTask(t *rapid.T, id planner.ID, unit time.Duration) planner.Task {
	task := planner.Task{ID: id, Devices: int32(rapid.IntRange(0, 4).Draw(t, "wants")), Share: planner.Whole,
		Classes: uint32(rapid.IntRange(1, 7).Draw(t, "classes"))}
	task.Spread = rapid.Bool().Draw(t, "spread")
	if task.Devices == 1 && rapid.Bool().Draw(t, "share") {
		task.Share = int32(rapid.IntRange(1, planner.Whole).Draw(t, "of it"))
	}
	if rapid.Bool().Draw(t, "host") {
		task.CPU, task.Memory = rapid.Int64Range(0, 4).Draw(t, "cores"), rapid.Int64Range(0, 4).Draw(t, "mib")
	}
	if rapid.IntRange(0, 4).Draw(t, "known") > 0 {
		task.Run = new([planner.MaxClasses]time.Duration)
		for c := range task.Run {
			task.Run[c] = time.Duration(rapid.IntRange(0, 20).Draw(t, "run")) * unit
			if c == 2 {
				break
			}
		}
	}
	return task
}
