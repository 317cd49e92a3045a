// Package sim is the inventory of simulated slices: the geometry of real boards, or made-up ones, with no GPU behind
// them. Subjobs on them are ordinary processes. It must not know how a slice's memory limit is kept.
package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/inventory"
)

// Inventory is a fixed set of simulated slices.
type Inventory struct {
	slices   []protocol.Slice
	describe string
}

// New makes the slices that spec describes. A spec is one or more groups of equal GPUs, joined by ';', with "sim:" in
// front if wanted. A SIZE has a unit (quantity.ParseSize):
//
//	BOARD[=COUNT][,layout=LAYOUT][,mem=SIZE]     a board of package mig; whole GPUs without a layout. mem gives each GPU
//	                                             that much memory instead of its own and scales its slices with it
//	custom[=COUNT],mem=SIZE+SIZE+...[,speed=N+N+...]   made-up slices of these sizes; speeds in parts per thousand, one for
//	                                             each slice or one for all, 1000 if not given
//
// for example "sim:a100-80gb=2,layout=3g.40gb+2g.20gb+2x1g.10gb" and "sim:custom,mem=1Gi+512Mi,speed=1000+500". GPUs are
// numbered over all groups. An error is of kind Invalid and lists every problem of every group.
func New(spec string) (*Inventory, error) {
	groups, err := parse(spec)
	if err != nil {
		return nil, err
	}
	inv := &Inventory{}
	var parts []string
	gpu := 0
	for _, g := range groups {
		for range g.count {
			for _, p := range g.pieces {
				s := p
				s.ID = job.SliceID(fmt.Sprintf("gpu%d%s", gpu, p.ID))
				inv.slices = append(inv.slices, s)
			}
			gpu++
		}
		parts = append(parts, fmt.Sprintf("%d simulated %s (%s)", g.count, g.model, g.what))
	}
	slices.SortFunc(inv.slices, func(a, b protocol.Slice) int { return strings.Compare(string(a.ID), string(b.ID)) })
	inv.describe = strings.Join(parts, ", ")
	return inv, nil
}

// Slices lists the simulated slices; it never fails.
func (inv *Inventory) Slices(context.Context) ([]protocol.Slice, error) {
	return slices.Clone(inv.slices), nil
}

// GPUs is empty: there are none to lock.
func (inv *Inventory) GPUs() []string { return nil }

// Describe says what is simulated.
func (inv *Inventory) Describe() string { return inv.describe }

// Watch waits for ctx to end: nobody else can be on a simulated slice.
func (inv *Inventory) Watch(ctx context.Context, _ func(job.SliceID, int) bool, _ func(inventory.Sighting)) error {
	<-ctx.Done()
	return nil
}

// Close has nothing to release.
func (inv *Inventory) Close() error { return nil }
