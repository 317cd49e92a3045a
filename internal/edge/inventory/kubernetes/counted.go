//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/mig"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/cluster"
)

// Of an extended resource only a number is known: which device a Pod got is between kubelet and device plugin. So slices are numbered, and every Pod of others is taken
// to hold some of these numbers, the same for as long as it exists.

// mostCounted bounds the slices of one resource on one machine.
const mostCounted = 1024

// countedID is the slice's ID: MACHINE/mig-1g.10gb.0.
func countedID(machine, resource string, n int) job.SliceID {
	_, name, _ := strings.Cut(resource, "/")
	return job.SliceID(fmt.Sprintf("%s/%s.%d", machine, name, n))
}

// counted lists slices of an extended resource on a machine, mostCounted at most. why says what is wrong with them; empty: nothing.
func (r *Resource) counted(m *machine, number int64) (list []protocol.Slice, why string) {
	_, profile, _ := strings.Cut(r.Name, "/")
	model, profile := first(r.Model, modelOf(m.product)), first(r.Profile, strings.TrimPrefix(profile, "mig-"))
	s := protocol.Slice{Model: first(model, "gpu"), Profile: profile, Capacity: trp.Vector{trp.Memory: r.Memory}, Speed: r.Speed}
	if memory, speed := known(model, profile, m.memory); true {
		s.Capacity[trp.Memory], s.Speed = first(s.Capacity[trp.Memory], memory), first(s.Speed, speed)
	}
	if s.Capacity[trp.Memory] <= 0 {
		return nil, fmt.Sprintf("how much memory one of %s has is not known: say it in its pool", r.Name)
	}
	for n := range min(int(number), mostCounted) {
		s.ID, s.Device = countedID(m.Name, r.Name, n), cluster.Device{Node: m.Name, Resource: r.Name, Ordinal: n}.String()
		list = append(list, s)
	}
	return list, ""
}

// known is the memory and speed of a profile on a model's board. A whole GPU's memory is whole, as its labels or the device say, else the board's. For an unknown model the first
// board with such a profile counts.
func known(model, profile string, whole quantity.Amount) (quantity.Amount, int64) {
	var likely *mig.Profile
	for _, b := range boards() {
		p, ok := b.Profile(profile)
		switch {
		case !ok && b.Model == model && profile == "gpu":
			return first(whole, b.Memory), 1000
		case ok && b.Model == model:
			return p.Memory, p.Speed
		case ok && likely == nil:
			likely = &p
		}
	}
	switch {
	case likely != nil:
		return likely.Memory, likely.Speed
	case profile == "gpu":
		return whole, 1000
	}
	return 0, 1000
}

// boards of all known models.
var boards = sync.OnceValue(mig.Boards) //nolint:gochecknoglobals // a table, written to by nobody

// modelOf turns a label's product name into a board's model: labels have no blanks.
func modelOf(product string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", " ")) }
	for _, b := range boards() {
		if plain(b.Model) == plain(product) {
			return b.Model
		}
	}
	return product
}

// first is the first argument that is not zero.
func first[T comparable](list ...T) (none T) {
	for _, v := range list {
		if v != none {
			return v
		}
	}
	return none
}

// seat gives every unit of a resource that others hold one of n numbers: the one it had before, else the highest without a Pod of ours, since ours are sold from the
// lowest on, else the highest with one. Units beyond n get none: there our Pods are on their way out.
func seat(n int, before map[int]types.UID, others []*tenant, units func(*tenant) int64, ours map[int]bool) map[int]types.UID {
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
			if i := slices.IndexFunc(others, func(t *tenant) bool { return left[t.UID] > 0 }); i >= 0 {
				seats[k] = others[i].UID
				left[others[i].UID]--
			}
		}
	}
	return seats
}
