package clearing

const (
	// rounds of bargaining at most. More than these move the bound of a thousand bids by less than a thousandth.
	rounds = 80
	// stale rounds without a lower bound halve the step.
	stale = 4
)

// bargain lowers the bound by raising the price of groups that the relaxed plan takes more than once and lowering that of
// groups it does not take (Lagrangian relaxation of the rule, with Polyak's step). Every round gives a bound, and its plan
// is offered. The least that this can reach is the bound of the linear program, whose gap
// is at most 2: the extras of twoPhase are a solution of its dual.
func (x *contest) bargain() {
	x.asked = append(x.asked[:0], x.price...)
	halved, since := uint(0), 0
	for range rounds {
		bound := x.relax()
		if bound < x.bound {
			x.bound, since = bound, 0
			x.asked = append(x.asked[:0], x.price...)
		} else if since++; since == stale {
			halved, since = halved+1, 0
		}
		norm := int64(0)
		for g, n := range x.count {
			if off := int64(n) - 1; x.price[g] > 0 || off > 0 {
				norm += off * off
			}
		}
		x.offer()
		if norm == 0 || x.value == x.bound {
			break
		}
		step := max(1, ((bound-x.value)>>halved)/norm)
		for g, n := range x.count {
			if off := int64(n) - 1; x.price[g] > 0 || off > 0 {
				x.price[g] = min(max(x.price[g]+step*off, 0), x.most[g]) // above most nothing of it is taken anyway
			}
		}
	}
}
