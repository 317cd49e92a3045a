package flow

// What one search may cost in messages (adr 0036: 7 + 2 H_max + B_r, and 3 for each lease that is lost). What nodes and zones say of
// themselves once a period is counted apart, and so is a node's word that it has room again, which it may send at once where it has
// refused somebody since its last.
const (
	// Fixed messages of a task that lands: the ticket to its first zone, the place that was found to its home, Redeem, Leased, Result,
	// ResultAck and Published.
	Fixed = 7
	// PerHop: a probe and its answer.
	PerHop = 2
	// PerDraw: the ticket to one more zone. Where zones do not hear of each other it goes by way of who draws, and takes one more.
	PerDraw = 1
	// PerLoss: the word that a grant or a lease came to nothing, the ticket to another zone, and the place found there to its home.
	PerLoss = 3
)

// Bound is how many messages one search can cause at most, besides PerLoss for each grant that came to nothing.
func (c *Config) Bound() int {
	return Fixed + PerHop*c.MaxHops + PerDraw*c.redraws()
}

// redraws bounds the draws of a search after its first, losses apart (B_r): Resplits, and one where a zone is full.
func (c *Config) redraws() int { return c.Resplits + 1 }

// Messages is how many messages a ticket's present search has caused so far, if it lands; losses are those in it.
func (t *Ticket) Messages(losses int) int {
	return Fixed + PerHop*int(t.Hops) + PerDraw*(int(max(t.Draws, 1))-1-losses) + PerLoss*losses
}

// AtLeast is how many are large enough for a class.
func (f *Fragments) AtLeast(c Class) int {
	n := 0
	for i := int(c); i < MaxClasses; i++ {
		n += int(f[i])
	}
	return n
}

// Press takes in what the pressure on its memory is now.
func (n *Node) Press(pressure uint16) {
	if n.Pressure != pressure {
		n.Pressure = pressure
		n.version++
	}
}

// Grants that stand.
func (n *Node) Grants() []Grant { return n.grants }

// Hint of a node.
func (d *Directory) Hint(n NodeID) Hint { return d.hints[n] }

// Rises is how many parked tickets of each class may be woken now by each of a number of homes that share the zones: its part,
// rounded up, of the room that has come since the last call, one at least where there is room at all, and never more than Wakes.
// Each class has what the larger ones have, too, since these fragments serve both: Lot.Wake takes care of that.
func (s *Splitter) Rises(homes int) (budget [MaxClasses]int) {
	for c := range s.cfg.Classes {
		n := int((s.rises[c] + int64(homes) - 1) / int64(homes))
		for z := 0; n == 0 && z < len(s.digests); z++ {
			if s.live[z] && s.digests[z].Room(Class(c)) > 0 {
				n = 1
			}
		}
		budget[c], s.rises[c] = min(n, s.cfg.Wakes), 0
	}
	return budget
}
