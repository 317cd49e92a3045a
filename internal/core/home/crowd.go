package home

// crowd is jobs in no order. Each keeps 1 + its place there in a slot of its own, 0 if it is not in.
type crowd []*Job

// slot names the slot of a job for one crowd.
type slot func(*Job) *int

func aliveSlot(j *Job) *int { return &j.alive }
func busySlot(j *Job) *int  { return &j.makeWork().slots.busy }

// add puts a job in, if it is not.
func (c *crowd) add(j *Job, in slot) {
	if *in(j) == 0 {
		*c = append(*c, j)
		*in(j) = len(*c)
	}
}

// drop takes a job out, if it is in.
func (c *crowd) drop(j *Job, in slot) {
	at := *in(j)
	if at == 0 {
		return
	}
	end := len(*c) - 1
	last := (*c)[end]
	(*c)[at-1], *in(last) = last, at
	(*c)[end] = nil
	*c, *in(j) = (*c)[:end], 0
}
