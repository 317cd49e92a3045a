package pool

// crowd sorts nodes by how many devices of a class they have free, so that the fullest node that has enough is found
// without looking at the others. It is off, and costs nothing, until a gang asks.
type crowd struct {
	classes int
	most    int32
	free    []int32 // by node and class
	nodes   []Set   // by class and number of free devices, from 1
}

func (c *crowd) off() bool { return c.free == nil }

// build sorts as many nodes as there are, where most devices of one class are in a node at the most.
func (c *crowd) build(nodes, classes int, most int32) {
	c.most, c.classes = most, classes
	c.free = make([]int32, nodes*classes)
	c.nodes = make([]Set, classes*int(most))
	for i := range c.nodes {
		c.nodes[i] = NewSet(nodes)
	}
}

// set of the nodes with k free devices of a class.
func (c *crowd) set(class int, k int32) *Set { return &c.nodes[class*int(c.most)+int(k)-1] }

// add counts a device of node n as free (1) or taken (-1).
func (c *crowd) add(n int32, class int, by int32) {
	if c.off() {
		return
	}
	k := &c.free[int(n)*c.classes+class]
	if *k > 0 {
		c.set(class, *k).Remove(n)
	}
	*k += by
	if *k > 0 {
		c.set(class, *k).Add(n)
	}
}

// find is the node with the fewest free devices of a class, at least k, that is good; the first of those, or none.
func (c *crowd) find(class int, k int32, good func(n int32) bool) int32 {
	for ; k <= c.most; k++ {
		s := c.set(class, k)
		for n := s.Next(0); n != none; n = s.Next(n + 1) {
			if good(n) {
				return n
			}
		}
	}
	return none
}

// fullest is the node with the fewest free devices of a class, at least k.
func (c *crowd) fullest(class int, k int32) int32 {
	return c.find(class, k, func(int32) bool { return true })
}

func (c *crowd) copyFrom(o *crowd) {
	copy(c.free, o.free)
	for i := range c.nodes {
		c.nodes[i].copyFrom(&o.nodes[i])
	}
}
