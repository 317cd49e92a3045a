//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory/kubernetes/gpulabels"
)

// Of an extended resource only a number is known: which device a Pod got is between kubelet and device plugin. So slices are numbered, and
// every Pod of others is taken to hold some of these numbers, the same for as long as it exists.

// mostCounted bounds the slices of one resource on one machine.
const mostCounted = 1024

// countedID is the slice's ID: MACHINE/mig-1g.10gb.0.
func countedID(machine, resource string, n int) job.SliceID {
	_, name, _ := strings.Cut(resource, "/")
	return job.SliceID(fmt.Sprintf("%s/%s.%d", machine, name, n))
}

// counted lists slices of an extended resource on a machine, mostCounted at most. why says what is wrong with them; empty: nothing. Of a
// slice's model, profile, memory and speed each is what the pool says, else the machine's labels, else what the tables have of that
// profile.
func counted(r *Resource, m *machine, number int64) (list []protocol.Slice, why string) {
	if why = m.said().Sharing(r.Name, number); why != "" {
		return nil, why
	}
	d := m.said().Describe(r.Name)
	if d.Profile == gpulabels.InvalidProfile {
		return nil, fmt.Sprintf("%s is of GPUs that are not cut alike, as the MIG strategy single wants them", r.Name)
	}
	_, name, _ := strings.Cut(r.Name, "/")
	labelled, _ := mig.Canonical(cmp.Or(d.Profile, strings.TrimPrefix(name, "mig-")))
	profile, _ := mig.Canonical(cmp.Or(r.Profile, labelled))
	if profile != labelled {
		d.Memory = 0 // what labels say is not of this profile
	}
	// another name for whole GPUs
	if whole := m.said().Describe(gpulabels.WholeGPU); profile == mig.Whole && !m.said().Has(r.Name) && whole.Profile == "" {
		d.Memory = whole.Memory
	}
	model, _ := mig.ModelOf(cmp.Or(r.Model, d.Model))
	known := mig.Lookup(model, profile)
	s := protocol.Slice{Model: cmp.Or(model, "gpu"), Profile: profile,
		Capacity: trp.Vector{trp.Memory: cmp.Or(r.Memory, d.Memory, known.Memory)}, Speed: cmp.Or(r.Speed, known.Speed)}
	if s.Capacity[trp.Memory] <= 0 {
		return nil, fmt.Sprintf("how much memory one of %s has is not known, by its labels or its profile (%s): say it in its pool", r.Name,
			profile)
	}
	for n := range min(int(number), mostCounted) {
		s.ID, s.Device = countedID(m.Name, r.Name, n), cluster.Device{Node: m.Name, Resource: r.Name, Ordinal: n}.String()
		list = append(list, s)
	}
	return list, ""
}

// seat gives every unit of a resource that others hold one of n numbers: the one it had before, else the highest without a Pod of ours,
// since ours are sold from the lowest on, else the highest with one. Units beyond n get none: there our Pods are on their way out.
func seat(n int, before map[int]types.UID, others []*pod, units func(*pod) int64, ours map[int]bool) map[int]types.UID {
	seats := map[int]types.UID{}
	left := map[types.UID]int64{}
	for _, t := range others {
		left[t.UID] = units(t)
	}
	for k := range n {
		if uid, sat := before[k]; sat && left[uid] > 0 && !ours[k] {
			seats[k] = uid
			left[uid]--
		}
	}
	for _, free := range []bool{true, false} { // first those without a Pod of ours
		for k := n - 1; k >= 0; k-- {
			if _, taken := seats[k]; taken || free == ours[k] {
				continue
			}
			if i := slices.IndexFunc(others, func(t *pod) bool { return left[t.UID] > 0 }); i >= 0 {
				seats[k] = others[i].UID
				left[others[i].UID]--
			}
		}
	}
	return seats
}
