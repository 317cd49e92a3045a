package place

import "slices"

// none marks a node without room.
const none = -1

// column is the score of every node for tasks of one shape, in the order of ranks. The best of each block of nodes is
// kept, so that finding the best of all looks at one number a block and then into one block.
type column struct {
	at  []int16
	top []int16
	// fit counts the nodes with room.
	fit int
}

const block = 64

// reset makes c a column of n nodes without room.
func (c *column) reset(n int) {
	c.at = slices.Grow(c.at[:0], n)[:n]
	c.top = slices.Grow(c.top[:0], (n+block-1)/block)[:(n+block-1)/block]
	for i := range c.at {
		c.at[i] = none
	}
	for i := range c.top {
		c.top[i] = none
	}
	c.fit = 0
}

// set stores the score of the node with rank i.
func (c *column) set(i int, score int16) {
	old := c.at[i]
	if old == score {
		return
	}
	if old == none {
		c.fit++
	} else if score == none {
		c.fit--
	}
	c.at[i] = score
	switch b := i / block; {
	case score >= c.top[b]:
		c.top[b] = score
	case old == c.top[b]:
		c.top[b] = slices.Max(c.at[b*block : min((b+1)*block, len(c.at))])
	}
}

// highest score of all; none if no node has room.
func (c *column) highest() int16 { return slices.Max(c.top) }

// best is the lowest rank among the highest scores; c.fit must not be 0.
func (c *column) best() int {
	b := 0
	for i, top := range c.top {
		if top > c.top[b] {
			b = i
		}
	}
	return b*block + slices.Index(c.at[b*block:min((b+1)*block, len(c.at))], c.top[b])
}

// nth is the rank of the n-th node with room, counted from 0; n must be below c.fit.
func (c *column) nth(n int) int {
	for i, score := range c.at {
		if score == none {
			continue
		}
		if n == 0 {
			return i
		}
		n--
	}
	return none
}
