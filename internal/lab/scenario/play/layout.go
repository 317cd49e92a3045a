package play

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
)

// layout is the slices of a scenario by class, for the observer, the bounds and the planners alike.
type layout struct {
	measured []measure.Class
	classes  []bound.Class
	machines planner.Cluster
}

func layOut(s *scenario.Scenario) (l layout) {
	nodes, measured := s.Classes()
	l.measured = measured
	for _, c := range measured {
		l.classes = append(l.classes, bound.Class{Name: c.Name, Count: c.Count, Speed: c.Weight, Memory: c.Memory})
		l.machines.Classes = append(l.machines.Classes, planner.Class{Name: c.Name, Weight: c.Weight, Memory: c.Memory})
	}
	for i := range nodes {
		l.machines.Nodes = append(l.machines.Nodes, planner.Node{Name: string(nodes[i].ID), Devices: nodes[i].Classes})
	}
	return l
}

// judge says where jobs may run.
type judge struct {
	workload.Specs
	classes []bound.Class
}

// usable is the set of classes on which a job could run as a whole.
func (k *judge) usable(j *workload.Job) uint64 {
	spec, err := k.Spec(j, "whole")
	if err != nil {
		return 0 // a source's error, which the run itself ends in
	}
	return k.whole(spec)
}

func (k *judge) whole(spec *job.Spec) (set uint64) {
	need := spec.Safe.LeastOver(0, spec.Total, trp.Unscaled)
	for c, class := range k.classes {
		if need <= class.Memory && spec.SpeedOn(class.Name, class.Speed) > 0 {
			set |= 1 << c
		}
	}
	return set
}
