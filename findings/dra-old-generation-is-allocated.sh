#!/usr/bin/env bash
set -e -u -o pipefail
#
# Kubernetes' allocator for DRA takes devices of an old generation of a pool, where a node sees as many of its slices as it
# announced.
#
# Version: k8s.io/dynamic-resource-allocation v0.36.3, structured.NewAllocator, which is what kube-scheduler 1.36.3 allocates by.
# Says:    "Consumers of ResourceSlices should only consider resources from the pool with the highest generation number", and
#          resourceSliceCount is "the total number of ResourceSlices in the pool at this generation number" (API reference,
#          ResourceSlice v1, ResourcePool).
# Does:    it counts the slices that are of the node first. Are there as many as announced, the pool counts as complete, and
#          other slices of the pool are not looked at: neither a higher generation elsewhere, nor more of this one.
# So:      1. A driver moves a device from node a to node b: it publishes generation 2, whose only slice is of b, before it
#             deletes generation 1. Until then a claim on a is given the device that is not there any more; b gets it as well.
#          2. A pool announces one slice and has three, one of a and two of b: it works on a, and on b nothing is allocated.
#          All three allocators of the package (stable, incubating, experimental) do so. That completeness is judged by the
#          count alone is meant (kubernetes/kubernetes pull requests 135036 and 141118); that it hides a newer generation is
#          said nowhere.
# Output, seen on 2026-11-28 with Go 1.26.8:
#   stable: generation 2 moved a device from a to b: a gets moved, b gets moved; 3 slices of 1 announced: a gets x, b gets nothing
#   and the same of incubating and experimental.
#
# Needs Go and its module proxy. Ends with 0 if that is still so, with 1 if it has changed.
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > go.mod <<'END'
module finding

go 1.26.0

require k8s.io/dynamic-resource-allocation v0.36.3
END
cat > main.go <<'END'
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

type classes struct{}

func (classes) List() ([]*resourceapi.DeviceClass, error)    { return []*resourceapi.DeviceClass{class()}, nil }
func (classes) Get(string) (*resourceapi.DeviceClass, error) { return class(), nil }

func class() *resourceapi.DeviceClass {
	return &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "class"}}
}

func slice(name, node string, generation, count int64, device string) *resourceapi.ResourceSlice {
	s := &resourceapi.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.Driver, s.Spec.NodeName = "driver.example.com", &node
	s.Spec.Pool = resourceapi.ResourcePool{Name: "fabric", Generation: generation, ResourceSliceCount: count}
	s.Spec.Devices = []resourceapi.Device{{Name: device}}
	return s
}

// given is the device that a claim for one is given on a node.
func given(f structured.Features, node string, slices ...*resourceapi.ResourceSlice) string {
	claim := &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "1"}}
	claim.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{
		DeviceClassName: "class", AllocationMode: resourceapi.DeviceAllocationModeExactCount, Count: 1}}}
	ctx := context.Background()
	none := structured.AllocatedState{AllocatedDevices: sets.New[structured.DeviceID]()}
	a, err := structured.NewAllocator(ctx, f, none, classes{}, slices, cel.NewCache(1, cel.Features{}))
	if err != nil {
		return err.Error()
	}
	got, err := a.Allocate(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}, []*resourceapi.ResourceClaim{claim})
	switch {
	case err != nil:
		return err.Error()
	case len(got) == 0:
		return "nothing"
	}
	return got[0].Devices.Results[0].Device
}

func main() {
	for _, v := range []struct {
		name string
		structured.Features
	}{
		{"stable", structured.Features{}},
		{"incubating", structured.Features{AdminAccess: true, ConsumableCapacity: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true}},
		{"experimental", structured.Features{AdminAccess: true, ConsumableCapacity: true, DeviceTaints: true, PartitionableDevices: true, PrioritizedList: true, ListTypeAttributes: true}},
	} {
		moved := []*resourceapi.ResourceSlice{slice("old", "a", 1, 1, "moved"), slice("new", "b", 2, 1, "moved")}
		more := []*resourceapi.ResourceSlice{slice("1", "a", 1, 1, "x"), slice("2", "b", 1, 1, "y"), slice("3", "b", 1, 1, "z")}
		fmt.Printf("%s: generation 2 moved a device from a to b: a gets %s, b gets %s; 3 slices of 1 announced: a gets %s, b gets %s\n", v.name,
			given(v.Features, "a", moved...), given(v.Features, "b", moved...), given(v.Features, "a", more...), given(v.Features, "b", more...))
	}
}
END
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
go mod tidy >/dev/null 2>&1
seen=$(go run .)
printf '%s\n' "$seen"
for name in stable incubating experimental; do
	want="$name: generation 2 moved a device from a to b: a gets moved, b gets moved; 3 slices of 1 announced: a gets x, b gets nothing"
	grep -qxF "$want" <<<"$seen" || { echo "it has changed: want $want" >&2; exit 1; }
done
