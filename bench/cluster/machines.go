package main

import (
	"context"
	"fmt"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/inventory/sim"
)

// machines is an inventory of many machines that are alike, each with one simulated GPU cut in seven.
type machines struct {
	inventory.Inventory
	all []protocol.Slice
}

func newMachines(n int) (*machines, error) {
	one, err := sim.New("sim:a100-80gb,layout=7x1g.10gb")
	if err != nil {
		return nil, err
	}
	cut, err := one.Slices(context.Background())
	if err != nil {
		return nil, err
	}
	m := &machines{Inventory: one, all: make([]protocol.Slice, 0, n*len(cut))}
	for i := range n {
		for _, s := range cut {
			s.ID = job.SliceID(fmt.Sprintf("worker-%05d/%s", i, s.ID))
			m.all = append(m.all, s)
		}
	}
	return m, nil
}

// Slices of all machines, in order of id.
func (m *machines) Slices(context.Context) ([]protocol.Slice, error) { return m.all, nil }
