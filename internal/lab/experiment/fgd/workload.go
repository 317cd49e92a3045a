// Package fgd is the published experiment of FGD (Weng et al., USENIX ATC'23) on Alibaba's openb cluster: pods arrive one
// at a time, nobody leaves, what fits nowhere is dropped, and the share of the GPUs that is allocated is read while the
// arrived share of the capacity grows to 130%. It checks the placement planners against the published tables, and knows
// no planner by name.
package fgd

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/openb"
)

// What the files of pod lists are called: the list's name lies between.
const (
	listBefore = "openb_pod_list_"
	listAfter  = ".csv"
)

// lists finds the pod lists in the folder openb below dir: the file of each name.
func lists(dir string) (map[string]string, error) {
	folder := filepath.Join(dir, "openb")
	files, err := os.ReadDir(folder)
	if err != nil {
		kind := errkind.Unavailable
		if errors.Is(err, fs.ErrNotExist) {
			kind = errkind.NotFound
		}
		return nil, errkind.Errorf(kind, "look for pod lists: %w", err)
	}
	out := map[string]string{}
	for _, f := range files {
		name, ok := strings.CutPrefix(f.Name(), listBefore)
		name, whole := strings.CutSuffix(strings.TrimSuffix(name, ".gz"), listAfter)
		if _, twice := out[name]; ok && whole && name != "" && !twice && !f.IsDir() {
			out[name] = filepath.Join(folder, f.Name())
		}
	}
	return out, nil
}

// Workloads are the pod lists in the folder openb below dir: every openb_pod_list_NAME.csv, gzipped or not. The default one
// comes first, the others by name.
func Workloads(dir string) ([]string, error) {
	found, err := lists(dir)
	if err != nil {
		return nil, err
	}
	names := slices.Sorted(maps.Keys(found))
	if i := slices.Index(names, "default"); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "default")
	}
	return names, nil
}

// Workload is a cluster and the list of pods that arrivals are drawn from.
type Workload struct {
	Name    string
	Cluster planner.Cluster
	// Pods as tasks, in the order of their names, which Names has. Their ids are not set.
	Pods  []planner.Task
	Names []string
	// NodeNames in the order of the cluster's nodes.
	NodeNames []string
	// Typical tasks of the list.
	Typical []planner.Typical
	// Capacity of all GPUs in thousandths of one.
	Capacity int64
}

// Load reads the workload of a name from the folder openb below dir: its pod list, and the list of nodes with GPUs.
func Load(dir, name string) (*Workload, error) {
	w := &Workload{Name: name}
	var nodes []trace.NodeRecord
	file := filepath.Join(dir, "openb", "openb_node_list_gpu_node.csv.gz")
	err := trace.Each(openb.Format(), file, func(r *trace.Record) error {
		if r.Kind != trace.Node {
			return errkind.Errorf(errkind.Invalid, "%s:%d: a pod in the list of nodes", file, r.Line)
		}
		nodes = append(nodes, r.Node)
		return nil
	})
	if err != nil {
		return nil, err
	}
	bits, err := w.build(nodes)
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%s: %w", file, err)
	}
	type pod struct {
		name string
		task planner.Task
	}
	var pods []pod
	found, err := lists(dir)
	if err != nil {
		return nil, err
	}
	if file = found[name]; file == "" { // the error that says so names it as published
		file = filepath.Join(dir, "openb", listBefore+name+listAfter+".gz")
	}
	err = trace.Each(openb.Format(), file, func(r *trace.Record) error {
		if r.Kind != trace.Job {
			return errkind.Errorf(errkind.Invalid, "%s:%d: a node in a list of pods", file, r.Line)
		}
		pods = append(pods, pod{r.Job.ID, taskOf(&r.Job, bits)})
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(pods, func(a, b pod) int {
		switch {
		case a.name < b.name:
			return -1
		case a.name > b.name:
			return 1
		}
		return 0
	})
	for _, p := range pods {
		w.Names = append(w.Names, p.name)
		w.Pods = append(w.Pods, p.task)
	}
	w.Typical = fgd.Typical(w.Pods)
	return w, nil
}

// build makes the cluster: a class of devices for each model, in the order of their names. All weigh a whole GPU and none
// has a memory size, for the trace publishes none: to every planner they differ in name only.
func (w *Workload) build(nodes []trace.NodeRecord) (map[string]uint32, error) {
	var models []string
	for _, n := range nodes {
		if n.GPUs > 0 {
			models = append(models, n.Model)
		}
	}
	slices.Sort(models)
	models = slices.Compact(models)
	if len(models) > planner.MaxClasses {
		return nil, errkind.Errorf(errkind.Invalid, "%d models of GPUs; there may be %d", len(models), planner.MaxClasses)
	}
	bits := map[string]uint32{}
	for i, m := range models {
		bits[m] = 1 << i
		w.Cluster.Classes = append(w.Cluster.Classes, planner.Class{Name: m, Weight: planner.Whole})
	}
	for _, n := range nodes {
		class, _ := slices.BinarySearch(models, n.Model)
		w.NodeNames = append(w.NodeNames, n.ID)
		w.Cluster.Nodes = append(w.Cluster.Nodes, planner.Node{
			Name: n.ID, CPU: n.CPU, Memory: n.Memory, Devices: slices.Repeat([]uint8{uint8(class)}, int(n.GPUs)),
		})
		w.Capacity += n.GPUs * planner.Whole
	}
	return bits, nil
}

// taskOf a pod. Its list of models does not count if it asks no GPU; a model that the cluster has not allows nothing.
func taskOf(j *trace.JobRecord, bits map[string]uint32) planner.Task {
	t := planner.Task{Devices: int32(j.GPUs), Share: int32(j.Milli), CPU: j.CPU, Memory: j.Memory}
	switch {
	case j.GPUs == 0:
		t.Share = planner.Whole
	case len(j.Models) == 0:
		t.Classes = 1<<planner.MaxClasses - 1
	default:
		for _, m := range j.Models {
			t.Classes |= bits[m]
		}
	}
	return t
}

// asked is what a pod counts for in the shares: thousandths of GPUs.
func asked(t *planner.Task) int64 { return int64(t.Devices) * int64(t.Share) }
