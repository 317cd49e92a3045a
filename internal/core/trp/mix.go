package trp

import "sluice.dev/sluice/internal/core/digest"

// Mix mixes a vector into a digest.
func (v Vector) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(len(v)))
	for _, a := range v { // digest.Numbers would want it on the heap
		h = h.Int(int64(a))
	}
	return h
}

// Mix mixes a compiled profile into a digest.
func (t *Table) Mix(h digest.Hash) digest.Hash {
	h = digest.Numbers(h, t.Bounds).Int(int64(len(t.Least)))
	for _, row := range t.Least {
		h = digest.Numbers(h, row)
	}
	return h
}

// Mix mixes a declared profile into a digest.
func (p *Profile) Mix(h digest.Hash) digest.Hash {
	h = h.Int(int64(p.Form), int64(p.Combine), int64(len(p.Phases)))
	for _, q := range p.Phases {
		h = h.Int(q.UpTo, int64(q.Mean), int64(q.SD))
	}
	h = h.Int(int64(len(p.Runs)))
	for _, run := range p.Runs {
		h = digest.Numbers(h, run)
	}
	h = digest.Numbers(h, p.Bounds).Int(int64(len(p.Curve)))
	for _, q := range p.Curve {
		h = h.Int(q.UpTo, int64(q.Amount))
	}
	return h
}
