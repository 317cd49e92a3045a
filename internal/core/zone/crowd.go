package zone

// crowd is jobs in no order. Each keeps 1 + its place there in a slot of its own, 0 if it is not in.
type crowd []*state

// slot names the slot of a job for one crowd.
type slot func(*state) *int

func aliveSlot(s *state) *int { return &s.alive }
func busySlot(s *state) *int  { return &s.makeWork().slots.busy }

// add puts a job in, if it is not.
func (c *crowd) add(s *state, in slot) {
	if *in(s) == 0 {
		*c = append(*c, s)
		*in(s) = len(*c)
	}
}

// drop takes a job out, if it is in.
func (c *crowd) drop(s *state, in slot) {
	at := *in(s)
	if at == 0 {
		return
	}
	end := len(*c) - 1
	last := (*c)[end]
	(*c)[at-1], *in(last) = last, at
	(*c)[end] = nil
	*c, *in(s) = (*c)[:end], 0
}
