// Package gpulabels reads what a Node's labels say of the devices behind its extended resources. NVIDIA's GPU feature discovery
// (k8s-device-plugin v0.17, internal/lm) writes RESOURCE.product, .memory (MiB), .count, .replicas and .sharing-strategy for nvidia.com/gpu
// and each nvidia.com/mig-PROFILE; under the MIG strategy `single` those of nvidia.com/gpu are of the instances. GKE has labels of its own.
// It must not know pools.
package gpulabels

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// WholeGPU is the extended resource of whole GPUs.
	WholeGPU       = "nvidia.com/gpu"
	gkeAccelerator = "cloud.google.com/gke-accelerator"
	gkePartition   = "cloud.google.com/gke-gpu-partition-size"
	gkeSharing     = "cloud.google.com/gke-gpu-sharing-strategy"
	gkeClients     = "cloud.google.com/gke-max-shared-clients-per-gpu"
	// Of a resource that was renamed when it was shared, and of a product whose resource was not.
	sharedResource, sharedProduct = ".shared", "-SHARED"
	// InvalidProfile is that of GPUs that are not cut alike under the strategy `single`.
	InvalidProfile = "INVALID"
)

// splitters are annotations of Nodes whose GPUs another manager gives out in parts: HAMi, as it is and was called, and Volcano's.
var splitters = []string{ //nolint:gochecknoglobals // names, written to by nobody
	"hami.io/node-nvidia-register", "4pd.io/node-nvidia-register", "volcano.sh/node-vgpu-register",
}

// Splitter is the annotation by which another manager says that it gives the Node's GPUs out in parts; empty: none does.
func Splitter(annotations map[string]string) (name string) {
	for _, s := range splitters {
		if annotations[s] != "" {
			name = s
		}
	}
	return name
}

// Node is what is read of a Node: its labels, and Splitter's annotation.
type Node struct {
	Labels   map[string]string
	Splitter string
}

// Described is what labels say of the devices of a resource; empty: nothing.
type Described struct {
	Model, Profile string
	Memory         quantity.Amount
}

// Has reports whether there is any label of a resource.
func (n Node) Has(resource string) bool {
	return slices.ContainsFunc([]string{".product", ".memory", ".count", ".replicas"},
		func(key string) bool { return n.Labels[resource+key] != "" })
}

// Describe reads the labels of a resource, and of its model those of whole GPUs where it has none.
func (n Node) Describe(resource string) (d Described) {
	own := n.Labels[resource+".product"]
	product := cmp.Or(own, n.Labels[WholeGPU+".product"], n.Labels[gkeAccelerator])
	d.Model, d.Profile, _ = strings.Cut(strings.TrimSuffix(product, sharedProduct), "-MIG-")
	switch {
	case own != "":
	case resource == WholeGPU:
		d.Profile = n.Labels[gkePartition]
	default:
		d.Profile = ""
	}
	if mib, err := strconv.ParseInt(n.Labels[resource+".memory"], 10, 64); err == nil && mib > 0 && mib < 1<<30 {
		d.Memory = quantity.Amount(mib) << 20
	}
	d.Model, _ = mig.ModelOf(d.Model)
	return d
}

// Sharing says why the units of a resource are no devices of their own: several Pods at once are given the same GPU or instance, and one
// subjob would run beside others' and our own. Empty: nothing says so.
func (n Node) Sharing(resource string, number int64) string {
	domain, _, _ := strings.Cut(resource, "/")
	if n.Splitter != "" && (domain == "nvidia.com" || domain == "volcano.sh") {
		return fmt.Sprintf("%s is given out in parts of GPUs by another manager (annotation %s)", resource, n.Splitter)
	}
	base, renamed := strings.CutSuffix(resource, sharedResource)
	how, times := n.replicated(base)
	if resource == WholeGPU && how == "" && n.Labels[gkeSharing] != "" && n.Labels[gkeClients] != "1" {
		how, times = n.Labels[gkeSharing], n.Labels[gkeClients]
	}
	switch {
	case how != "" && times != "":
		return fmt.Sprintf("%s is shared (%s, %s Pods to a device)", resource, how, times)
	case how != "":
		return fmt.Sprintf("%s is shared (%s)", resource, how)
	case renamed:
		return resource + " is shared, by its name"
	}
	if count, err := strconv.ParseInt(n.Labels[resource+".count"], 10, 64); err == nil && number > count {
		return fmt.Sprintf("there are more of %s than labels count devices: they are shared, or of several kinds", resource)
	}
	if domain == "nvidia.com" && !n.Has(resource) {
		for key := range n.Labels {
			if of, is := strings.CutSuffix(key, ".sharing-strategy"); is && strings.HasPrefix(of, "nvidia.com/") {
				if how, _ := n.replicated(of); how != "" {
					return fmt.Sprintf("%s has no labels, and some of the machine's GPUs are shared under another name (%s)", resource, how)
				}
			}
		}
	}
	return ""
}

// replicated is how the labels of a resource say that it is shared, and how many times; empty: they don't.
func (n Node) replicated(resource string) (how, times string) {
	strategy, replicas := n.Labels[resource+".sharing-strategy"], n.Labels[resource+".replicas"]
	count, err := strconv.Atoi(replicas)
	switch {
	case err == nil && count > 1:
		return cmp.Or(strategy, "replicas"), replicas
	case strategy != "" && strategy != "none":
		return strategy, ""
	case strings.HasSuffix(n.Labels[resource+".product"], sharedProduct):
		return "its product is " + n.Labels[resource+".product"], ""
	}
	return "", ""
}
