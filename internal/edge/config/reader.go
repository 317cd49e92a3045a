package config

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/strict"
)

// WorkKeys are the keys of a job file's spec that Work reads.
func WorkKeys() []string {
	return []string{"queue", "priority", "items", "steps", "rigid", "memory", "memoryRisk|theta", "startup", "speeds", "template",
		"resident"}
}

// Work reads what a job file says of the work itself, and nothing of how it is started: the keys of WorkKeys, which o must
// know. theta is the default. What it returns is good only if no problem was added.
func Work(o strict.Object, theta int64) *job.Spec {
	o = o.As(specFields())
	s := &job.Spec{Queue: o.Get("queue").Label(DefaultQueue), Deadline: quantity.Never}
	s.Priority = int32(o.Get("priority").AsNumber())
	kinds := kindsOfWork()
	work(o, s, kinds[:len(kinds)-1])
	risk(o, s)
	if !o.Has("memoryRisk") {
		s.Theta = theta
	}
	s.Speeds = speeds(o.Get("speeds"))
	s.Worth = worth(o.Get("scoreWeights"))
	s.Template = o.Get("template").Label("")
	memory(o, s)
	return s
}

// MemoryOf is a memory profile over total units, in one of the forms of a job file.
func MemoryOf(v strict.Value, total int64) trp.Profile {
	if v.Plain() {
		return trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: total, Mean: v.Bytes(1, 1)}}}
	}
	s := &job.Spec{Total: total}
	if v.Given() {
		forms(v.As(&strict.Find(specFields(), "memory").Form), s)
	}
	return s.Profile
}
