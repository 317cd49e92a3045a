package fgd_test

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/lab/experiment/fgd"
	"sluice.dev/sluice/internal/lab/planner"
	planfgd "sluice.dev/sluice/internal/lab/planner/fgd"
)

// synthetic is a workload made up for tests and benchmarks: nodes with 8, 4 and 2 GPUs of three models, and pods of some
// 150 shapes, most of which share a GPU.
func synthetic(eights, fours, twos, pods int) *fgd.Workload {
	w := &fgd.Workload{Name: "synthetic"}
	for _, model := range []string{"A", "B", "C"} {
		w.Cluster.Classes = append(w.Cluster.Classes, planner.Class{Name: model, Weight: planner.Whole})
	}
	s := prng.New(1, prng.Name("synthetic"))
	nodes := slices.Concat(slices.Repeat([]int{8}, eights), slices.Repeat([]int{4}, fours), slices.Repeat([]int{2}, twos))
	for i, gpus := range nodes {
		w.Cluster.Nodes = append(w.Cluster.Nodes, planner.Node{
			Name: fmt.Sprint("node-", i), CPU: int64(gpus) * 12_000, Memory: int64(gpus) * 48_000,
			Devices: slices.Repeat([]uint8{uint8(s.IntN(3))}, gpus),
		})
		w.NodeNames = append(w.NodeNames, w.Cluster.Nodes[i].Name)
		w.Capacity += int64(gpus) * planner.Whole
	}
	var shapes []planner.Task
	for range 150 {
		cores := int64(1 + s.IntN(16))
		t := planner.Task{Share: planner.Whole, CPU: cores * 1000, Memory: cores * 4000, Classes: 1<<planner.MaxClasses - 1}
		switch x := s.IntN(100); {
		case x < 10:
		case x < 60:
			t.Devices, t.Share = 1, int32(50*(1+s.IntN(19)))
		case x < 95:
			t.Devices = 1
		default:
			t.Devices = int32(2 << s.IntN(3))
		}
		if s.IntN(10) == 0 {
			t.Classes = uint32(1 + s.IntN(6))
		}
		shapes = append(shapes, t)
	}
	for i := range pods {
		w.Names = append(w.Names, fmt.Sprint("pod-", i))
		// The product of two draws makes some shapes frequent and most rare.
		w.Pods = append(w.Pods, shapes[s.IntN(len(shapes))*s.IntN(len(shapes))/len(shapes)])
	}
	w.Typical = planfgd.Typical(w.Pods)
	return w
}
