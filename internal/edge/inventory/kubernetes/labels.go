//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
)

// What a Node's labels say of the devices behind its extended resources. NVIDIA's GPU feature discovery (k8s-device-plugin v0.17,
// internal/lm) writes RESOURCE.product, .memory (MiB), .count, .replicas and .sharing-strategy for nvidia.com/gpu and each
// nvidia.com/mig-PROFILE; under the MIG strategy `single` those of nvidia.com/gpu are of the instances. GKE has labels of its own.

const (
	wholeGPU       = "nvidia.com/gpu"
	gkeAccelerator = "cloud.google.com/gke-accelerator"
	gkePartition   = "cloud.google.com/gke-gpu-partition-size"
	gkeSharing     = "cloud.google.com/gke-gpu-sharing-strategy"
	gkeClients     = "cloud.google.com/gke-max-shared-clients-per-gpu"
	// Of a resource that was renamed when it was shared, and of a product whose resource was not.
	sharedResource, sharedProduct = ".shared", "-SHARED"
	invalidProfile                = "INVALID"
)

// splitters are annotations of Nodes whose GPUs another manager gives out in parts: HAMi, as it is and was called, and Volcano's.
var splitters = []string{ //nolint:gochecknoglobals // names, written to by nobody
	"hami.io/node-nvidia-register", "4pd.io/node-nvidia-register", "volcano.sh/node-vgpu-register",
}

// described is what labels say of the devices of a resource; empty: nothing.
type described struct {
	model, profile string
	memory         quantity.Amount
}

// has reports whether there is any label of a resource.
func (m *machine) has(resource string) bool {
	return slices.ContainsFunc([]string{".product", ".memory", ".count", ".replicas"},
		func(key string) bool { return m.Labels[resource+key] != "" })
}

// describe reads the labels of a resource, and of its model those of whole GPUs where it has none.
func (m *machine) describe(resource string) (d described) {
	own := m.Labels[resource+".product"]
	product := first(own, m.Labels[wholeGPU+".product"], m.Labels[gkeAccelerator])
	d.model, d.profile, _ = strings.Cut(strings.TrimSuffix(product, sharedProduct), "-MIG-")
	switch {
	case own != "":
	case resource == wholeGPU:
		d.profile = m.Labels[gkePartition]
	default:
		d.profile = ""
	}
	if mib, err := strconv.ParseInt(m.Labels[resource+".memory"], 10, 64); err == nil && mib > 0 && mib < 1<<30 {
		d.memory = quantity.Amount(mib) << 20
	}
	d.model, _ = mig.ModelOf(d.model)
	return d
}

// sharing says why the units of a resource are no devices of their own: several Pods at once are given the same GPU or instance, and one
// subjob would run beside others' and our own. Empty: nothing says so.
func (m *machine) sharing(resource string, number int64) string {
	domain, _, _ := strings.Cut(resource, "/")
	if m.splitter != "" && (domain == "nvidia.com" || domain == "volcano.sh") {
		return fmt.Sprintf("%s is given out in parts of GPUs by another manager (annotation %s)", resource, m.splitter)
	}
	base, renamed := strings.CutSuffix(resource, sharedResource)
	how, times := m.replicated(base)
	if resource == wholeGPU && how == "" && m.Labels[gkeSharing] != "" && m.Labels[gkeClients] != "1" {
		how, times = m.Labels[gkeSharing], m.Labels[gkeClients]
	}
	switch {
	case how != "" && times != "":
		return fmt.Sprintf("%s is shared (%s, %s Pods to a device)", resource, how, times)
	case how != "":
		return fmt.Sprintf("%s is shared (%s)", resource, how)
	case renamed:
		return resource + " is shared, by its name"
	}
	if count, err := strconv.ParseInt(m.Labels[resource+".count"], 10, 64); err == nil && number > count {
		return fmt.Sprintf("there are more of %s than labels count devices: they are shared, or of several kinds", resource)
	}
	if domain == "nvidia.com" && !m.has(resource) {
		for key := range m.Labels {
			if of, is := strings.CutSuffix(key, ".sharing-strategy"); is && strings.HasPrefix(of, "nvidia.com/") {
				if how, _ := m.replicated(of); how != "" {
					return fmt.Sprintf("%s has no labels, and some of the machine's GPUs are shared under another name (%s)", resource, how)
				}
			}
		}
	}
	return ""
}

// replicated is how the labels of a resource say that it is shared, and how many times; empty: they don't.
func (m *machine) replicated(resource string) (how, times string) {
	strategy, replicas := m.Labels[resource+".sharing-strategy"], m.Labels[resource+".replicas"]
	n, err := strconv.Atoi(replicas)
	switch {
	case err == nil && n > 1:
		return first(strategy, "replicas"), replicas
	case strategy != "" && strategy != "none":
		return strategy, ""
	case strings.HasSuffix(m.Labels[resource+".product"], sharedProduct):
		return "its product is " + m.Labels[resource+".product"], ""
	}
	return "", ""
}
