package cluster

import (
	"testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
)

func TestADeviceIsReadAsItWasWritten(t *testing.T) {
	for text, d := range map[string]Device{
		"resource:worker-1/nvidia.com%2Fmig-1g.10gb": {Node: "worker-1", Resource: "nvidia.com/mig-1g.10gb"},
		"resource:worker-1/nvidia.com%2Fgpu/7":       {Node: "worker-1", Resource: "nvidia.com/gpu", Ordinal: 7},
		"resource:w/nvidia.com%2Fgpu/0":              {}, "resource:w/nvidia.com%2Fgpu/01": {}, "resource:w/nvidia.com%2Fgpu/x": {},
		"dra:w/mig.nvidia.com/gpu.nvidia.com/w%2F0/gpu-0-0%": {},
		"dra:w/mig.nvidia.com/gpu.nvidia.com/w/gpu-0-mig-1": {Node: "w", Class: "mig.nvidia.com", Driver: "gpu.nvidia.com", Pool: "w",
			Name: "gpu-0-mig-1"},
		"resource:w": {}, "resource:/x": {}, "dra:a/b/c/d/": {}, "gpu:0": {}, "": {},
	} {
		got, err := ParseDevice(text)
		if got != d || (err == nil) != (d != Device{}) || err != nil && errkind.Of(err) != errkind.Invalid {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, d)
		}
		if err == nil && got.String() != text {
			t.Errorf("%q is written as %q", text, got.String())
		}
	}
}

func TestAJobOfAClusterHasItsNamespaceInFront(t *testing.T) {
	for _, c := range []struct {
		id              job.ID
		namespace, name string
		ok              bool
	}{{"team-a.train.v2", "team-a", "train.v2", true}, {"train", "train", "", false}, {".x", "", "x", false}} {
		if ns, name, ok := SplitJob(c.id); ns != c.namespace || name != c.name || ok != c.ok {
			t.Errorf("%q: %q, %q, %v", c.id, ns, name, ok)
		} else if ok && JobID(ns, name) != c.id {
			t.Errorf("%q becomes %q", c.id, JobID(ns, name))
		}
	}
}
