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

// Of an extended resource a machine has a number, and nobody but its device plugin knows which of them a Pod got. So the slices are numbered, and every Pod
// that is not ours is taken to hold some of them, the same for as long as it is there.

// mostCounted bounds the slices of one resource on one machine.
const mostCounted = 1024

// countedID is the slice of a number of a resource: MACHINE/mig-1g.10gb.0.
func countedID(machine, resource string, n int) job.SliceID {
	_, name, _ := strings.Cut(resource, "/")
	return job.SliceID(fmt.Sprintf("%s/%s.%d", machine, name, n))
}

// counted are the slices of an extended resource on a machine, that many. An empty why says that there is nothing wrong.
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

// known is what boards of a model say of a profile; of a whole GPU its memory as its machine's labels have it.
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

// boards are all that are known.
var boards = sync.OnceValue(mig.Boards) //nolint:gochecknoglobals // a table, written to by nobody

// modelOf is a model as boards are called: labels have no blanks in them.
func modelOf(product string) string {
	plain := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "-", " ")) }
	for _, b := range boards() {
		if plain(b.Model) == plain(product) {
			return b.Model
		}
	}
	return product
}

// first is the first that is set.
func first[T comparable](list ...T) (none T) {
	for _, v := range list {
		if v != none {
			return v
		}
	}
	return none
}

// seat gives every unit that others have of a resource one of n numbers: the one it had before, if it has; else one that no Pod of ours is on, the highest
// first, since ours are sold from the lowest on. What is beyond n sits nowhere: Pods of ours are on their way out there.
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
	for _, free := range []bool{true, false} { // first where none of ours is
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
