package place

import "sluice.dev/sluice/internal/lab/planner"

// Scale is what processors and devices are measured against in scores: 128,000 thousandths of a core and eight whole GPUs,
// as in the published formulas, or the largest node where it is larger.
type Scale struct {
	// CPU in thousandths of a core, GPU in thousandths of a whole GPU.
	CPU, GPU int64
}

// ScaleOf a cluster.
func ScaleOf(c planner.Cluster) Scale {
	s := Scale{CPU: 128_000, GPU: 8 * planner.Whole}
	for _, n := range c.Nodes {
		gpu := int64(0)
		for _, class := range n.Devices {
			gpu += c.Classes[class].Weight
		}
		s.CPU, s.GPU = max(s.CPU, n.CPU), max(s.GPU, gpu)
	}
	return s
}

// Parts of CPU and GPU of the scale. Rounding every step by itself keeps processors that fuse multiplication and addition
// from deciding otherwise than those that do not.
func (s Scale) Parts(cpu, gpuValue int64) (float64, float64) {
	return float64(cpu) / float64(s.CPU), float64(gpuValue) / planner.Whole / float64(s.GPU)
}

// Request is what t asks of pool p, as Node.Value counts it; 0 without devices.
func Request(p *Pool, t *planner.Task) int64 {
	if p == nil {
		return 0
	}
	return int64(t.Devices) * int64(t.Share) * p.Weight
}
