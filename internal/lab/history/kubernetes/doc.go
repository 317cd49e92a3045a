// Package kubernetes is what readers of a Kubernetes cluster have in common: what a resource is of, which devices a node has by these, and
// which of them Pods hold that ask for some. It knows of no file and talks to no cluster.
package kubernetes

import (
	"strings"

	"sluice.dev/sluice/internal/edge/cluster"
)

// What is odd of a cluster's Pods and nodes, whoever has seen them, and what is done about it.
const (
	mixed     = "a node that had other devices at times"
	mixedDone = "as many of each kind as there were at most: idle time of those that came or went is overstated"
	// Own: it runs in time that the users leave over.
	Own     = "a Pod of Sluice itself"
	OwnDone = "left out: it runs in time that users leave over, which counts as idle"
	shares  = "a share of a GPU (time-slicing) counts as a whole device: what is left of the device is not counted as idle"
)

// Fills says whether a Pod of this priority class is Sluice's: it runs in what others leave over, and holds nothing of theirs.
func Fills(priorityClass string) bool { return priorityClass == cluster.Leftover }

// Most bounds what a Pod or a node may have of one resource.
const Most = 1 << 12

// unit is what one of a resource is.
type unit struct {
	// profile of MIG, empty for whole devices.
	profile string
	// shared: its name says that units are shares of a device.
	shared bool
}

// Device says whether a resource is of GPUs.
func Device(resource string) bool {
	_, is := device(resource)
	return is
}

// device reads the name of a resource, also as kube-state-metrics writes it, with "_" in place of what is no letter or digit.
func device(resource string) (unit, bool) {
	resource = strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '_'
	}, resource)
	name, shared := strings.CutSuffix(resource, "_shared")
	switch name {
	case "nvidia_com_gpu", "amd_com_gpu", "gpu_intel_com_i915", "gpu_intel_com_xe":
		return unit{shared: shared}, true
	}
	profile, ok := strings.CutPrefix(name, "nvidia_com_mig_")
	if !ok {
		return unit{}, false
	}
	profile, media := strings.CutSuffix(profile, "_me")
	profile = strings.Replace(profile, "_", ".", 1)
	if media {
		profile += "+me"
	}
	return unit{profile, shared}, profile != ""
}
