package atomizer

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
)

// Kinds counts slices that no job can tell apart: there are few kinds, however many slices. The zero value has none.
type Kinds struct {
	list []kind // in the order in which they came
	at   map[like]int
}

// like is what a job sees of a slice.
type like struct {
	Profile  string
	Capacity trp.Vector
	Speed    int64
}

type kind struct {
	like
	// ID is the slice that stands for the kind in what is said to people.
	ID    job.SliceID
	count int
}

func likeness(s *protocol.Slice) like { return like{s.Profile, s.Capacity, s.Speed} }

// Add counts one more slice.
func (k *Kinds) Add(s *protocol.Slice) {
	l := likeness(s)
	if i, found := k.at[l]; found {
		k.list[i].count++
		return
	}
	if k.at == nil {
		k.at = map[like]int{}
	}
	k.at[l] = len(k.list)
	k.list = append(k.list, kind{like: l, ID: s.ID, count: 1})
}

// Remove counts one less of those that were added.
func (k *Kinds) Remove(s *protocol.Slice) {
	l := likeness(s)
	i, found := k.at[l]
	if !found {
		return
	}
	if k.list[i].count--; k.list[i].count > 0 {
		return
	}
	k.list = slices.Delete(k.list, i, i+1)
	delete(k.at, l)
	for j := i; j < len(k.list); j++ {
		k.at[k.list[j].like] = j
	}
}
