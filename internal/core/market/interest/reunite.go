package interest

import (
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
)

// reunite visits the slices first where a program stays that a job can go on in: it would be given another slice else, and start there.
func (p *pass) reunite(out *protocol.Out) {
	waiting := p.residences()
	for i := p.next(0); i >= 0; i = p.next(i + 1) {
		if r := p.x.board.Slices()[i].Resident(); r != nil && waiting[r.Number] {
			p.visit(i, out)
			p.refresh()
		}
	}
}

// residences are the numbers of the programs that the first jobs in the order of this pass can go on in.
func (p *pass) residences() map[uint64]bool {
	waiting := map[uint64]bool{}
	for _, c := range p.x.board.Classes() {
		if !p.covers(c) {
			continue
		}
		for _, g := range p.x.index.Groups() {
			jobs, looked := g.On(c.At()), 0
			if jobs == nil {
				continue
			}
			for j := range jobs.Within(window.Endless) {
				if looked++; looked > mostKin {
					break
				}
				if n := j.Residence(); n != 0 {
					waiting[n] = true
				}
			}
		}
	}
	return waiting
}
