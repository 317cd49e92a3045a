package prometheus

import (
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/history"
)

const (
	foreign = "a series of a metric that says nothing of Pods, nodes or devices"
	leftOut = "left out"
)

// measure takes what a series of NVIDIA's DCGM exporter says of a device, and returns false if its labels don't say of which. Exporters
// called the label Hostname until 2026, and hostname since.
func measure(b *history.Book, metric string, s *series) bool {
	var sample func(v float64) (history.Level, int32)
	level := func(busy bool) (history.Level, int32) {
		if busy {
			return history.Busy, history.NoMemory
		}
		return history.Idle, history.NoMemory
	}
	switch metric {
	case "DCGM_FI_DEV_GPU_UTIL":
		sample = func(v float64) (history.Level, int32) {
			if v < 0 || v > 100 { // DCGM writes numbers of 19 digits for what it can't measure
				return history.Unmeasured, history.NoMemory
			}
			return level(v > 0)
		}
	case "DCGM_FI_PROF_GR_ENGINE_ACTIVE":
		sample = func(v float64) (history.Level, int32) {
			if v < 0 || v > 1.5 {
				return history.Unmeasured, history.NoMemory
			}
			return level(v > history.Quiet)
		}
	case "DCGM_FI_DEV_FB_USED":
		sample = func(v float64) (history.Level, int32) {
			if v < 0 || v > 1<<30 {
				return history.Unmeasured, history.NoMemory
			}
			return history.Unmeasured, int32(v)
		}
	default:
		b.Samples().Odd(foreign, leftOut, metric)
		return true
	}
	g := history.Gauge{Node: host(s), Slice: s.labels["GPU_I_ID"], Profile: s.labels["GPU_I_PROFILE"]}
	index, err := strconv.ParseUint(s.labels["gpu"], 10, 16)
	if g.Node == "" || err != nil {
		return false
	}
	g.Index = int32(index)
	if model := s.labels["modelName"]; model != "" {
		b.Samples().Model(g.Node, model)
	}
	samples := make([]history.Sample, 0, len(s.at))
	for i, at := range s.at {
		level, memory := sample(s.values[i])
		samples = append(samples, history.Sample{At: quantity.Instant(at) * quantity.Instant(time.Millisecond), Level: level, MiB: memory})
	}
	b.Samples().Measure(g, samples...)
	return true
}

// host is the node that a series of a device is of. In a Pod an exporter may call itself by the Pod's name; what the scrape says of its
// node goes first.
func host(s *series) string {
	for _, key := range []string{"exported_node", "node", "nodename", "kubernetes_node", "Hostname", "hostname"} {
		if text := s.labels[key]; text != "" {
			return text
		}
	}
	name, _, _ := strings.Cut(s.labels["instance"], ":")
	return name
}
