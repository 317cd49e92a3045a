package market

// atOnce is from how many jobs on they enter the rankings together: all of them after a recovery, or when slices of a new kind come.
const atOnce = 32

// rankAll gives jobs their places in the rankings of the classes from one on.
func (f *Floor) rankAll(jobs []*Job, from int) {
	if len(jobs) < atOnce {
		for _, j := range jobs {
			f.places(j, from, func(c *Class) { j.group.rankings[c.at].Insert(c.order, j.answers[c.at].need, j) })
		}
		return
	}
	for _, j := range jobs {
		f.places(j, from, func(c *Class) { j.group.rankings[c.at].Gather(c.order, j.answers[c.at].need, j) })
	}
	for _, g := range f.groups {
		for i := range g.rankings {
			g.rankings[i].Settle(f.classes[i].order)
		}
	}
}

// lineUp gives jobs their places among those that wait for the classes from one on, where jobs bid.
func (f *Floor) lineUp(jobs []*Job, from int) {
	if f.cfg.Market == nil {
		return
	}
	inLine := func(j *Job) bool { return j.ahead == 0 }
	if len(jobs) < atOnce {
		for _, j := range jobs {
			if inLine(j) {
				f.places(j, from, func(c *Class) { f.waits[c.at].Insert(waiting, j.answers[c.at].need, j) })
			}
		}
		return
	}
	for _, j := range jobs {
		if inLine(j) {
			f.places(j, from, func(c *Class) { f.waits[c.at].Gather(waiting, j.answers[c.at].need, j) })
		}
	}
	for i := range f.waits {
		f.waits[i].Settle(waiting)
	}
}

// places are the classes from one on that a ranked job can use.
func (f *Floor) places(j *Job, from int, do func(*Class)) {
	for _, c := range f.classes[from:] {
		if j.answers[c.at].need != never {
			do(c)
		}
	}
}
